// SPDX-License-Identifier: Apache-2.0
#include "fs/beneath.h"

#include "base/sys_node.h"
#include "base/sys_within.h"

namespace stoplog::fs {
namespace {

constexpr size_t kPiece = 3900;  // below PATH_MAX, with room for one name

template <typename Open>
Result<Fd> walk(int root, std::string_view path, Open last) {
  Fd held;
  int at = root;
  while (path.size() > kPiece) {
    size_t cut = path.rfind('/', kPiece);
    if (cut == std::string_view::npos) return fail_errno(ENAMETOOLONG);
    Fd next =
        TRY(sys::open_beneath(at, path.substr(0, cut), O_PATH | O_DIRECTORY));
    held = std::move(next);
    at = held.get();
    path.remove_prefix(cut + 1);
  }
  return last(at, path);
}

}  // namespace

Result<Fd> open_deep(int root, std::string_view path, int flags) {
  return walk(root, path, [&](int at, std::string_view rest) {
    return sys::open_beneath(at, rest, flags);
  });
}

Result<Fd> open_deep_quiet(int root, std::string_view path, int flags) {
  return walk(root, path, [&](int at, std::string_view rest) {
    return sys::open_quiet(at, rest, flags);
  });
}

Result<Fd> open_deep_within(int root, std::string_view path, int flags) {
  return walk(root, path, [&](int at, std::string_view rest) {
    return sys::open_within(at, rest, flags);
  });
}

bool is_absence(const Error& error) {
  return error.err() == ENOENT || error.err() == ENOTDIR ||
         error.err() == ELOOP;
}

bool operator==(const Identity& a, const Identity& b) {
  return a.dev == b.dev && a.ino == b.ino && same_time(a.btime, b.btime);
}

bool operator==(const Fingerprint& a, const Fingerprint& b) {
  return a.size == b.size && same_time(a.mtime, b.mtime);
}

Identity identity_of(const sys::Stat& st) {
  return {.dev = st.dev, .ino = st.ino, .btime = st.btime};
}

Fingerprint fingerprint_of(const sys::Stat& st) {
  return {.size = st.size, .mtime = st.mtime};
}

}  // namespace stoplog::fs
