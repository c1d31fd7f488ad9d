// SPDX-License-Identifier: Apache-2.0
#include "gate/commits.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/dir.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "base/temp_sweep.h"
#include "fs/beneath.h"
#include "gate/name_in.h"

namespace stoplog::gate {
namespace {

constexpr const char* kCommitsDir = "commits";
constexpr const char* kKeptDir = "kept";
constexpr const char* kLastFile = "last";
constexpr const char* kNextFile = "next";
constexpr std::string_view kRecordSuffix = ".commit";
constexpr std::string_view kRebasedSuffix = ".rebased";
constexpr uint64_t kMaxRecord = uint64_t{4} << 30;

std::string record_name(uint64_t number) {
  return fmt::format("{}{}", number, kRecordSuffix);
}

Result<Fd> open_commits(int state) {
  Status made = sys::mkdirat(state, kCommitsDir, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(made.error());
  return sys::openat(state, kCommitsDir, O_RDONLY | O_DIRECTORY);
}

bool parse_number(std::string_view text, uint64_t& number) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Result<std::vector<uint64_t>> numbered(int commits, std::string_view suffix) {
  std::vector<uint64_t> numbers;
  for (const std::string& name : TRY(list_names(commits, "."))) {
    uint64_t number = 0;
    if (name.ends_with(suffix) &&
        parse_number(
            std::string_view(name).substr(0, name.size() - suffix.size()),
            number))
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

Result<std::vector<uint64_t>> list_commits(int state) {
  auto dir = sys::openat(state, kCommitsDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return std::vector<uint64_t>{};
  if (!dir) return std::unexpected(dir.error());
  return numbered(dir->get(), kRecordSuffix);
}

namespace {

Result<std::string> commit_bytes(int state, uint64_t number) {
  Fd dir = TRY(open_commits(state));
  auto bytes = sys::read_file(dir.get(), record_name(number), kMaxRecord);
  if (bytes || bytes.error().err() != ENOENT) return bytes;
  if (number > 0 && number < TRY(next_commit_number(state)))
    return fail(Code::kUsage,
                "commit {} is kept no longer (gate.undo_size), and can no "
                "longer be undone",
                number);
  return fail(Code::kUsage, "there is no commit {}", number);
}

}  // namespace

Result<CommitRecord> read_commit(int state, uint64_t number) {
  return TRY_CTX(decode_commit(TRY(commit_bytes(state, number))),
                 fmt::format("commit {}", number));
}

Result<CommitMeta> read_commit_meta(int state, uint64_t number) {
  return TRY_CTX(decode_commit_meta(TRY(commit_bytes(state, number))),
                 fmt::format("commit {}", number));
}

Result<uint64_t> next_commit_number(int state) {
  Fd dir = TRY(open_commits(state));
  uint64_t last = 0;
  auto known = TRY(numbered(dir.get(), kRecordSuffix));
  if (!known.empty()) last = known.back();
  // The newest record may have been forgotten.
  if (auto text = sys::read_file(dir.get(), kLastFile, 64)) {
    uint64_t noted = 0;
    if (parse_number(*text, noted)) last = std::max(last, noted);
  }
  return last + 1;
}

Result<bool> has_commit(int state, const CommitMeta& meta) {
  auto record = read_commit(state, meta.number);
  if (!record && record.error().code() == Code::kUsage) return false;
  // Torn by power loss before it was synced: written again by the recovery.
  if (!record && record.error().code() == Code::kCorrupt) return false;
  if (!record) return std::unexpected(record.error());
  return record->meta.id == meta.id;
}

namespace {

constexpr const char* kWritten[] = {kCommitsDir, kKeptDir};

// A small file that is not written under the lock of the root: who has that may
// have taken the one in the making for one that was left.
Status put_note(int commits, const std::string& name, std::string_view text) {
  Status written = write_file(commits, name, text);
  if (written || written.error().err() != ENOENT) return written;
  return write_file(commits, name, text);
}

}  // namespace

Status clear_unfinished(int state, const Disk& disk) {
  for (const char* name : kWritten) {
    auto dir = sys::openat(state, name, O_RDONLY | O_DIRECTORY);
    if (!dir && dir.error().err() == ENOENT) continue;
    if (!dir) return std::unexpected(dir.error());
    for (const std::string& entry : TRY(list_names(dir->get(), "."))) {
      if (!is_temp_name(entry)) continue;
      Status gone = disk.unlinkat(dir->get(), entry);
      if (!gone && gone.error().err() != ENOENT) return gone;
    }
  }
  return {};
}

Status clear_unfinished(int state, int64_t idle) {
  for (const char* name : kWritten) {
    auto dir = sys::openat(state, name, O_RDONLY | O_DIRECTORY);
    if (!dir && dir.error().err() == ENOENT) continue;
    if (!dir) return std::unexpected(dir.error());
    TRY(sweep_temp_files(dir->get(), idle));
  }
  return {};
}

Status write_commit(int state, const Disk& disk, const CommitRecord& record) {
  Fd dir = TRY(open_commits(state));
  return disk.write_file(dir.get(), record_name(record.meta.number),
                         encode(record), Sync::kNo);
}

Status withdraw_commit(int state, const Disk& disk, const CommitMeta& meta) {
  auto noted = read_commit_meta(state, meta.number);
  if (!noted && noted.error().code() == Code::kUsage) return {};
  // Torn: it had not come to its sync, and ours was the last.
  if (!noted && noted.error().code() != Code::kCorrupt)
    return std::unexpected(noted.error());
  if (noted && noted->id != meta.id) return {};
  Fd dir = TRY(open_commits(state));
  // Whoever gets the number next is not taken for this one.
  std::string rebased = fmt::format("{}{}", meta.number, kRebasedSuffix);
  Status gone = disk.unlinkat(dir.get(), rebased);
  if (!gone && gone.error().err() != ENOENT) return gone;
  return disk.unlinkat(dir.get(), record_name(meta.number));
}

void drop_left_items(CommitRecord& record, const std::set<RelPath>& left) {
  if (left.empty()) return;
  // What is new in a new directory comes, or does not come, with it.
  std::vector<RelPath> trees;
  for (const Item& item : record.items)
    if (left.contains(item.path) && item.fresh && item.fresh->is_dir() &&
        (!item.old || !item.old->is_dir()))
      trees.push_back(item.path);
  auto is_left = [&](const Item& item) {
    return left.contains(item.path) ||
           std::any_of(trees.begin(), trees.end(), [&](const RelPath& tree) {
             return !item.old && item.path.is_within(tree);
           });
  };
  std::vector<Item> items;
  std::vector<std::optional<sys::Stat>> now;
  for (size_t i = 0; i < record.items.size(); ++i) {
    if (is_left(record.items[i])) continue;
    items.push_back(std::move(record.items[i]));
    now.push_back(record.now[i]);
  }
  record.items = std::move(items);
  record.now = std::move(now);
}

void renumber(CommitRecord& record, const Disk& disk, int root) {
  std::map<dev_t, dev_t> devices;
  for (size_t i = 0; i < record.items.size(); ++i) {
    const std::optional<sys::Stat>& then = record.now[i];
    if (!then || devices.contains(then->dev)) continue;
    const RelPath& path = record.items[i].path;
    auto dir = disk.open_dir(root, path.parent());
    if (!dir) continue;
    auto look = disk.statat(dir->get(), name_in(path));
    const std::optional<sys::Stat> now = look ? *look : std::nullopt;
    if (now && now->ino == then->ino && fs::same_time(now->btime, then->btime))
      devices.emplace(then->dev, now->dev);
  }
  renumber(record.items, record.now, devices);
}

fs::CommitId commit_id(const CommitMeta& meta) {
  Sha256Digest digest = sha256(fmt::format("{}\n{}", meta.id, meta.number));
  fs::CommitId id = 0;
  std::memcpy(&id, digest.data(), sizeof id);
  return id;
}

Status note_rebased(int state, uint64_t number) {
  Fd dir = TRY(open_commits(state));
  return put_note(dir.get(), fmt::format("{}{}", number, kRebasedSuffix), "");
}

Result<std::vector<uint64_t>> not_rebased(int state, const std::string& draft) {
  std::vector<uint64_t> open;
  auto all = TRY(list_commits(state));
  if (all.empty()) return open;
  Fd dir = TRY(open_commits(state));
  auto done = TRY(numbered(dir.get(), kRebasedSuffix));
  for (uint64_t number : all) {
    if (std::binary_search(done.begin(), done.end(), number)) continue;
    if (TRY(read_commit_meta(state, number)).draft == draft)
      open.push_back(number);
  }
  return open;
}

Status note_kept(int state, const Disk& disk, const Left& left) {
  Status made = disk.mkdirat(state, kKeptDir, 0700);
  if (!made && made.error().err() != EEXIST) return made;
  Fd dir = TRY(disk.openat(state, kKeptDir, O_RDONLY | O_DIRECTORY));
  return disk.write_file(dir.get(), hex(*left.kept), left.text() + "\n");
}

Result<std::vector<Kept>> list_kept(int state) {
  std::vector<Kept> all;
  auto dir = sys::openat(state, kKeptDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return all;
  if (!dir) return std::unexpected(dir.error());
  for (const std::string& name : TRY(list_names(dir->get(), "."))) {
    Kept kept;
    if (!unhex(name, kept.object)) continue;
    kept.time = TRY(sys::statat(dir->get(), name)).mtime;
    kept.text = TRY(sys::read_file(dir->get(), name, 1 << 20));
    all.push_back(std::move(kept));
  }
  return all;
}

Status forget_kept(int state, const Sha256Digest& object) {
  Fd dir = TRY(sys::openat(state, kKeptDir, O_RDONLY | O_DIRECTORY));
  return sys::unlinkat(dir.get(), hex(object));
}

Result<std::set<Sha256Digest>> needed_objects(int state) {
  std::set<Sha256Digest> needed;
  for (const Kept& kept : TRY(list_kept(state))) needed.insert(kept.object);
  for (uint64_t number : TRY(list_commits(state))) {
    CommitRecord record = TRY(read_commit(state, number));
    for (const Sha256Digest& id : record.preimages()) needed.insert(id);
    for (const Left& left : record.left)
      if (left.kept) needed.insert(*left.kept);
  }
  return needed;
}

namespace {

// Named as the next to go by an earlier call.
Result<std::set<uint64_t>> named_before(int commits) {
  std::set<uint64_t> named;
  auto text = sys::read_file(commits, kNextFile, 1 << 20);
  if (!text && text.error().err() == ENOENT) return named;
  if (!text) return std::unexpected(text.error());
  for (std::string_view left = *text; !left.empty();) {
    size_t end = std::min(left.find('\n'), left.size());
    uint64_t number = 0;
    if (parse_number(left.substr(0, end), number)) named.insert(number);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return named;
}

}  // namespace

Result<Trimmed> trim_undo(int state, snapshot::ObjectStore& objects,
                          uint64_t limit) {
  Trimmed trimmed;
  std::vector<uint64_t> numbers = TRY(list_commits(state));
  if (numbers.size() < 2) return trimmed;
  std::map<Sha256Digest, uint64_t> stored;
  uint64_t all = 0;
  for (const auto& info : TRY(objects.list()))
    if (stored.emplace(info.id, info.stored).second) all += info.stored;
  Fd dir = TRY(open_commits(state));
  std::set<uint64_t> named = TRY(named_before(dir.get()));
  // Mostly: the records, as large as what they speak of, need not be read.
  if (all <= limit && named.empty()) return trimmed;
  auto told = TRY(numbered(dir.get(), kRebasedSuffix));
  std::vector<uint64_t> beyond;
  // From the newest: a content that two commits need is the newer one's.
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    CommitRecord record = TRY(read_commit(state, *number));
    for (const Sha256Digest& id : record.preimages())
      if (auto known = stored.find(id); known != stored.end()) {
        trimmed.bytes += known->second;
        stored.erase(known);
      }
    // A draft must still learn of it.
    bool needed = !std::binary_search(told.begin(), told.end(), *number);
    if (trimmed.bytes > limit && *number != numbers.back() && !needed)
      beyond.push_back(*number);
  }
  std::string next;
  for (auto number = beyond.rbegin(); number != beyond.rend(); ++number) {
    if (named.contains(*number)) {
      TRY(forget_commit(state, *number));
      trimmed.gone.push_back(*number);
    } else {
      trimmed.next.push_back(*number);
      next += fmt::format("{}\n", *number);
    }
  }
  if (!next.empty() || !named.empty())
    TRY(put_note(dir.get(), kNextFile, next));
  return trimmed;
}

Status forget_commit(int state, uint64_t number) {
  Fd dir = TRY(open_commits(state));
  uint64_t next = TRY(next_commit_number(state));
  TRY(put_note(dir.get(), kLastFile, std::to_string(next - 1)));
  TRY(sys::unlinkat(dir.get(), record_name(number)));
  (void)sys::unlinkat(dir.get(), fmt::format("{}{}", number, kRebasedSuffix));
  return {};
}

}  // namespace stoplog::gate
