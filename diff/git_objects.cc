// SPDX-License-Identifier: Apache-2.0
#include "diff/git_objects.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "diff/content_hash.h"
#include "diff/git_inflate.h"
#include "diff/git_library.h"
#include "diff/git_object.h"
#include "diff/git_pack_index.h"

namespace stoplog::diff {
namespace {

// That each object costs at least: thousands of small ones are work, too.
constexpr uint64_t kPerObject = 1024;
// And each look into a pack's index: thousands of packs make thousands of them.
constexpr uint64_t kPerPack = 64;

std::string loose_name(std::string_view id) {
  return fmt::format("objects/{}/{}", id.substr(0, 2), id.substr(2));
}

}  // namespace

struct GitObjects::Real {
  git_odb* odb = nullptr;
  ~Real() {
    if (odb != nullptr) git_odb_free(odb);
  }
  static bool parse(std::string_view id, git_oid& out) {
    return id.size() == GIT_OID_HEXSZ &&
           git_oid_fromstrn(&out, id.data(), id.size()) == 0;
  }
  bool has(std::string_view id) const {
    git_oid oid;
    return parse(id, oid) &&
           git_odb_exists_ext(odb, &oid, GIT_ODB_LOOKUP_NO_REFRESH) == 1;
  }
  Result<GitObject> read(std::string_view id, uint64_t& left) const {
    git_oid oid;
    size_t size = 0;
    git_object_t type = GIT_OBJECT_INVALID;
    if (!parse(id, oid) || git_odb_read_header(&size, &type, odb, &oid) != 0)
      return fail(Code::kInvalid, "{}", libgit2_error());
    if (size > left) return fail_errno(EFBIG);
    left -= size;
    git_odb_object* object = nullptr;
    if (git_odb_read(&object, odb, &oid) != 0)
      return fail(Code::kInvalid, "{}", libgit2_error());
    GitObject out{git_object_type2string(git_odb_object_type(object)), {}};
    out.data.assign(static_cast<const char*>(git_odb_object_data(object)),
                    git_odb_object_size(object));
    git_odb_object_free(object);
    return out;
  }
};

GitObjects::GitObjects(Place place) : place_(std::move(place)) {}
GitObjects::~GitObjects() = default;

void GitObjects::open_real() {
  if (tried_) return;
  tried_ = true;
  if (place_.real.empty() || place_.format != ObjectFormat::kSha1 ||
      !start_libgit2())
    return;
  auto real = std::make_unique<Real>();
  if (git_odb_open(&real->odb, (place_.real + "/objects").c_str()) == 0)
    real_ = std::move(real);
}

Result<std::shared_ptr<const fs::Content>> GitObjects::content(
    Side side, const std::string& rel) const {
  RelPath path = TRY(RelPath::parse(place_.directory.str() + "/" + rel));
  auto state = TRY(side == Side::kReal ? place_.view.real_state(path)
                                       : place_.view.draft_state(path));
  if (!state || state->type != fs::Type::kFile) return nullptr;
  return state->content;
}

// The draft's are those that the real repository does not have.
const std::vector<Pack>& GitObjects::packs(Side side) {
  auto& out = packs_[static_cast<size_t>(side)];
  bool& opened = opened_[static_cast<size_t>(side)];
  if (opened) return out;
  opened = true;
  auto path = RelPath::parse(place_.directory.str() + "/objects/pack");
  if (!path) return out;
  auto real = place_.view.real_list(*path);
  auto is_real = [&](const std::string& name) {
    return real && std::ranges::any_of(*real, [&](const fs::DirEntry& entry) {
             return entry.name == name;
           });
  };
  auto list =
      side == Side::kReal ? std::move(real) : place_.view.draft_list(*path);
  if (!list) return out;
  uint64_t left = kPackIndexLimit;
  for (const fs::DirEntry& entry : *list) {
    if (!entry.name.ends_with(".pack")) continue;
    std::string rel = "objects/pack/" + entry.name;
    if (side == Side::kDraft && is_real(entry.name)) continue;
    auto pack = content(side, rel);
    auto index = content(side, rel.substr(0, rel.size() - 5) + ".idx");
    if (!pack || !*pack || !index || !*index) continue;
    auto bytes = read_content(**index, left);
    if (!bytes) continue;
    left -= bytes->size();
    auto made = Pack::open(*pack, std::move(*bytes), place_.format);
    if (made) out.push_back(std::move(*made));
  }
  return out;
}

Result<std::optional<GitObject>> GitObjects::find(Side side,
                                                  std::string_view id,
                                                  uint64_t& left) {
  if (auto at = TRY(content(side, loose_name(id))))
    return TRY(read_loose(*at, left));
  auto raw = loose_object_id(loose_name(id));
  for (const Pack& pack : packs(side)) {
    if (left < kPerPack) return fail_errno(EFBIG);
    left -= kPerPack;
    if (auto object = TRY(pack.read(raw.value_or(""), left))) return object;
  }
  return std::nullopt;
}

bool GitObjects::is_real(std::string_view id) {
  if (!is_git_id(id)) return false;
  open_real();
  if (real_) return real_->has(id);
  if (auto at = content(Side::kReal, loose_name(id)); at && *at) return true;
  auto raw = loose_object_id(loose_name(id));
  return std::ranges::any_of(packs(Side::kReal), [&](const Pack& pack) {
    return pack.has(raw.value_or(""));
  });
}

Result<GitObject> GitObjects::read(std::string_view id, std::string_view type,
                                   uint64_t& left) {
  if (!is_git_id(id)) return fail(Code::kInvalid, "no name of an object");
  if (left < kPerObject) return fail_errno(EFBIG);
  left -= kPerObject;
  std::optional<GitObject> object;
  open_real();
  if (real_ && real_->has(id)) object = TRY(real_->read(id, left));
  if (!object && !real_) object = TRY(find(Side::kReal, id, left));
  if (!object) object = TRY(find(Side::kDraft, id, left));
  if (!object)
    return fail_errno(ENOENT, "object {} is missing", id.substr(0, 12));
  if (!type.empty() && object->type != type)
    return fail(Code::kInvalid, "object {} is a {}", id.substr(0, 12),
                object->type);
  std::string name = object_id(place_.format, object->type, object->data);
  if (hex({reinterpret_cast<const unsigned char*>(name.data()), name.size()}) !=
      id)
    return fail(Code::kInvalid, "object {} is not what its name says",
                id.substr(0, 12));
  return std::move(*object);
}

}  // namespace stoplog::diff
