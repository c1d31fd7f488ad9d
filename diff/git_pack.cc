// SPDX-License-Identifier: Apache-2.0
// The layout is that of gitformat-pack(5).
#include "diff/git_pack.h"

#include <algorithm>
#include <cerrno>

#include "diff/git_inflate.h"
#include "diff/git_pack_index.h"

namespace stoplog::diff {
namespace {

constexpr size_t kHead = 8 + 256 * 4;    // of an index
constexpr uint64_t kLive = 64ull << 20;  // bytes of bases at one time
constexpr uint64_t kPerObject = 256;     // that each costs at least
constexpr size_t kDepth = 4096;  // of deltas; git makes 50, at most 4095
constexpr unsigned kOffsetDelta = 6, kNameDelta = 7;

uint64_t big(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::string_view type_name(unsigned type) {
  constexpr std::string_view kNames[] = {"", "commit", "tree", "blob", "tag"};
  return type < std::size(kNames) ? kNames[type] : "";
}

std::unexpected<Error> bad(std::string_view what) {
  return fail(Code::kInvalid, "a pack is damaged: {}", what);
}

}  // namespace

Result<Pack> Pack::open(std::shared_ptr<const fs::Content> pack,
                        std::string index, ObjectFormat format) {
  Pack out;
  out.format_ = format;
  out.id_size_ = id_size(format);
  std::string_view ids = pack_index_ids(index, format);
  if (index.size() < kHead || (ids.empty() && big(index, kHead - 4, 4) != 0))
    return bad("no index");
  out.count_ = ids.size() / out.id_size_;
  uint64_t fixed = kHead + out.count_ * (out.id_size_ + 8) + 2 * out.id_size_;
  if (index.size() < fixed || (index.size() - fixed) % 8 != 0)
    return bad("its index has another size");
  out.large_ = (index.size() - static_cast<size_t>(fixed)) / 8;
  out.index_ = std::move(index);
  out.pack_ = std::move(pack);
  std::string head(12, '\0');
  TRY(read_bytes(*out.pack_, 0, head));
  uint64_t version = big(head, 4, 4);
  if (!head.starts_with("PACK") || version < 2 || version > 3 ||
      big(head, 8, 4) != out.count_)
    return bad("not the one of its index");
  TRY(out.check_index());
  return out;
}

// git looks a name up by halving between two numbers of the fan-out: in
// disorder it would find other names than we do.
Status Pack::check_index() const {
  size_t before = 0;
  for (size_t byte = 0, at = 0; byte < 256; byte++) {
    size_t upto = static_cast<size_t>(big(index_, 8 + byte * 4, 4));
    if (upto < before || upto > count_) return bad("its index is in disorder");
    for (; at < upto; at++)
      if (static_cast<unsigned char>(id_at(at)[0]) != byte ||
          (at > 0 && id_at(at - 1) >= id_at(at)))
        return bad("its index is in disorder");
    before = upto;
  }
  for (size_t i = 0; i < count_; i++)
    if (offset_at(i) >= pack_->size()) return bad("an offset is beyond it");
  return {};
}

std::string_view Pack::id_at(size_t number) const {
  return std::string_view(index_).substr(kHead + number * id_size_, id_size_);
}

uint64_t Pack::offset_at(size_t number) const {
  size_t table = kHead + count_ * (id_size_ + 4);
  uint64_t offset = big(index_, table + number * 4, 4);
  if ((offset & 0x80000000) == 0) return offset;
  size_t far = static_cast<size_t>(offset & 0x7fffffff);
  return far < large_ ? big(index_, table + count_ * 4 + far * 8, 8)
                      : UINT64_MAX;
}

std::optional<size_t> Pack::find(std::string_view id) const {
  size_t low = 0, high = count_;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (id_at(middle) < id)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == count_ || id_at(low) != id) return std::nullopt;
  return low;
}

void Pack::sort_offsets() const {
  if (by_offset_.size() == count_) return;
  by_offset_.reserve(count_);
  for (size_t i = 0; i < count_; i++)
    by_offset_.emplace_back(offset_at(i), static_cast<uint32_t>(i));
  std::sort(by_offset_.begin(), by_offset_.end());
}

// Needs sort_offsets().
Result<Pack::Entry> Pack::entry_at(uint64_t offset) const {
  std::string bytes(48, '\0');
  bytes.resize(TRY(read_some(*pack_, offset, bytes)));
  size_t at = 0;
  auto next = [&]() -> unsigned {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at++]) : 0x100u;
  };
  Entry entry;
  entry.offset = offset;
  unsigned c = next();
  entry.type = c >> 4 & 7;
  entry.size = c & 15;
  for (unsigned shift = 4; (c & 0x80) != 0; shift += 7) {
    c = next();
    if (shift > 53) return bad("a size is too long");
    entry.size |= uint64_t{c & 0x7f} << shift;
  }
  if (entry.type == kOffsetDelta) {
    c = next();
    uint64_t back = c & 0x7f;
    for (int i = 0; (c & 0x80) != 0; i++) {
      c = next();
      if (i == 8) return bad("a distance is too long");
      back = (back + 1) << 7 | (c & 0x7f);
    }
    if (back == 0 || back > offset) return bad("a delta of nothing");
    auto base = std::ranges::lower_bound(
        by_offset_, std::pair<uint64_t, uint32_t>(offset - back, 0));
    if (base == by_offset_.end() || base->first != offset - back)
      return bad("a delta of nothing");
    entry.base = base->second;
  } else if (entry.type == kNameDelta) {
    if (bytes.size() - at < id_size_) return bad("an entry is cut off");
    auto base = find(std::string_view(bytes).substr(at, id_size_));
    if (!base) return bad("a delta of what it does not have");
    entry.base = static_cast<int64_t>(*base);
    at += id_size_;
  } else if (type_name(entry.type).empty()) {
    return bad("an object of no type");
  }
  if (c > 0xff) return bad("an entry is cut off");
  entry.data = offset + at;
  return entry;
}

Result<std::vector<Pack::Entry>> Pack::entries(uint64_t& left) const {
  if (count_ > left / kPerObject) return fail_errno(EFBIG);
  left -= count_ * kPerObject;
  sort_offsets();
  std::vector<Entry> out(count_);
  for (auto [offset, number] : by_offset_) out[number] = TRY(entry_at(offset));
  return out;
}

Result<std::string> Pack::inflate_at(const Entry& entry, uint64_t& left) const {
  if (entry.size > left || entry.size > kLive) return fail_errno(EFBIG);
  std::string out;
  out.reserve(static_cast<size_t>(entry.size));
  TRY(inflate_from(*pack_, entry.data, left, [&](std::string_view piece) {
    out += piece;
    return out.size() <= entry.size;
  }));
  if (out.size() != entry.size) return bad("an object has another size");
  return out;
}

// Without having it in memory.
Verdict Pack::hash_at(const Entry& entry, std::string_view id,
                      uint64_t& left) const {
  ObjectHash hash(format_);
  hash.update(fmt::format("{} {}", type_name(entry.type), entry.size));
  hash.update(std::string_view("\0", 1));
  uint64_t size = 0;
  auto done = inflate_from(*pack_, entry.data, left, [&](std::string_view p) {
    hash.update(p);
    size += p.size();
    return size <= entry.size;
  });
  if (!done)
    return done.error().code() == Code::kInvalid ? Verdict::kFalse
                                                 : Verdict::kUnknown;
  return size == entry.size && hash.finish() == id ? Verdict::kTrue
                                                   : Verdict::kFalse;
}

// From each whole object to what is a delta of it, and so on: every object is
// built once, and in memory are those alone that lie between.
Verdict Pack::check(uint64_t& left) const {
  auto verdict_of = [](const Error& error) {
    return error.code() == Code::kInvalid ? Verdict::kFalse : Verdict::kUnknown;
  };
  auto all = entries(left);
  if (!all) return verdict_of(all.error());
  // Deltas by what they are deltas of.
  std::vector<uint32_t> deltas;
  for (size_t i = 0; i < all->size(); i++)
    if ((*all)[i].base >= 0) deltas.push_back(static_cast<uint32_t>(i));
  auto base_of = [&](uint32_t i) { return (*all)[i].base; };
  std::ranges::sort(deltas, {}, base_of);
  auto deltas_of = [&](size_t i) {
    auto range =
        std::ranges::equal_range(deltas, static_cast<int64_t>(i), {}, base_of);
    return std::pair(static_cast<size_t>(range.begin() - deltas.begin()),
                     static_cast<size_t>(range.end() - deltas.begin()));
  };
  struct Frame {
    std::string data;
    size_t next, end;  // of `deltas`
  };
  size_t seen = 0;
  for (size_t root = 0; root < all->size(); root++) {
    const Entry& whole = (*all)[root];
    if (whole.base >= 0) continue;
    seen++;
    auto [first, last] = deltas_of(root);
    if (first == last) {
      Verdict verdict = hash_at(whole, id_at(root), left);
      if (verdict != Verdict::kTrue) return verdict;
      continue;
    }
    auto data = inflate_at(whole, left);
    if (!data) return verdict_of(data.error());
    std::string_view type = type_name(whole.type);
    if (object_id(format_, type, *data) != id_at(root)) return Verdict::kFalse;
    uint64_t live = data->size();
    std::vector<Frame> path;
    path.push_back({std::move(*data), first, last});
    while (!path.empty()) {
      Frame& top = path.back();
      if (top.next == top.end) {
        live -= top.data.size();
        path.pop_back();
        continue;
      }
      size_t number = deltas[top.next++];
      auto delta = inflate_at((*all)[number], left);
      if (!delta) return verdict_of(delta.error());
      auto made = apply_delta(top.data, *delta, std::min(left, kLive - live));
      if (!made) return verdict_of(made.error());
      left -= made->size();
      if (object_id(format_, type, *made) != id_at(number))
        return Verdict::kFalse;
      seen++;
      auto [from, to] = deltas_of(number);
      if (from == to) continue;
      if (path.size() == kDepth) return Verdict::kUnknown;
      live += made->size();
      path.push_back({std::move(*made), from, to});
    }
  }
  // What was not reached is a delta of itself.
  return seen == all->size() ? Verdict::kTrue : Verdict::kFalse;
}

Result<std::optional<GitObject>> Pack::read(std::string_view id,
                                            uint64_t& left) const {
  auto number = find(id);
  if (!number) return std::nullopt;
  sort_offsets();
  std::vector<Entry> chain{TRY(entry_at(offset_at(*number)))};
  while (chain.back().base >= 0) {
    if (chain.size() == kDepth) return fail_errno(EFBIG);
    chain.push_back(
        TRY(entry_at(offset_at(static_cast<size_t>(chain.back().base)))));
  }
  GitObject object{std::string(type_name(chain.back().type)),
                   TRY(inflate_at(chain.back(), left))};
  for (size_t i = chain.size() - 1; i-- > 0;) {
    std::string delta = TRY(inflate_at(chain[i], left));
    object.data = TRY(apply_delta(object.data, delta, std::min(left, kLive)));
    left -= object.data.size();
  }
  return object;
}

}  // namespace stoplog::diff
