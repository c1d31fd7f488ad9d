// SPDX-License-Identifier: Apache-2.0
#include "fs/past.h"

namespace stoplog::fs {
namespace {

// What an entry takes, map and strings included; rough.
constexpr uint64_t kNodeBytes = 64;
constexpr uint64_t kNameBytes = 96;
constexpr uint64_t kIndexBytes = 32;
constexpr uint64_t kDeletedBytes = 400;

// An image shares most of its content with the present: what that has no more
// is told as it parts from it (keep_parted).
uint64_t weight_of(const Held& node) {
  uint64_t bytes = sizeof(Held) + 96 * node.links.size();
  if (node.base) bytes += sizeof(sys::Stat);
  if (node.body) bytes += sizeof(FileBody) + node.body->map.all().copy_weight();
  for (const auto& [name, value] : node.xattrs)
    bytes += 96 + name.size() + value.size();
  return bytes + node.target.size() + node.lower_path.size();
}

uint64_t content_of(const Held& node) {
  return node.body ? node.body->map.all().weight() : 0;
}

}  // namespace

std::unique_ptr<Held> image_of(Held& node) {
  std::unique_ptr<Held> image;
  if (node.names.empty()) {
    image = std::make_unique<Held>(node);
  } else {
    NameMap names = std::move(node.names);
    node.names.clear();
    image = std::make_unique<Held>(node);
    node.names = std::move(names);
  }
  if (node.body && !node.body->kept)
    image->body =
        std::make_shared<FileBody>(static_cast<const FileContent&>(*node.body));
  return image;
}

void Past::begin(Position mark) {
  if (spans_.size() == kMostSpans) let_oldest_go();
  spans_.emplace_back();
  spans_.back().number = ++last_number_;
  spans_.back().mark = mark;
}

void Past::clear() {
  spans_.clear();
  weight_ = 0;
}

void Past::weigh(uint64_t bytes) {
  spans_.back().weight += bytes;
  weight_ += bytes;
  if (!in_use_) trim();
}

void Past::set_in_use(bool in_use) {
  in_use_ = in_use;
  if (!in_use) trim();
}

// The span that changes go to may be the one that goes: nothing is kept then
// until the next mark.
void Past::trim() {
  while (weight_ > most_bytes_ && !spans_.empty()) let_oldest_go();
}

void Past::let_oldest_go() {
  weight_ -= spans_.front().weight;
  let_go_weight_ += spans_.front().weight;
  let_go_.push_back(std::move(spans_.front()));
  spans_.pop_front();
  while (!let_go_.empty() &&
         weight_ + let_go_weight_ > most_bytes_ + most_bytes_ / 4) {
    let_go_weight_ -= let_go_.front().weight;
    let_go_.pop_front();
  }
}

Past::Spans Past::take_let_go() {
  let_go_weight_ = 0;
  return std::exchange(let_go_, {});
}

void Past::expect(size_t nodes) {
  if (!spans_.empty())
    spans_.back().nodes.reserve(spans_.back().nodes.size() + nodes);
}

// Where the node goes in this span; null when it is known already.
Past::Node* Past::place_for(Held& node) {
  if (spans_.empty() || node.saved == spans_.back().number) return nullptr;
  node.saved = spans_.back().number;
  auto [it, added] = spans_.back().nodes.try_emplace(node.serial);
  return added ? &it->second : nullptr;
}

void Past::keep(Held& node) {
  Node* place = place_for(node);
  if (place == nullptr) return;
  // Without a name it is part of no mark, only of who has it open.
  if (!node.is_dead()) place->image = image_of(node);
  weigh(kNodeBytes + (node.is_dead() ? 0 : weight_of(node)));
}

void Past::keep_leaving(Held& node) {
  Node* place = node.is_dead() ? nullptr : place_for(node);
  if (place == nullptr) return keep(node);
  if (node.body) node.body->kept = true;
  std::vector<Link> links = std::exchange(node.links, {});
  place->image = image_of(node);
  place->image->links = std::move(links);
  weigh(kNodeBytes + weight_of(*place->image));
  keep_parted(content_of(*place->image));
}

void Past::keep_dropped(std::unique_ptr<Held> node) {
  Node* place = node->is_dead() ? nullptr : place_for(*node);
  const uint64_t content = content_of(*node);
  if (place == nullptr) {
    keep(*node);
    keep_names(*node);
    keep_parted(content);
    return;
  }
  if (node->body) node->body->kept = true;
  NameMap names = std::exchange(node->names, {});
  place->image = std::move(node);
  if (!names.empty()) {
    place->names = std::make_unique<Names>();
    place->names->dropped = true;
    place->names->all = std::move(names);
  }
  weigh(kNodeBytes + weight_of(*place->image) +
        (place->names ? kNameBytes * place->names->all.size() : 0));
  keep_parted(content);
}

// Content that the present had as well, and has no more.
void Past::keep_parted(uint64_t bytes) {
  if (!spans_.empty() && bytes > 0) weigh(bytes);
}

void Past::keep_absence(Held& node) {
  if (spans_.empty()) return;
  node.saved = spans_.back().number;
  if (spans_.back().nodes.try_emplace(node.serial).second) weigh(kNodeBytes);
}

void Past::keep_name(const Held& dir, const std::string& name) {
  if (spans_.empty()) return;
  auto it = spans_.back().nodes.find(dir.serial);
  if (it == spans_.back().nodes.end() || !it->second.image) return;
  if (!it->second.names) it->second.names = std::make_unique<Names>();
  Names& names = *it->second.names;
  if (names.dropped) return;
  if (names.changed.try_emplace(name, State::child(dir, name)).second)
    weigh(kNameBytes + name.size());
}

void Past::keep_names(Held& dir) {
  if (spans_.empty()) return;
  auto it = spans_.back().nodes.find(dir.serial);
  if (it == spans_.back().nodes.end() || !it->second.image) return;
  if (!it->second.names) it->second.names = std::make_unique<Names>();
  Names& names = *it->second.names;
  if (names.dropped) return;
  names.dropped = true;
  names.all = std::move(dir.names);
  dir.names.clear();
  weigh(kNameBytes * names.all.size());
}

void Past::keep_deleted(const std::map<std::string, Deleted>& all,
                        const std::string& path) {
  if (spans_.empty()) return;
  auto [it, added] = spans_.back().deleted.try_emplace(path);
  if (!added) return;
  if (auto now = all.find(path); now != all.end()) it->second = now->second;
  weigh(kDeletedBytes);
}

void Past::keep_identity(Serial now, const Identity& identity) {
  if (spans_.empty()) return;
  spans_.back().identities.emplace_back(identity, now);
  weigh(kIndexBytes);
}

void Past::keep_ino(Serial now, uint64_t ino) {
  if (spans_.empty()) return;
  spans_.back().inos.emplace_back(ino, now);
  weigh(kIndexBytes);
}

}  // namespace stoplog::fs
