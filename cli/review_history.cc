// SPDX-License-Identifier: Apache-2.0
#include "cli/review_history.h"

#include <algorithm>

#include "cli/marks.h"
#include "diff/content_hash.h"

namespace stoplog::cli {
namespace {

constexpr size_t kCommands = 24;
constexpr uint64_t kBytes = 16 << 20;
// A view of the draft at a mark is made for it, in the time and memory that
// its nodes take.
constexpr uint64_t kNodes = 300'000;

diff::SharedText load(const fs::NodeState& state, uint64_t& left) {
  if (state.type != fs::Type::kFile || !state.content) return nullptr;
  auto text = diff::read_content(*state.content,
                                 std::min<uint64_t>(left, diff::kTextLimit));
  if (!text) return nullptr;
  left -= text->size();
  return std::make_shared<const std::string>(std::move(*text));
}

}  // namespace

const fs::DraftView* History::before(uint32_t command) {
  if (view_ && command_ == command) return view_.get();
  view_.reset();  // before the next: they can be large
  const std::vector<fs::Mark>& marks = opened_.view->marks();
  auto mark = std::ranges::find_if(marks, [&](const fs::Mark& m) {
    return m.kind == fs::MarkKind::kCommandBegin && m.command == command;
  });
  if (mark == marks.end()) return nullptr;
  auto view = view_at(opened_, mark->position);
  if (!view) return nullptr;
  view_ = std::move(*view);
  command_ = command;
  return view_.get();
}

std::vector<FileVersion> History::versions(
    const diff::Change& change, const std::function<bool()>& unwanted) {
  if (change.command == 0 || !change.after ||
      opened_.view->held_nodes() > kNodes)
    return {};
  uint64_t left = kBytes;
  diff::SharedText now = load(*change.after, left);
  if (!now) return {};
  std::vector<FileVersion> found{{change.command, std::move(now)}};
  while (found.back().command != 0 && found.size() < kCommands) {
    if (unwanted()) return {};
    uint32_t command = found.back().command;
    const fs::DraftView* view = before(command);
    if (view == nullptr) break;
    const RelPath* path = &change.path;
    auto state = view->draft_state(*path);
    if (state && !*state && change.from) {
      path = &*change.from;
      state = view->draft_state(*path);
    }
    if (!state) break;
    if (!*state) {  // the command made it
      found.push_back({0, std::make_shared<const std::string>()});
      break;
    }
    diff::SharedText text = load(**state, left);
    uint32_t last = view->command_at(*path);
    // Two commands at once: neither is before the other.
    if (!text || last >= command) break;
    found.push_back({last, std::move(text)});
  }
  // What its own command made of the oldest is not to be told from the rest.
  found.back().command = 0;
  std::ranges::reverse(found);
  return found;
}

}  // namespace stoplog::cli
