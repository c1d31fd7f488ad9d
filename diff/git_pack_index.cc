// SPDX-License-Identifier: Apache-2.0
// The layout is that of gitformat-pack(5), version 2 of the index.
#include "diff/git_pack_index.h"

#include <algorithm>

namespace stoplog::diff {
namespace {

constexpr std::string_view kMagic("\377tOc\0\0\0\2", 8);
constexpr size_t kFanOut = 256 * 4;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string_view pack_index_ids(std::string_view bytes, ObjectFormat format) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kFanOut)
    return {};
  bytes.remove_prefix(kMagic.size());
  // The last number of the fan-out is how many there are.
  uint64_t count = 0;
  for (size_t i = kFanOut - 4; i < kFanOut; i++)
    count = count << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(kFanOut);
  if (count > bytes.size() / id_size(format)) return {};
  return bytes.substr(0, static_cast<size_t>(count) * id_size(format));
}

std::optional<std::string> loose_object_id(std::string_view path) {
  // "objects/" "ab" "/" 38 or 62 digits
  if (!path.starts_with("objects/") ||
      (path.size() != 8 + 2 + 1 + 38 && path.size() != 8 + 2 + 1 + 62) ||
      path[10] != '/')
    return std::nullopt;
  std::string digits = std::string(path.substr(8, 2));
  digits += path.substr(11);
  std::string id;
  for (size_t i = 0; i < digits.size(); i += 2) {
    int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id += static_cast<char>(high * 16 + low);
  }
  return id;
}

MissingObjects::MissingObjects(ObjectFormat format,
                               std::vector<std::string> loose,
                               std::vector<std::string> packs)
    : id_size_(id_size(format)),
      loose_(std::move(loose)),
      packs_(std::move(packs)) {
  for (size_t i = 0; i < loose_.size(); i++)
    items_.push_back({.id = loose_[i], .owner = i});
  for (size_t i = 0; i < packs_.size(); i++) {
    size_t owner = loose_.size() + i;
    std::string_view ids = pack_index_ids(packs_[i], format);
    if (ids.empty()) unreadable_.push_back(owner);
    for (; !ids.empty(); ids.remove_prefix(id_size_))
      items_.push_back({.id = ids.substr(0, id_size_), .owner = owner});
  }
  std::ranges::sort(items_, {}, &Item::id);
}

void MissingObjects::found_in(std::string_view ids) {
  // A search for each: going through all that is missing for each of 60,000
  // small packs took minutes.
  auto item = items_.begin();
  for (; item != items_.end() && !ids.empty(); ids.remove_prefix(id_size_)) {
    std::string_view id = ids.substr(0, id_size_);
    item = std::ranges::lower_bound(item, items_.end(), id, {}, &Item::id);
    // The same id may be missing twice.
    for (; item != items_.end() && item->id == id; ++item) item->found = true;
  }
}

std::vector<size_t> MissingObjects::left() const {
  std::vector<size_t> out = unreadable_;
  for (const Item& item : items_)
    if (!item.found) out.push_back(item.owner);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

}  // namespace stoplog::diff
