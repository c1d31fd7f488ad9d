// SPDX-License-Identifier: Apache-2.0
#include "fs/real.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys_node.h"

namespace stoplog::fs {
namespace {

// One cache for all views of the process: a change set of 100,000 files must
// not need as many fds.
FdCache& cache() {
  static FdCache instance(128);
  return instance;
}

}  // namespace

Result<SharedRoot> share_root(int root) {
  return std::make_shared<const Fd>(TRY(sys::dup(root)));
}

Type type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return Type::kDir;
    case S_IFLNK:
      return Type::kSymlink;
    case S_IFIFO:
      return Type::kFifo;
    case S_IFSOCK:
      return Type::kSocket;
    case S_IFCHR:
      return Type::kChar;
    case S_IFBLK:
      return Type::kBlock;
    default:
      return Type::kFile;
  }
}

mode_t mode_of(Type type) {
  switch (type) {
    case Type::kDir:
      return S_IFDIR;
    case Type::kSymlink:
      return S_IFLNK;
    case Type::kFifo:
      return S_IFIFO;
    case Type::kSocket:
      return S_IFSOCK;
    case Type::kChar:
      return S_IFCHR;
    case Type::kBlock:
      return S_IFBLK;
    case Type::kFile:
      return S_IFREG;
  }
  return S_IFREG;
}

NodeState plain_state(const sys::Stat& st) {
  NodeState state;
  state.type = type_of(st.mode);
  state.mode = st.mode & 07777;
  state.uid = st.uid;
  state.gid = st.gid;
  state.mtime = st.mtime;
  state.rdev = st.rdev;
  if (state.type == Type::kFile || state.type == Type::kSymlink)
    state.size = st.size;
  if (state.type != Type::kDir && st.nlink > 1)
    // Inode numbers of two devices may meet; mixing the device in keeps
    // strangers apart in one view.
    state.link_group = st.ino ^ (static_cast<uint64_t>(st.dev) << 40);
  return state;
}

bool is_kept_xattr(std::string_view name) {
  return name.starts_with("user.") || name.starts_with("security.") ||
         name == "system.posix_acl_access" ||
         name == "system.posix_acl_default";
}

Result<std::map<std::string, std::string>> read_xattrs(int path_fd) {
  std::map<std::string, std::string> xattrs;
  for (std::string& name : TRY(sys::path_listxattr(path_fd))) {
    if (!is_kept_xattr(name)) continue;
    auto value = sys::path_getxattr(path_fd, name);
    if (value)
      xattrs.emplace(std::move(name), std::move(*value));
    else if (value.error().err() != ENODATA)
      return std::unexpected(std::move(value).error());
  }
  return xattrs;
}

RealContent::RealContent(SharedRoot root, std::string path, const sys::Stat& st)
    : root_(std::move(root)),
      path_(std::move(path)),
      identity_(identity_of(st)),
      print_(fingerprint_of(st)),
      key_(FdCache::fresh_key()) {}

RealContent::~RealContent() { cache().drop(key_); }

Result<FdHandle> RealContent::handle() const {
  if (FdHandle fd = cache().find(key_)) return fd;
  FdCache::Opening opening(cache(), key_);
  auto fd = open_deep_quiet(root_->get(), path_, O_RDONLY | O_NONBLOCK);
  if (!fd && is_absence(fd.error()))
    return std::unexpected(
        Error(Code::kDrift, path_ + " is gone from the real tree", EIO));
  // A file of the user's own that he may not read: what it was cannot be known,
  // and nothing else is to fail for that.
  if (!fd && fd.error().err() == EACCES)
    return std::unexpected(Error(
        Code::kDrift, path_ + " cannot be read in the real tree", EACCES));
  if (!fd) return std::unexpected(std::move(fd).error().context(path_));
  sys::Stat st = TRY(sys::fstat(fd->get()));
  if (!(identity_of(st) == identity_) || !S_ISREG(st.mode))
    return std::unexpected(
        Error(Code::kDrift, path_ + " was replaced in the real tree", EIO));
  return cache().put(opening, std::move(*fd));
}

Result<size_t> RealContent::read(uint64_t offset,
                                 std::span<std::byte> out) const {
  if (offset >= print_.size) return 0;
  out = out.first(std::min<uint64_t>(out.size(), print_.size - offset));
  FdHandle fd = TRY(handle());
  size_t n = TRY(sys::pread_full(fd->get(), out, offset));
  sys::Stat st = TRY(sys::fstat(fd->get()));
  if (!(fingerprint_of(st) == print_) || n != out.size())
    return std::unexpected(
        Error(Code::kDrift, path_ + " was modified in the real tree", EIO));
  return n;
}

std::vector<Content::Range> RealContent::data() const {
  std::vector<Range> ranges;
  auto fd = handle();
  if (!fd) return Content::data();
  for (uint64_t at = 0; at < print_.size;) {
    auto begin = sys::seek((*fd)->get(), at, SEEK_DATA);
    if (!begin) {
      if (begin.error().err() == ENXIO) break;
      return Content::data();
    }
    auto end = sys::seek((*fd)->get(), *begin, SEEK_HOLE);
    if (!end) return Content::data();
    uint64_t stop = std::min(*end, print_.size);
    if (*begin >= stop) break;
    ranges.push_back({*begin, stop - *begin});
    at = stop;
  }
  // Of another file than it was they are to be read, which says so.
  auto st = sys::fstat((*fd)->get());
  if (!st || !(fingerprint_of(*st) == print_)) return Content::data();
  return ranges;
}

Result<std::optional<NodeState>> real_state_at(const SharedRoot& root,
                                               const RelPath& path) {
  auto fd = open_deep(root->get(), path.str(), O_PATH);
  if (!fd && is_absence(fd.error())) return std::nullopt;
  if (!fd) return std::unexpected(std::move(fd).error().context(path.str()));
  sys::Stat st = TRY_CTX(sys::fstat(fd->get()), path.str());
  NodeState state = plain_state(st);
  if (state.type == Type::kSymlink)
    state.target = TRY_CTX(sys::path_readlink(fd->get()), path.str());
  state.xattrs = TRY_CTX(read_xattrs(fd->get()), path.str());
  if (state.type == Type::kFile)
    state.content = std::make_shared<RealContent>(root, path.str(), st);
  return state;
}

Result<std::optional<NodeState>> state_beneath(int root, const RelPath& path) {
  return real_state_at(TRY(share_root(root)), path);
}

Result<std::vector<DirEntry>> list_beneath(int root, const RelPath& path) {
  Fd dir = TRY_CTX(open_deep_quiet(root, path.str(), O_RDONLY | O_DIRECTORY),
                   path.str());
  std::vector<DirEntry> entries;
  std::vector<std::string> untyped;
  TRY(sys::list_dir(
      dir.get(), [&](std::string_view name, unsigned char type, uint64_t) {
        if (type == DT_UNKNOWN)
          untyped.emplace_back(name);
        else
          entries.push_back(
              {std::string(name), type_of(static_cast<mode_t>(DTTOIF(type)))});
      }));
  for (std::string& name : untyped)
    if (auto st = sys::statat(dir.get(), name))
      entries.push_back({std::move(name), type_of(st->mode)});
  std::ranges::sort(entries, {}, &DirEntry::name);
  return entries;
}

}  // namespace stoplog::fs
