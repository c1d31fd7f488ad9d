// SPDX-License-Identifier: Apache-2.0
#include "fs/drift.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace stoplog::fs {
namespace {

// As much as a file may have that is taken whole.
constexpr uint64_t kCompared = 1u << 20;

// What cannot be read is not the same.
bool still_says(const NodeState& before, const SharedRoot& root,
                const RelPath& path) {
  if (!before.content || before.size > kCompared) return false;
  auto real = real_state_at(root, path);
  if (!real || !*real || !(*real)->content) return false;
  auto text_of = [&](const Content& content) -> std::optional<std::string> {
    std::string text(before.size, '\0');
    auto n = content.read(0, std::as_writable_bytes(std::span(text)));
    if (!n || *n != before.size) return std::nullopt;
    return text;
  };
  auto was = text_of(*before.content);
  return was && was == text_of(*(*real)->content);
}

}  // namespace

Result<std::optional<sys::Stat>> stat_beneath(int root,
                                              const std::string& path) {
  auto fd = open_deep(root, path, O_PATH);
  if (!fd && is_absence(fd.error())) return std::nullopt;
  if (!fd) return std::unexpected(std::move(fd).error().context(path));
  return TRY(sys::fstat(fd->get()));
}

std::string drift_text(std::string_view what, const timespec& when) {
  return fmt::format("{} in the real tree at {}", what, local_time(when));
}

std::optional<std::string> drift_of(const SharedRoot& root, const RelPath& path,
                                    const NodeState& before,
                                    const sys::Stat& now) {
  if (type_of(now.mode) != before.type)
    return drift_text("replaced by another kind of file", now.ctime);
  bool is_file = before.type == Type::kFile;
  bool other_size = is_file && now.size != before.size;
  bool other_time =
      before.type != Type::kDir && !same_time(now.mtime, before.mtime);
  if (other_size ||
      (other_time && !(is_file && still_says(before, root, path))))
    return drift_text("modified", now.mtime);
  if ((now.mode & 07777) != before.mode || now.uid != before.uid ||
      now.gid != before.gid)
    return drift_text("its mode or owner changed", now.ctime);
  return std::nullopt;
}

}  // namespace stoplog::fs
