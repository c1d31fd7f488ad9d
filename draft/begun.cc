// SPDX-License-Identifier: Apache-2.0
#include "draft/begun.h"

#include <sys/file.h>

#include <map>

#include "base/log.h"
#include "base/sys_file.h"
#include "draft/report.h"
#include "draft/store.h"

namespace stoplog::draft {
namespace {

// As much as a ledger's line may have, a few times.
constexpr uint64_t kMostBegun = 128u << 20;

// By number, those of the file that the ledger has not. The last line may be
// torn: its command did not start.
Result<std::map<int64_t, Json>> unrecorded(const std::string& text,
                                           const Ledger& ledger) {
  std::map<int64_t, Json> out;
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos;
       at = end + 1) {
    auto entry = Json::parse(text.substr(at, end - at));
    if (entry && entry->is_object() && entry->integer("command") > 0)
      out[entry->integer("command")] = std::move(*entry);
  }
  if (out.empty()) return out;
  TRY(ledger.for_each([&](const Json& entry) {
    if (entry.text("kind") == "run") out.erase(entry.integer("command"));
    return true;
  }));
  return out;
}

}  // namespace

Result<Begun> Begun::open(int draft_dir) {
  Begun begun;
  begun.file_ = TRY(
      sys::openat(draft_dir, kBegunFile, O_WRONLY | O_CREAT | O_APPEND, 0600));
  return begun;
}

void Begun::add(const Json& entry) {
  const std::string line = entry.dump() + "\n";
  std::lock_guard lock(mutex_);
  ++open_;
  if (Status written = sys::write_full(file_.get(), line); !written)
    log::error("cannot note that a command begins: {}", written.error().text());
}

void Begun::done() {
  std::lock_guard lock(mutex_);
  if (open_ == 0 || --open_ != 0) return;
  if (Status emptied = sys::ftruncate(file_.get(), 0); !emptied)
    log::error("cannot clear the commands that began: {}",
               emptied.error().text());
}

Result<uint64_t> record_lost(int draft_dir, Ledger& ledger) {
  auto file = sys::openat(draft_dir, kBegunFile, O_RDWR);
  if (!file && file.error().err() == ENOENT) return uint64_t{0};
  Fd fd = TRY(std::move(file));
  if (TRY(sys::fstat(fd.get())).size == 0) return uint64_t{0};
  // Other readers of a draft without a daemon do the same.
  TRY(sys::flock(fd.get(), LOCK_EX));
  auto lost = TRY(unrecorded(
      TRY(sys::read_file(draft_dir, kBegunFile, kMostBegun)), ledger));
  for (const auto& [command, entry] : lost)
    TRY(ledger.append("run", lost_entry(entry), Sync::kNo));
  TRY(sys::ftruncate(fd.get(), 0));
  return lost.size();
}

Status record_lost(const Layout& layout, std::string_view id, int draft_dir) {
  auto there = sys::statat(draft_dir, kBegunFile);
  if (!there || there->size == 0) return {};
  Ledger ledger = TRY(Ledger::open(layout, id));
  TRY(record_lost(draft_dir, ledger));
  return {};
}

Status record_lost_unless_served(const Layout& layout, std::string_view id) {
  Fd dir = TRY(sys::openat(AT_FDCWD, layout.draft(id), O_RDONLY | O_DIRECTORY));
  auto there = sys::statat(dir.get(), kBegunFile);
  if (!there || there->size == 0) return {};
  auto lock = DraftLock::take(layout, id, LockMode::kShared,
                              std::chrono::milliseconds(0));
  if (!lock && lock.error().err() == EWOULDBLOCK) return {};
  DraftLock held = TRY(std::move(lock));
  return record_lost(layout, id, dir.get());
}

}  // namespace stoplog::draft
