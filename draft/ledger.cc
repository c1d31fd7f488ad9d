// SPDX-License-Identifier: Apache-2.0
#include "draft/ledger.h"

#include <sys/file.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/escape.h"
#include "base/hash.h"
#include "base/sys_file.h"
#include "draft/draft_file.h"

namespace stoplog::draft {
namespace {

// A command line may be 4 MiB; its entry a few times that after escaping.
constexpr size_t kMaxLine = 32u << 20;
const std::string kNoHash(64, '0');

struct Scan {
  int64_t entries = 0;
  std::string head = kNoHash;
  uint64_t size = 0;  // bytes of whole lines that chain
  std::string problem;
  std::string known_head;  // of the entry that draft.json knows as the last
  std::string recovered;   // what entries say of what they found
  std::string damaged;     // of these the first that found damage
};

// Another one after each start of the machine; "" where that is not to be had.
const std::string& boot_id() {
  static const std::string id = [] {
    auto text =
        sys::read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128);
    if (!text) return std::string();
    return text->substr(0, text->find('\n'));
  }();
  return id;
}

// Calls `line` with each whole line and its end offset; the torn rest, if any,
// is not given. Memory is one line.
Status for_each_line(
    int fd, const std::function<bool(std::string_view, uint64_t)>& line,
    uint64_t offset = 0) {
  std::string pending;
  std::vector<std::byte> block(64 << 10);
  for (;;) {
    size_t n = TRY(sys::pread_full(fd, block, offset + pending.size()));
    if (n == 0) return {};
    pending.append(reinterpret_cast<const char*>(block.data()), n);
    size_t at = 0;
    for (size_t end; (end = pending.find('\n', at)) != std::string::npos;
         at = end + 1)
      if (!line(std::string_view(pending).substr(at, end - at),
                offset + end + 1))
        return {};
    pending.erase(0, at);
    offset += at;
    if (pending.size() > kMaxLine)
      return fail(Code::kCorrupt, "a line of the ledger is too long");
  }
}

// Where the last `count` whole lines begin, found from the end.
Result<uint64_t> start_of_last(int fd, uint64_t count) {
  std::vector<std::byte> block(64 << 10);
  uint64_t at = TRY(sys::fstat(fd)).size;
  uint64_t ends = 0;  // of lines, seen so far
  while (at > 0) {
    size_t want = static_cast<size_t>(std::min<uint64_t>(at, block.size()));
    at -= want;
    size_t n = TRY(sys::pread_full(fd, std::span(block).first(want), at));
    for (size_t i = n; i > 0; --i)
      if (block[i - 1] == std::byte{'\n'} && ends++ == count) return at + i;
  }
  return uint64_t{0};
}

// Why `entry` cannot follow the scan so far; "" when it can.
std::string check_entry(const Json& entry, const Scan& scan) {
  if (!entry.is_object()) return "not a JSON object";
  if (entry.integer("n") != scan.entries + 1)
    return fmt::format("numbered {}", entry.integer("n"));
  if (entry.text("prev") != scan.head)
    return "does not follow the one before it";
  if (entry.text("sha256") != ledger_hash(entry)) return "was altered";
  return "";
}

// What an append found amiss, and where: later entries chain from there as if
// nothing had been. A few tell enough.
void note_recovered(const Json& entry, Scan& scan) {
  constexpr size_t kMost = 1000;
  if (entry.find("recovered") == nullptr) return;
  std::string told = fmt::format("entry {}: {}", entry.integer("n"),
                                 escape(entry.text("recovered")));
  const Json* damage = entry.find("damage");
  if (damage != nullptr && damage->dump() == "true") {
    if (scan.damaged.empty()) scan.damaged = std::move(told);
  } else if (scan.recovered.size() <= kMost) {
    scan.recovered += (scan.recovered.empty() ? "" : "; ") + told;
  }
}

// `known`: how many entries draft.json counts.
Result<Scan> scan_ledger(int fd, int64_t known) {
  Scan scan;
  TRY(for_each_line(fd, [&](std::string_view line, uint64_t end) {
    auto entry = Json::parse(line);
    std::string why = entry ? check_entry(*entry, scan) : entry.error().text();
    if (!why.empty()) {
      scan.problem = fmt::format("entry {}: {}", scan.entries + 1, why);
      return false;
    }
    ++scan.entries;
    scan.head = entry->text("sha256");
    if (scan.entries == known) scan.known_head = scan.head;
    note_recovered(*entry, scan);
    scan.size = end;
    return true;
  }));
  return scan;
}

// Another entry than the one that was appended stands at the head's number;
// what follows it then cannot make it good.
bool is_another(const Scan& scan, const Draft& draft) {
  return draft.ledger_count > 0 && scan.entries >= draft.ledger_count &&
         scan.known_head != draft.ledger_head;
}

// What is missing had not been synced, and the machine was started again: so
// much a loss of power takes. Never what was synced, and never while it runs.
bool lost_with_power(const Scan& scan, const Draft& draft) {
  return !draft.ledger_boot.empty() && !boot_id().empty() &&
         draft.ledger_boot != boot_id() &&
         scan.entries >= draft.ledger_synced &&
         (scan.entries < draft.ledger_count || !scan.problem.empty());
}

std::string entries_text(int64_t first, int64_t last) {
  return first == last ? fmt::format("entry {}", first)
                       : fmt::format("entries {} to {}", first, last);
}

std::string lost_text(const Scan& scan, const Draft& draft) {
  if (scan.entries >= draft.ledger_count)
    return "what follows had not reached the disk when the machine went down";
  return entries_text(scan.entries + 1, draft.ledger_count) +
         " had not reached the disk when the machine went down, and went with "
         "it";
}

// Of what the file has by now, for the entry that is appended to it.
struct Found {
  std::string text;  // "": it is as draft.json knows it
  bool damage = false;
};
Found found_amiss(const Scan& scan, const Draft& draft, uint64_t size) {
  if (is_another(scan, draft))
    return {fmt::format("entry {} is not the one that was recorded",
                        draft.ledger_count),
            true};
  if (lost_with_power(scan, draft)) return {lost_text(scan, draft), false};
  if (scan.entries < draft.ledger_count)
    return {entries_text(scan.entries + 1, draft.ledger_count) +
                " had been taken off the end",
            !draft.ledger_boot.empty()};
  if (scan.size < size) return {"a torn last line was cut off", false};
  return {};
}

// Of a file whose end was lost, and which has its size still, the blocks that
// did not come are zeros.
bool may_have_lost(const Draft& draft) {
  return !draft.ledger_boot.empty() && draft.ledger_boot != boot_id() &&
         draft.ledger_synced < draft.ledger_count;
}

}  // namespace

std::string ledger_hash(const Json& entry) {
  Json bare = entry;
  bare.erase("sha256");
  return hex(sha256(bare.dump()));
}

Result<Ledger> Ledger::open(const Layout& layout, std::string_view id) {
  Fd dir =
      TRY_CTX(sys::openat(AT_FDCWD, layout.draft(id), O_RDONLY | O_DIRECTORY),
              fmt::format("cannot open draft {}", id));
  return Ledger(std::move(dir));
}

Result<int64_t> Ledger::append(std::string_view kind, const Json& fields,
                               Sync sync,
                               const std::function<void()>& written) {
  int64_t number = 0;
  bool reopens = false;
  auto add = [&](Draft& draft) -> Status {
    Fd fd = TRY(sys::openat(dir_.get(), kLedgerFile,
                            O_RDWR | O_CREAT | O_APPEND, 0600));
    sys::Stat st = TRY(sys::fstat(fd.get()));
    std::string prev = draft.ledger_head.empty() ? kNoHash : draft.ledger_head;
    Found found;
    if (static_cast<int64_t>(st.size) != draft.ledger_size ||
        may_have_lost(draft)) {
      // We died between the line and the head, or power was lost.
      Scan scan = TRY(scan_ledger(fd.get(), draft.ledger_count));
      if (!scan.problem.empty() && !lost_with_power(scan, draft))
        return fail(Code::kCorrupt, "the ledger is damaged: {}", scan.problem);
      found = found_amiss(scan, draft, st.size);
      if (scan.size < st.size) TRY(sys::ftruncate(fd.get(), scan.size));
      prev = scan.head;
      draft.ledger_count = scan.entries;
      st.size = scan.size;
    }
    number = draft.ledger_count + 1;
    Json entry = Json::object();
    entry.set("n", number).set("kind", kind);
    entry.set("time", rfc3339(Clock::real().now()));
    for (const auto& [key, value] : fields.members()) entry.set(key, value);
    if (!found.text.empty()) entry.set("recovered", found.text);
    if (found.damage) entry.set("damage", true);
    entry.set("prev", prev);
    // The hash is of the entry as it will be read back: what is not UTF-8 has
    // been replaced by then.
    Json read_back = TRY(Json::parse(entry.dump()));
    std::string sum = ledger_hash(read_back);
    std::string line = read_back.set("sha256", sum).dump() + "\n";
    TRY(sys::write_full(fd.get(), line));
    if (sync == Sync::kYes) TRY(sys::fdatasync(fd.get()));
    draft.ledger_count = number;
    draft.ledger_head = sum;
    draft.ledger_size = static_cast<int64_t>(st.size + line.size());
    draft.ledger_boot = boot_id();
    if (sync == Sync::kYes) draft.ledger_synced = number;
    // Who works in a draft that was committed whole goes on with it.
    reopens = kind == "run" && draft.state != DraftState::kOpen;
    if (reopens) draft.state = DraftState::kOpen;
    if (written && !reopens) written();
    return {};
  };
  TRY_CTX(update_draft(dir_.get(), add, sync), "cannot append to the ledger");
  if (written && reopens) written();
  return number;
}

Result<std::optional<Fd>> Ledger::file() const {
  auto fd = sys::openat(dir_.get(), kLedgerFile, O_RDONLY);
  if (!fd && fd.error().err() == ENOENT) return std::nullopt;
  return TRY_CTX(std::move(fd), "cannot read the ledger");
}

Status Ledger::for_each(const std::function<bool(const Json&)>& each,
                        std::optional<uint64_t> last) const {
  auto fd = TRY(file());
  if (!fd) return {};
  uint64_t from = last ? TRY(start_of_last(fd->get(), *last)) : 0;
  return for_each_line(
      fd->get(),
      [&](std::string_view line, uint64_t) {
        auto entry = Json::parse(line);
        return !entry || each(*entry);
      },
      from);
}

Status Ledger::for_each_of(std::string_view kind,
                           const std::function<void(const Json&)>& each,
                           std::optional<uint64_t> last) const {
  auto fd = TRY(file());
  if (!fd) return {};
  // A line begins with n and kind, as append() writes it.
  const std::string wanted = fmt::format("\"kind\":\"{}\"", kind);
  constexpr size_t kBeginning = 64;
  uint64_t from = last ? TRY(start_of_last(fd->get(), *last)) : 0;
  return for_each_line(
      fd->get(),
      [&](std::string_view line, uint64_t) {
        if (line.substr(0, kBeginning).find(wanted) == line.npos) return true;
        auto entry = Json::parse(line);
        if (entry && entry->text("kind") == kind) each(*entry);
        return true;
      },
      from);
}

Result<std::vector<Json>> Ledger::entries() const {
  std::vector<Json> out;
  TRY(for_each([&](const Json& entry) {
    out.push_back(entry);
    return true;
  }));
  return out;
}

Result<Draft> read_draft_settled(int draft_dir) {
  Fd lock = TRY(sys::openat(draft_dir, kMetaLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_SH));
  return read_draft(draft_dir);
}

Result<Ledger::Verdict> Ledger::verify() const {
  Verdict verdict;
  Fd lock = TRY(sys::openat(dir_.get(), kMetaLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_SH));
  Draft draft = TRY(read_draft(dir_.get()));
  Scan scan;
  uint64_t size = 0;
  auto fd = sys::openat(dir_.get(), kLedgerFile, O_RDONLY);
  if (fd) {
    scan = TRY(scan_ledger(fd->get(), draft.ledger_count));
    size = TRY(sys::fstat(fd->get())).size;
  } else if (fd.error().err() != ENOENT) {
    return std::unexpected(std::move(fd).error());
  }
  verdict.entries = scan.entries;
  const bool lost = lost_with_power(scan, draft);
  if (lost)
    verdict.lost = std::max<int64_t>(0, draft.ledger_count - scan.entries);
  if (!lost) verdict.problem = scan.problem;
  if (verdict.problem.empty() && !lost && scan.entries < draft.ledger_count)
    verdict.problem =
        fmt::format("{} {} missing at the end",
                    entries_text(scan.entries + 1, draft.ledger_count),
                    scan.entries + 1 == draft.ledger_count ? "is" : "are");
  if (verdict.problem.empty() && is_another(scan, draft))
    verdict.problem =
        fmt::format("entry {}: is not the one whose hash draft.json keeps",
                    draft.ledger_count);
  if (verdict.problem.empty()) verdict.problem = scan.damaged;
  if (lost)
    verdict.note = lost_text(scan, draft);
  else if (scan.entries > draft.ledger_count)
    verdict.note = fmt::format(
        "{} entries are newer than the head: stoplog "
        "was stopped while it wrote them",
        scan.entries - draft.ledger_count);
  else if (verdict.problem.empty() && scan.size < size)
    verdict.note = "the last line is torn and will be cut off";
  if (!scan.recovered.empty())
    verdict.note += (verdict.note.empty() ? "" : "; ") + scan.recovered;
  verdict.ok = verdict.problem.empty();
  return verdict;
}

}  // namespace stoplog::draft
