// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle_base.h"

#include <set>
#include <tuple>

#include "base/sys_node.h"
#include "fs/codec.h"
#include "fs/held_content.h"
#include "fs/history.h"
#include "fs/real.h"
#include "snapshot/content_digest.h"

namespace stoplog::snapshot {
namespace {

using fs::Held;
using fs::identity_of;
using fs::is_absence;
using fs::join_path;
using fs::Logged;
using fs::State;

struct Found {
  Fd fd;  // O_PATH
  sys::Stat st;
};
Result<std::optional<Found>> look(int base, const RelPath& path) {
  auto fd = fs::open_deep(base, path.str(), O_PATH);
  if (!fd && is_absence(fd.error())) return std::nullopt;
  if (!fd) return std::unexpected(std::move(fd).error().context(path.str()));
  sys::Stat st = TRY(sys::fstat(fd->get()));
  return Found{std::move(*fd), st};
}

Result<Sha256Digest> digest_of(const fs::Content& content,
                               const Progress& progress, uint64_t& done) {
  ContentHasher hasher(content.size());
  TRY(for_each_piece(content, [&](uint64_t offset, auto bytes) -> Status {
    hasher.data(offset, bytes);
    done += bytes.size();
    return progress ? progress(done) : Status();
  }));
  return hasher.finish();
}

// Generations that go on from a mark of an older one and have but marks: who
// went to and fro between two marks. They speak of nothing that the mark did
// not, and each costs a replay up to it. Of the last one the end counts.
Result<std::set<uint32_t>> only_marks(int draft_dir, fs::Position until) {
  std::set<uint32_t> found;
  auto all = TRY(fs::Generations::list(draft_dir));
  std::vector<fs::Generation> generations = TRY(all.all());
  std::erase_if(generations,
                [&](const auto& each) { return each.head.first > until; });
  for (size_t i = 0; i + 1 < generations.size(); ++i) {
    const fs::Generation& each = generations[i];
    if (!each.head.from) continue;
    bool marks = true;
    Fd fd = TRY(fs::open_generation(draft_dir, each.number, O_RDONLY));
    fs::ScanEnd end = TRY(fs::scan_frames(
        fd.get(), each.head.size, each.head.first, each.head.open.draft,
        [&](const fs::Frame& frame) -> Result<bool> {
          for (const fs::Record& none :
               {fs::Record(fs::MarkRecord{}), fs::Record(fs::FromRecord{}),
                fs::Record(fs::DeviceRecord{})})
            if (frame.type == fs::record_type(none)) return true;
          return marks = false;
        },
        each.last));
    if (marks && end.damage.empty()) found.insert(each.number);
  }
  return found;
}

// Twice what a draft may hold by default.
constexpr uint32_t kMaxEntries = 4u << 20;

// Everything that the records of a draft say of the base, path by path.
class Gatherer {
 public:
  Status walk(int draft_dir, fs::Position until, fs::NeededRanges* needed) {
    fs::HistoryVisitor visitor;
    visitor.before = [this](const State& state, const Logged& logged) {
      return before(state, logged);
    };
    visitor.after = [=, this](const State& state, const Logged& logged) {
      if (needed != nullptr) needed->after(state, logged);
      return after(state, logged);
    };
    visitor.end = [=, this](const State& state) {
      if (needed != nullptr) needed->end(state);
      return end(state);
    };
    std::set<uint32_t> needless = TRY(only_marks(draft_dir, until));
    return fs::walk_history(
        draft_dir,
        {.until = until,
         .generation =
             [&](uint32_t number) { return !needless.contains(number); }},
        visitor);
  }

  // What the draft holds at its end decides where it speaks of a path.
  struct Last {
    sys::Stat st;
    fs::SegmentRange content{};
    bool taken = false;
    bool exact = false;
    std::string target{};
  };
  std::map<std::string, std::vector<sys::Stat>> seen;
  std::map<std::string, Last> last;
  std::set<std::string> made;  // names that the draft put into the base's

 private:
  void note(const std::optional<std::string>& path, const sys::Stat& st) {
    if (!path) return;
    auto& list = seen[*path];
    for (sys::Stat& old : list)
      if (identity_of(old) == identity_of(st)) {
        old = st;
        return;
      }
    list.push_back(st);
  }
  static std::optional<std::string> child_path(const State& state,
                                               fs::Serial parent,
                                               const std::string& name) {
    const Held* dir = state.find(parent);
    auto origin = dir != nullptr ? state.origin_of(*dir) : std::nullopt;
    if (!origin) return std::nullopt;
    return join_path(*origin, name);
  }
  Status before(const State& state, const Logged& logged) {
    if (const auto* r = std::get_if<fs::UnlinkRecord>(&logged.record)) {
      if (r->lower) note(child_path(state, r->parent, r->name), *r->lower);
    } else if (const auto* m = std::get_if<fs::RenameRecord>(&logged.record)) {
      if (m->lower)
        note(child_path(state, m->new_parent, m->new_name), *m->lower);
    }
    return {};
  }
  Status after(const State& state, const Logged& logged) {
    if (const auto* r = std::get_if<fs::AdoptRecord>(&logged.record)) {
      note(child_path(state, r->parent, r->name), r->base);
    } else if (const auto* t = std::get_if<fs::TakeRecord>(&logged.record)) {
      if (const Held* node = state.find(t->serial))
        note(state.origin_of(*node), t->base);
    } else if (const auto* b = std::get_if<fs::BaseMapRecord>(&logged.record)) {
      for (const fs::BaseChange& change : b->changes)
        if (change.now) note(change.path.str(), *change.now);
    } else if (std::holds_alternative<fs::StartRecord>(logged.record) ||
               std::holds_alternative<fs::FromRecord>(logged.record)) {
      nodes(state);
    }
    return {};
  }
  void nodes(const State& state) {
    for (const auto& [serial, node] : state.nodes())
      if (node->base && serial != fs::kRootSerial)
        note(state.origin_of(*node), *node->base);
    for (const auto& [path, deleted] : state.deleted())
      note(path, deleted.base);
  }
  Status end(const State& state) {
    last.clear();
    made.clear();
    for (const auto& [serial, node] : state.nodes()) {
      if (serial == fs::kRootSerial) continue;
      if (node->base) {
        Last entry{.st = node->body ? node->body->lower : *node->base};
        entry.taken = node->body && node->body->has_base;
        if (entry.taken) entry.content = node->body->base;
        entry.exact = !node->is_dir() || node->is_touched();
        entry.target = node->target;
        if (auto origin = state.origin_of(*node))
          last.insert_or_assign(*origin, entry);
        for (const fs::Link& link : node->links)
          if (auto path = state.base_path(link))
            last.insert_or_assign(*path, entry);
      }
      for (const fs::Link& link : node->links)
        if (link.from != fs::LinkFrom::kDerived)
          if (auto path = child_path(state, link.parent, link.name))
            made.insert(*path);
    }
    for (const auto& [path, deleted] : state.deleted()) {
      Last entry{.st = deleted.base, .exact = true, .target = deleted.target};
      entry.taken = deleted.content.segment != 0;
      if (entry.taken) entry.content = deleted.content;
      last.insert_or_assign(path, entry);
    }
    return {};
  }
};

class Table {
 public:
  Table(int draft_dir, int base, const Progress& progress)
      : draft_dir_(draft_dir), base_(base), progress_(progress) {}

  Result<BaseTable> make(const Gatherer& gathered) {
    segments_ = TRY(fs::Segments::open(draft_dir_, false));
    root_ = TRY(fs::share_root(base_));
    sys::Stat st = TRY(sys::fstat(base_));
    table_.owner = st.uid;
    table_.group = st.gid;
    std::set<std::string> paths = gathered.made;
    for (const auto& [path, stats] : gathered.seen) paths.insert(path);
    for (const auto& [path, entry] : gathered.last) paths.insert(path);
    for (const std::string& path : paths) TRY(add(gathered, path));
    return std::move(table_);
  }

 private:
  Status add(const Gatherer& gathered, const std::string& text) {
    BaseEntry entry;
    entry.path = TRY(RelPath::parse(text));
    std::optional<Found> now;
    // Paths come in order: nothing lies beneath what was just found absent.
    if (absent_.is_root() || !entry.path.is_within(absent_)) {
      now = TRY(look(base_, entry.path));
      if (!now) absent_ = entry.path;
    }
    auto last = gathered.last.find(text);
    if (last != gathered.last.end()) {
      TRY(add_last(last->second, now, entry));
    } else if (auto seen = gathered.seen.find(text);
               seen != gathered.seen.end()) {
      // Only older marks speak of it: known when it still is the same file.
      bool same = false;
      for (const sys::Stat& st : seen->second)
        same = same || (now && identity_of(st) == identity_of(now->st));
      if (!same) return {};
      entry.exact = !S_ISDIR(now->st.mode);
      TRY(describe(*now, entry));
    } else if (now) {
      table_.drifted.push_back(text);  // made in the real tree since
    }
    table_.entries.push_back(std::move(entry));
    return {};
  }

  Status add_last(const Gatherer::Last& last, const std::optional<Found>& now,
                  BaseEntry& entry) {
    entry.exact = last.exact;
    bool same = now && identity_of(now->st) == identity_of(last.st);
    bool untouched =
        same && (S_ISDIR(last.st.mode) ||
                 fs::fingerprint_of(now->st) == fs::fingerprint_of(last.st));
    if (!untouched) table_.drifted.push_back(entry.path.str());
    if (untouched || (same && !last.taken)) return describe(*now, entry);
    entry.seen = last.st;
    entry.target = last.target;
    if (last.taken) entry.content = TRY(digest_of_range(last));
    return {};
  }

  Result<Sha256Digest> digest_of_range(const Gatherer::Last& last) {
    fs::ExtentMap map;
    if (last.content.segment != 0)
      map.put({.offset = 0,
               .length = last.content.length,
               .where = fs::Where::kSegment,
               .segment = last.content.segment,
               .at = last.content.at});
    fs::HeldContent content(
        segments_,
        std::make_shared<fs::SealChecks>(
            std::make_shared<const fs::State::SealTable>()),
        std::make_shared<const fs::ExtentMap>(std::move(map)), nullptr, "");
    return digest_of(content, progress_, done_);
  }

  Status describe(const Found& now, BaseEntry& entry) {
    entry.seen = now.st;
    if (S_ISLNK(now.st.mode))
      entry.target = TRY(sys::path_readlink(now.fd.get()));
    if (S_ISREG(now.st.mode))
      entry.content =
          TRY_CTX(digest_of(fs::RealContent(root_, entry.path.str(), now.st),
                            progress_, done_),
                  entry.path.str());
    return {};
  }

  int draft_dir_, base_;
  const Progress& progress_;
  uint64_t done_ = 0;
  RelPath absent_;  // the root: none yet
  std::shared_ptr<fs::Segments> segments_;
  fs::SharedRoot root_;
  BaseTable table_;
};

// One sentence when the file here is not what the draft saw; empty: it is.
Result<std::string> difference(const BaseEntry& entry,
                               const std::optional<Found>& here,
                               const fs::SharedRoot& root,
                               const Progress& progress, uint64_t& done) {
  if (!entry.seen) return std::string(here ? "exists here" : "");
  if (!here) return std::string("is missing here");
  const sys::Stat& seen = *entry.seen;
  const sys::Stat& now = here->st;
  if ((seen.mode & S_IFMT) != (now.mode & S_IFMT))
    return std::string("is another kind of file here");
  if (S_ISREG(seen.mode)) {
    if (seen.size != now.size) return std::string("has other content here");
    if (entry.content) {
      auto digest =
          TRY_CTX(digest_of(fs::RealContent(root, entry.path.str(), now),
                            progress, done),
                  entry.path.str());
      if (digest != *entry.content)
        return std::string("has other content here");
    }
  }
  if (S_ISLNK(seen.mode) &&
      TRY(sys::path_readlink(here->fd.get())) != entry.target)
    return std::string("leads elsewhere here");
  if (entry.exact && (seen.mode & 07777) != (now.mode & 07777) &&
      !S_ISLNK(seen.mode))
    return fmt::format("has mode {:04o} here, not {:04o}", now.mode & 07777,
                       seen.mode & 07777);
  return std::string();
}

}  // namespace

bool Compared::Less::operator()(const fs::Identity& a,
                                const fs::Identity& b) const {
  return std::tie(a.dev, a.ino, a.btime.tv_sec, a.btime.tv_nsec) <
         std::tie(b.dev, b.ino, b.btime.tv_sec, b.btime.tv_nsec);
}

Result<BaseTable> gather_base(int draft_dir, int base, fs::Position until,
                              const Progress& progress,
                              fs::NeededRanges* needed) {
  Gatherer gatherer;
  TRY(gatherer.walk(draft_dir, until, needed));
  return Table(draft_dir, base, progress).make(gatherer);
}

Result<Compared> compare_base(const BaseTable& table, int base,
                              const Progress& progress) {
  Compared out;
  fs::SharedRoot root = TRY(fs::share_root(base));
  uint64_t done = 0;
  for (const BaseEntry& entry : table.entries) {
    auto here = TRY(look(base, entry.path));
    std::string what = TRY(difference(entry, here, root, progress, done));
    if (what.empty() && entry.seen) {
      auto [it, added] = out.files.try_emplace(
          identity_of(*entry.seen),
          Compared::Local{.seen = *entry.seen, .here = here->st});
      // Names of one file there must be names of one file here.
      if (!added && !(identity_of(it->second.here) == identity_of(here->st)))
        what = "is no hard link here";
    }
    if (!what.empty()) out.differences.push_back({entry.path, what});
  }
  return out;
}

std::string encode(const BaseTable& table) {
  std::string out;
  fs::Writer w(out);
  w.u32(table.owner);
  w.u32(table.group);
  w.u32(static_cast<uint32_t>(table.entries.size()));
  for (const BaseEntry& e : table.entries) {
    w.text(e.path.str());
    w.u8(e.seen ? 1 : 0);
    if (!e.seen) continue;
    w.stat(*e.seen);
    w.u8(e.content ? 1 : 0);
    if (e.content) w.raw(e.content->data(), e.content->size());
    w.text(e.target);
    w.u8(e.exact ? 1 : 0);
  }
  return out;
}

Result<BaseTable> decode_base(std::string_view bytes) {
  fs::Reader r(bytes);
  BaseTable table;
  table.owner = r.u32();
  table.group = r.u32();
  uint32_t count = r.u32();
  // Six bytes can make an entry of some hundred: a small file must not become
  // gigabytes of memory.
  if (!r.fits(count, 6) || count > kMaxEntries) r.fail();
  for (uint32_t i = 0; i < count && r.ok(); ++i) {
    auto path = RelPath::parse(r.text());
    if (!path || path->is_root() ||
        (i > 0 && path->str() <= table.entries.back().path.str())) {
      r.fail();
      break;
    }
    BaseEntry& e = table.entries.emplace_back();
    e.path = std::move(*path);
    if (r.u8() == 0) continue;
    e.seen = r.stat();
    if (r.u8() != 0) {
      e.content.emplace();
      r.raw(e.content->data(), e.content->size());
    }
    e.target = r.text();
    e.exact = r.u8() != 0;
  }
  if (!r.done())
    return fail(Code::kCorrupt, "the bundle is damaged: its table of the base");
  return table;
}

}  // namespace stoplog::snapshot
