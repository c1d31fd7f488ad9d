// SPDX-License-Identifier: Apache-2.0
// Going back to a mark by what was kept of it (fs/past.h). It is a change like
// any other: what it replaces is kept in its turn, so that going back to where
// one came from costs no more.
#include <algorithm>

#include "fs/past.h"

namespace stoplog::fs {

// One node as it was: the oldest of what the spans since the mark know of it.
struct State::Target {
  const Past::Node* node = nullptr;
  // Names: those of the present, or these, and over them `changed`.
  const NameMap* all = nullptr;
  using Changed = std::unordered_map<std::string, std::optional<Serial>>;
  std::unique_ptr<Changed> changed{};
};

namespace {

uint64_t bytes_of(const Held& node) {
  return node.body ? node.body->map.segment_bytes() : 0;
}

bool has_same_content(const Held& a, const Held& b) {
  if (a.body == b.body) return true;
  if (!a.body || !b.body) return false;
  return a.body->map.size() == b.body->map.size() &&
         a.body->map.all() == b.body->map.all();
}

}  // namespace

void State::remember() {
  if (!past_) past_ = std::make_unique<Past>();
}

bool State::can_go_back(Position to) const {
  if (!past_) return false;
  for (const Past::Span& span : past_->spans())
    if (span.mark == to) return true;
  return false;
}

std::shared_ptr<void> State::take_let_go() {
  if (!past_) return nullptr;
  Past::Spans spans = past_->take_let_go();
  if (spans.empty()) return nullptr;
  return std::make_shared<Past::Spans>(std::move(spans));
}

FileBody& State::own_body(Held& node) {
  if (node.body->kept)
    node.body =
        std::make_shared<FileBody>(static_cast<const FileContent&>(*node.body));
  return *node.body;
}

void State::weigh_parted(FileBody& body) {
  const uint64_t parted = body.map.take_parted();
  if (past_) past_->keep_parted(parted);
}

void State::own_body(Serial serial) {
  auto it = nodes_.find(serial);
  if (it != nodes_.end() && it->second->body) own_body(*it->second);
}

State::Targets State::targets_of(Position to) const {
  Targets targets;
  size_t most = 0;
  for (const Past::Span& span : past_->spans())
    if (span.mark >= to) most = std::max(most, span.nodes.size());
  targets.reserve(most);
  for (auto span = past_->spans().rbegin();; ++span) {
    for (const auto& [serial, node] : span->nodes) {
      Target& target = targets[serial];
      target.node = &node;
      const Past::Names* names = node.names.get();
      // Not there at that time, or dropped after it: what the names were later
      // says nothing.
      if (!node.image || (names != nullptr && names->dropped)) {
        target.changed.reset();
        target.all = names != nullptr ? &names->all : nullptr;
      }
      if (!node.image || names == nullptr || names->changed.empty()) continue;
      if (!target.changed) target.changed = std::make_unique<Target::Changed>();
      for (const auto& [name, before] : names->changed)
        target.changed->insert_or_assign(name, before);
    }
    if (span->mark == to) return targets;
  }
}

State::WentBack State::go_back(Position to,
                               const std::function<bool(Serial)>& is_known) {
  WentBack out;
  past_->set_in_use(true);
  Targets targets = targets_of(to);
  past_->expect(targets.size());
  // Paths of the base as they are while all names still stand.
  std::unordered_map<Serial, std::string> origins;
  for (const auto& [serial, target] : targets) {
    if (target.node->image) continue;
    const Held* node = find(serial);
    if (node != nullptr && node->base && node->lower_path.empty())
      origins.emplace(serial, origin_of(*node).value_or(""));
  }
  for (const auto& [serial, target] : targets) {
    auto origin = origins.find(serial);
    if (target.node->image)
      restore_node(serial, target, out);
    else
      vanish(serial, is_known(serial),
             origin != origins.end() ? origin->second : "", out);
  }
  restore_tables(to);
  targets.clear();
  past_->set_in_use(false);
  ++epoch_;
  base_changes_.clear();
  forget_command();
  return out;
}

// It was not there: what the kernel knows stays without a name.
void State::vanish(Serial serial, bool is_known, const std::string& origin,
                   WentBack& out) {
  auto it = nodes_.find(serial);
  if (it == nodes_.end()) return;
  Held* node = it->second.get();
  out.vanished.push_back(serial);
  for (const auto& [name, child] : node->names)
    out.names.emplace_back(serial, name);
  if (!is_known) {
    live_bytes_ -= std::min(live_bytes_, bytes_of(*node));
    uncount_beside(*node);
    past_->keep_dropped(std::move(it->second));
    nodes_.erase(it);
    return;
  }
  uncount_beside(*node);
  past_->keep_leaving(*node);
  past_->keep_names(*node);
  node->names.clear();
  node->unwritten = true;
  ++node->version;
  node->links.clear();
  count_beside(*node);
  if (node->lower_path.empty()) node->lower_path = origin;
  // stat shows no links.
  node->nlink_delta = node->base ? -static_cast<int32_t>(node->base->nlink) : 0;
}

void State::restore_node(Serial serial, const Target& target, WentBack& out) {
  if (target.node->image->body) target.node->image->body->kept = true;
  std::unique_ptr<Held> was = image_of(*target.node->image);
  Held* node = edit(serial);
  // The kernel has what it was when it vanished, which may be another moment.
  bool returns = node != nullptr && node->unwritten && !node->is_dir() &&
                 has_same_content(*node, *was);
  if (node != nullptr) {
    live_bytes_ -= std::min(live_bytes_, bytes_of(*node));
    uncount_beside(*node);
    if (node->body && node->body != was->body)
      past_->keep_parted(node->body->map.all().weight());
  }
  live_bytes_ += bytes_of(*was);
  count_beside(*was);
  (returns ? out.returned : out.changed).push_back(serial);
  uint64_t version = was->version;
  if (node == nullptr) {
    past_->keep_absence(*was);
    if (target.all != nullptr) was->names = *target.all;
    node = nodes_.emplace(serial, std::move(was)).first->second.get();
  } else {
    version = node->version;
    uint64_t saved = node->saved;
    was->names = std::move(node->names);
    *node = std::move(*was);
    node->saved = saved;
    if (target.all != nullptr) {
      std::vector<std::string> now;
      for (const auto& [name, child] : node->names)
        if (!target.all->contains(name)) now.push_back(name);
      for (const std::string& name : now) {
        set_name(*node, name, {});
        out.names.emplace_back(serial, name);
      }
      for (const auto& [name, child] : *target.all) {
        if (State::child(*node, name) == child) continue;
        set_name(*node, name, child);
        out.names.emplace_back(serial, name);
      }
    }
  }
  node->version = version + 1;  // listings of it are old
  if (!target.changed) return;
  for (const auto& [name, before] : *target.changed) {
    if (State::child(*node, name) == before) continue;
    set_name(*node, name, before);
    out.names.emplace_back(serial, name);
  }
}

void State::restore_tables(Position to) {
  std::map<std::string, std::optional<Deleted>> deleted;
  // What was replaced first is put back last. Putting it back is kept in the
  // newest span, behind what is read of it here.
  std::vector<std::pair<Identity, Serial>> identities;
  std::vector<std::pair<uint64_t, Serial>> inos;
  for (auto span = past_->spans().rbegin();; ++span) {
    for (const auto& [path, before] : span->deleted)
      deleted.insert_or_assign(path, before);
    identities.insert(identities.end(), span->identities.rbegin(),
                      span->identities.rend());
    inos.insert(inos.end(), span->inos.rbegin(), span->inos.rend());
    if (span->mark == to) break;
  }
  for (auto& [path, before] : deleted) set_deleted(path, std::move(before));
  for (const auto& [identity, serial] : identities)
    if (by_identity(identity) != serial) set_identity(identity, serial);
  for (const auto& [ino, serial] : inos)
    if (by_ino(ino) != serial) set_ino(ino, serial);
}

}  // namespace stoplog::fs
