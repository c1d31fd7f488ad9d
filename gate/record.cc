// SPDX-License-Identifier: Apache-2.0
#include "gate/record.h"

#include <set>

#include "base/escape.h"
#include "base/hash.h"
#include "base/shown_path.h"
#include "gate/bytes.h"
#include "gate/git_paths.h"

namespace stoplog::gate {
namespace {

constexpr std::string_view kPathsMagic = "stoplog locks 1\n";
constexpr std::string_view kIntentMagic = "stoplog intent 2";
constexpr std::string_view kSwitchMagic = "stoplog switch 3";
constexpr std::string_view kCommitMagic = "stoplog commit 2";
// Without what the directories of stages are known by.
constexpr std::string_view kSwitchMagic2 = "stoplog switch 2";
// Without the times of directories, too, which are last.
constexpr std::string_view kSwitchMagic1 = "stoplog switch 1";
constexpr std::string_view kCommitMagic1 = "stoplog commit 1";

void put(Writer& w, const timespec& t) {
  w.number(static_cast<uint64_t>(t.tv_sec));
  w.number(static_cast<uint64_t>(t.tv_nsec), 4);
}
timespec get_time(Reader& r) {
  timespec t{};
  t.tv_sec = static_cast<time_t>(r.number());
  t.tv_nsec = static_cast<long>(r.number(4));
  return t;
}

void put(Writer& w, const RelPath& path) { w.text(path.str()); }
RelPath get_path(Reader& r, bool& valid) {
  auto path = RelPath::parse(r.text());
  if (!path) valid = false;
  return path ? std::move(*path) : RelPath();
}

void put(Writer& w, const Identity& id) {
  w.number(id.dev);
  w.number(id.ino);
}
Identity get_identity(Reader& r) {
  Identity id;
  id.dev = static_cast<dev_t>(r.number());
  id.ino = r.number();
  return id;
}

void put(Writer& w, const Sha256Digest& digest) {
  w.raw({reinterpret_cast<const char*>(digest.data()), digest.size()});
}
Sha256Digest get_digest(Reader& r) {
  Sha256Digest digest{};
  std::string_view field = r.raw(digest.size());
  if (!field.empty()) std::memcpy(digest.data(), field.data(), digest.size());
  return digest;
}

void put(Writer& w, const Node& node) {
  w.number(static_cast<uint64_t>(node.type), 1);
  w.number(node.mode, 4);
  w.number(node.uid, 4);
  w.number(node.gid, 4);
  put(w, node.mtime);
  w.number(node.rdev);
  w.number(node.size);
  w.text(node.target);
  w.number(node.xattrs.size(), 4);
  for (const auto& [name, value] : node.xattrs) {
    w.text(name);
    w.text(value);
  }
  w.number(node.sha256 ? 1 : 0, 1);
  if (node.sha256) put(w, *node.sha256);
}
Node get_node(Reader& r) {
  Node node;
  node.type = static_cast<fs::Type>(r.number(1));
  node.mode = static_cast<mode_t>(r.number(4));
  node.uid = static_cast<uid_t>(r.number(4));
  node.gid = static_cast<gid_t>(r.number(4));
  node.mtime = get_time(r);
  node.rdev = static_cast<dev_t>(r.number());
  node.size = r.number();
  node.target = r.text();
  for (size_t n = r.count(); n > 0; --n) {
    std::string name(r.text());
    node.xattrs.emplace(std::move(name), r.text());
  }
  if (r.number(1) != 0) node.sha256 = get_digest(r);
  return node;
}

void put(Writer& w, const sys::Stat& s) {
  put(w, Identity{s.dev, s.ino});
  w.number(s.mode, 4);
  w.number(s.nlink, 4);
  w.number(s.uid, 4);
  w.number(s.gid, 4);
  w.number(s.rdev);
  w.number(s.size);
  w.number(s.blocks);
  put(w, s.atime);
  put(w, s.mtime);
  put(w, s.ctime);
  put(w, s.btime);
  w.number(s.mount_id);
}
sys::Stat get_stat(Reader& r) {
  sys::Stat s;
  Identity id = get_identity(r);
  s.dev = id.dev;
  s.ino = id.ino;
  s.mode = static_cast<mode_t>(r.number(4));
  s.nlink = static_cast<uint32_t>(r.number(4));
  s.uid = static_cast<uid_t>(r.number(4));
  s.gid = static_cast<gid_t>(r.number(4));
  s.rdev = static_cast<dev_t>(r.number());
  s.size = r.number();
  s.blocks = r.number();
  s.atime = get_time(r);
  s.mtime = get_time(r);
  s.ctime = get_time(r);
  s.btime = get_time(r);
  s.mount_id = r.number();
  return s;
}

// A presence byte, then the value.
template <typename T>
void put_maybe(Writer& w, const std::optional<T>& value) {
  w.number(value ? 1 : 0, 1);
  if (value) put(w, *value);
}
template <typename Get>
auto get_maybe(Reader& r, Get get) -> std::optional<decltype(get())> {
  if (r.number(1) == 0) return std::nullopt;
  return get();
}

void put(Writer& w, const CommitMeta& m) {
  w.text(m.id);
  w.number(m.number);
  w.text(m.kind);
  w.number(m.undoes);
  put(w, m.time);
  w.text(m.draft);
  w.number(m.position);
  w.text(m.change_digest);
  w.text(m.plan_digest);
  w.text(m.policy_digest);
  w.text(m.user);
  w.text(m.tty);
}
CommitMeta get_meta(Reader& r) {
  CommitMeta m;
  m.id = r.text();
  m.number = r.number();
  m.kind = r.text();
  m.undoes = r.number();
  m.time = get_time(r);
  m.draft = r.text();
  m.position = r.number();
  m.change_digest = r.text();
  m.plan_digest = r.text();
  m.policy_digest = r.text();
  m.user = r.text();
  m.tty = r.text();
  return m;
}

void put(Writer& w, const Item& item) {
  put(w, item.path);
  put_maybe(w, item.from);
  put_maybe(w, item.old);
  put_maybe(w, item.fresh);
  put_maybe(w, item.link_to);
  w.number(item.detach ? 1 : 0, 1);
  w.number(item.rest_held ? 1 : 0, 1);
  put_maybe(w, item.old_stat);
}
Item get_item(Reader& r, bool& valid) {
  Item item;
  auto path = [&] { return get_path(r, valid); };
  item.path = path();
  item.from = get_maybe(r, path);
  item.old = get_maybe(r, [&] { return get_node(r); });
  item.fresh = get_maybe(r, [&] { return get_node(r); });
  item.link_to = get_maybe(r, path);
  item.detach = r.number(1) != 0;
  item.rest_held = r.number(1) != 0;
  item.old_stat = get_maybe(r, [&] { return get_stat(r); });
  return item;
}

void put(Writer& w, const LiveOp& live) {
  w.number(static_cast<uint64_t>(live.op.kind), 1);
  w.number(live.op.item, 4);
  put(w, live.op.path);
  put(w, live.op.from);
  w.number(live.op.slot, 4);
  w.number(live.op.moving ? 1 : 0, 1);
  w.number(live.stage, 4);
  put(w, live.old_id);
  put(w, live.fresh_id);
}
LiveOp get_op(Reader& r, bool& valid) {
  LiveOp live;
  live.op.kind = static_cast<SwitchOp::Kind>(r.number(1));
  live.op.item = static_cast<size_t>(r.number(4));
  live.op.path = get_path(r, valid);
  live.op.from = get_path(r, valid);
  live.op.slot = static_cast<uint32_t>(r.number(4));
  live.op.moving = r.number(1) != 0;
  live.stage = static_cast<uint32_t>(r.number(4));
  live.old_id = get_identity(r);
  live.fresh_id = get_identity(r);
  return live;
}

void put_texts(Writer& w, const std::vector<std::string>& texts) {
  w.number(texts.size(), 4);
  for (const auto& text : texts) w.text(text);
}
std::vector<std::string> get_texts(Reader& r) {
  std::vector<std::string> texts;
  for (size_t n = r.count(); n > 0; --n) texts.emplace_back(r.text());
  return texts;
}
void put_paths(Writer& w, const std::vector<RelPath>& paths) {
  w.number(paths.size(), 4);
  for (const auto& path : paths) put(w, path);
}
std::vector<RelPath> get_paths(Reader& r, bool& valid) {
  std::vector<RelPath> paths;
  for (size_t n = r.count(); n > 0; --n) paths.push_back(get_path(r, valid));
  return paths;
}
void put_stats(Writer& w, const std::vector<std::optional<sys::Stat>>& stats) {
  w.number(stats.size(), 4);
  for (const auto& stat : stats) put_maybe(w, stat);
}
std::vector<std::optional<sys::Stat>> get_stats(Reader& r) {
  std::vector<std::optional<sys::Stat>> stats;
  for (size_t n = r.count(); n > 0; --n)
    stats.push_back(get_maybe(r, [&] { return get_stat(r); }));
  return stats;
}

void put_dirs(Writer& w, const std::vector<DirTimes>& dirs) {
  w.number(dirs.size(), 4);
  for (const DirTimes& dir : dirs) {
    put(w, dir.path);
    put(w, dir.now);
    for (const auto* time : {&dir.before, &dir.want, &dir.after})
      put_maybe(w, *time);
  }
}
std::vector<DirTimes> get_dirs(Reader& r, bool& valid) {
  std::vector<DirTimes> dirs;
  for (size_t n = r.count(); n > 0; --n) {
    DirTimes& dir = dirs.emplace_back();
    dir.path = get_path(r, valid);
    dir.now = get_path(r, valid);
    for (auto* time : {&dir.before, &dir.want, &dir.after})
      *time = get_maybe(r, [&] { return get_time(r); });
  }
  return dirs;
}

// Magic, body, XXH3-64 of both.
std::string seal(const Writer& w) {
  Writer sealed;
  sealed.raw(w.bytes());
  sealed.number(xxh3_64(std::as_bytes(std::span(w.bytes()))));
  return sealed.bytes();
}
Result<std::string_view> unseal(std::string_view bytes,
                                std::string_view magic) {
  if (bytes.size() < magic.size() + 8 || !bytes.starts_with(magic))
    return fail(Code::kCorrupt, "not a record of this kind: {}", magic);
  std::string_view body = bytes.substr(0, bytes.size() - 8);
  Reader check(bytes.substr(body.size()));
  if (check.number() != xxh3_64(std::as_bytes(std::span(body))))
    return fail(Code::kCorrupt, "record check fails: {}", magic);
  return body.substr(magic.size());
}
Status finished(const Reader& r, bool valid, std::string_view magic) {
  if (!r.at_end() || !valid)
    return fail(Code::kCorrupt, "record is malformed: {}", magic);
  return {};
}

}  // namespace

std::string Left::text() const {
  std::string sentence = quote_name(shown_path(path)) + " " + why;
  if (kept)
    sentence += "; its other content is object " + hex(*kept) +
                " (`stoplog cat object:ID`)";
  return sentence;
}

std::string encode_paths(const std::vector<RelPath>& paths) {
  Writer w;
  w.raw(kPathsMagic);
  put_paths(w, paths);
  return seal(w);
}

Result<std::vector<RelPath>> decode_paths(std::string_view bytes) {
  Reader r(TRY(unseal(bytes, kPathsMagic)));
  bool valid = true;
  auto paths = get_paths(r, valid);
  TRY(finished(r, valid, kPathsMagic));
  return paths;
}

std::string encode(const Intent& intent) {
  Writer w;
  w.raw(kIntentMagic);
  w.text(intent.id);
  w.text(intent.draft);
  put(w, intent.root);
  put_paths(w, intent.stages);
  return seal(w);
}

Result<Intent> decode_intent(std::string_view bytes) {
  Reader r(TRY(unseal(bytes, kIntentMagic)));
  bool valid = true;
  Intent intent;
  intent.id = r.text();
  intent.draft = r.text();
  intent.root = get_identity(r);
  intent.stages = get_paths(r, valid);
  TRY(finished(r, valid, kIntentMagic));
  return intent;
}

std::string encode(const SwitchRecord& record) {
  Writer w;
  w.raw(kSwitchMagic);
  put(w, record.meta);
  put(w, record.root);
  w.number(record.stages.size(), 4);
  for (const auto& stage : record.stages) {
    w.number(stage.in_state ? 1 : 0, 1);
    put(w, stage.dir);
    w.number(stage.ino);
    put(w, stage.birth);
  }
  w.number(record.items.size(), 4);
  for (const auto& item : record.items) put(w, item);
  put_texts(w, record.places);
  put_stats(w, record.now);
  w.number(record.ops.size(), 4);
  for (const auto& op : record.ops) put(w, op);
  put_texts(w, record.warnings);
  put_dirs(w, record.dirs);
  return seal(w);
}

Result<SwitchRecord> decode_switch(std::string_view bytes) {
  bool first = bytes.starts_with(kSwitchMagic1);
  bool second = bytes.starts_with(kSwitchMagic2);
  Reader r(TRY(unseal(bytes, first    ? kSwitchMagic1
                             : second ? kSwitchMagic2
                                      : kSwitchMagic)));
  bool valid = true;
  SwitchRecord record;
  record.meta = get_meta(r);
  record.root = get_identity(r);
  for (size_t n = r.count(); n > 0; --n) {
    StagePlace& stage = record.stages.emplace_back();
    stage.in_state = r.number(1) != 0;
    stage.dir = get_path(r, valid);
    if (first || second) continue;
    stage.ino = r.number();
    stage.birth = get_time(r);
  }
  for (size_t n = r.count(); n > 0; --n)
    record.items.push_back(get_item(r, valid));
  record.places = get_texts(r);
  record.now = get_stats(r);
  for (size_t n = r.count(); n > 0; --n) record.ops.push_back(get_op(r, valid));
  record.warnings = get_texts(r);
  if (!first) record.dirs = get_dirs(r, valid);
  for (const LiveOp& live : record.ops)
    if (live.op.item >= record.items.size() ||
        live.stage >= record.stages.size())
      valid = false;
  if (record.places.size() != record.items.size() ||
      record.now.size() != record.items.size())
    valid = false;
  TRY(finished(r, valid, kSwitchMagic));
  return record;
}

std::string encode(const CommitRecord& record) {
  Writer w;
  w.raw(kCommitMagic);
  put(w, record.meta);
  w.number(record.items.size(), 4);
  for (const auto& item : record.items) put(w, item);
  put_stats(w, record.now);
  w.number(record.left.size(), 4);
  for (const Left& left : record.left) {
    put(w, left.path);
    w.text(left.why);
    put_maybe(w, left.kept);
  }
  put_texts(w, record.warnings);
  put_dirs(w, record.dirs);
  return seal(w);
}

Result<CommitRecord> decode_commit(std::string_view bytes) {
  bool first = bytes.starts_with(kCommitMagic1);
  Reader r(TRY(unseal(bytes, first ? kCommitMagic1 : kCommitMagic)));
  bool valid = true;
  CommitRecord record;
  record.meta = get_meta(r);
  for (size_t n = r.count(); n > 0; --n)
    record.items.push_back(get_item(r, valid));
  record.now = get_stats(r);
  for (size_t n = r.count(); n > 0; --n) {
    Left left;
    left.path = get_path(r, valid);
    left.why = r.text();
    left.kept = get_maybe(r, [&] { return get_digest(r); });
    record.left.push_back(std::move(left));
  }
  record.warnings = get_texts(r);
  if (!first) record.dirs = get_dirs(r, valid);
  if (record.now.size() != record.items.size()) valid = false;
  TRY(finished(r, valid, kCommitMagic));
  return record;
}

Result<CommitMeta> decode_commit_meta(std::string_view bytes) {
  bool first = bytes.starts_with(kCommitMagic1);
  Reader r(TRY(unseal(bytes, first ? kCommitMagic1 : kCommitMagic)));
  return get_meta(r);
}

std::vector<fs::BaseChange> CommitRecord::base_changes() const {
  std::vector<fs::BaseChange> changes;
  changes.reserve(items.size());
  std::set<RelPath> standing;
  for (const Item& item : items)
    if (item.fresh) standing.insert(item.path);
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    // Removed to make way for another item, which tells what is there now.
    if (!item.fresh && standing.contains(item.path)) continue;
    fs::BaseChange change;
    change.path = item.path;
    change.now = now[i];
    change.from = item.from;
    change.before = item.old_stat;
    change.rest_held = item.rest_held;
    if (item.old) {
      change.before_target = item.old->target;
      if (item.has_preimage()) change.preimage = item.old->sha256;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

void renumber(std::vector<Item>& items,
              std::vector<std::optional<sys::Stat>>& now,
              const std::map<dev_t, dev_t>& devices) {
  auto moved = [&](std::optional<sys::Stat>& stat) {
    auto device = stat ? devices.find(stat->dev) : devices.end();
    if (device != devices.end()) stat->dev = device->second;
  };
  for (Item& item : items) moved(item.old_stat);
  for (std::optional<sys::Stat>& stat : now) moved(stat);
}

std::vector<Sha256Digest> CommitRecord::preimages() const {
  std::vector<Sha256Digest> ids;
  for (const Item& item : items) {
    if (item.has_preimage() && item.old->sha256)
      ids.push_back(*item.old->sha256);
    // Undo compares an index with the one that was committed, by entries.
    if (item.fresh && item.fresh->sha256 && is_kept_for_undo(item.path))
      ids.push_back(*item.fresh->sha256);
  }
  return ids;
}

}  // namespace stoplog::gate
