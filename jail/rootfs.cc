// SPDX-License-Identifier: Apache-2.0
#include "jail/rootfs.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>

#include "base/dir.h"
#include "base/relpath.h"
#include "base/sys_file.h"
#include "base/sys_mount.h"

namespace stoplog::jail {
namespace {

constexpr uint64_t kMaxCopy = 4 << 20;
constexpr size_t kMaxNotes = 200;
constexpr uint64_t kMaxNote = 64 << 10;
// An empty directory of the root, to cover others with.
constexpr const char* kEmptyDir = "/dev/mqueue";

uint64_t attributes(uint8_t flags) {
  uint64_t bits = 0;
  if ((flags & kReadOnlyMount) != 0) bits |= MOUNT_ATTR_RDONLY;
  if ((flags & kNoSuidMount) != 0) bits |= MOUNT_ATTR_NOSUID;
  if ((flags & kNoDevMount) != 0) bits |= MOUNT_ATTR_NODEV;
  if ((flags & kNoExecMount) != 0) bits |= MOUNT_ATTR_NOEXEC;
  return bits;
}

Result<Fd> open_bind(const MountOp& op) {
  Fd fd = TRY(sys::clone_tree(AT_FDCWD, op.source.c_str()));
  TRY(sys::add_mount_attributes(fd.get(), attributes(op.flags),
                                sys::Depth::kRecursive));
  return fd;
}

Result<Fd> open_tree_source(const TreeSource& tree, const MountOp& op) {
  Fd fd = tree.mount_fd >= 0
              ? TRY(sys::dup(tree.mount_fd))
              : TRY(sys::clone_tree(AT_FDCWD, tree.path.c_str()));
  TRY(sys::add_mount_attributes(fd.get(), attributes(op.flags),
                                sys::Depth::kRecursive));
  return fd;
}

std::string_view beneath(const std::string& path) {
  std::string_view view = path;
  while (!view.empty() && view.front() == '/') view.remove_prefix(1);
  return view;
}

// Makes `path` exist as a directory, and returns it. Never follows a symlink:
// HOME is durable and the agent's, and may hold one in the way. What is in the
// way of a mount there and no directory is removed.
Result<Fd> make_dir(int root, const std::string& path, mode_t mode) {
  std::string rel(beneath(path));
  if (auto fd = sys::open_beneath(root, rel, O_PATH | O_DIRECTORY)) return fd;
  const RelPath parsed = TRY(RelPath::parse(rel));
  Fd at = TRY(sys::open_beneath(root, ".", O_PATH | O_DIRECTORY));
  const auto parts = parsed.components();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name(parts[i]);
    auto next = sys::open_beneath(at.get(), name, O_PATH | O_DIRECTORY);
    if (!next) {
      const int err = next.error().err();
      if (err == ENOTDIR || err == ELOOP) TRY(sys::unlinkat(at.get(), name));
      const bool last = i + 1 == parts.size();
      TRY(sys::mkdirat(at.get(), name, last ? mode : 0755));
      next = sys::open_beneath(at.get(), name, O_PATH | O_DIRECTORY);
      if (!next) return next;
    }
    at = std::move(*next);
  }
  return at;
}

// The directory in which something is to be made. Most of the plan lies in one
// directory after another, so the last one is kept open.
class Places {
 public:
  explicit Places(int root) : root_(root) {}
  struct Place {
    int parent = -1;
    std::string name;
  };
  Result<Place> of(const std::string& path) {
    const std::string_view rel = beneath(path);
    const size_t slash = rel.rfind('/');
    std::string parent(slash == rel.npos ? "" : rel.substr(0, slash));
    if (!last_ || parent != parent_) {
      last_ = TRY(make_dir(root_, parent, 0755));
      parent_ = std::move(parent);
    }
    return Place{last_.get(), std::string(rel.substr(slash + 1))};
  }
  int root() const { return root_; }
  // After a mount at `path`: what was below it is now something else.
  void forget(const std::string& path) {
    const std::string_view rel = beneath(path);
    if (last_ && parent_.starts_with(rel) &&
        (parent_.size() == rel.size() || parent_[rel.size()] == '/'))
      last_.reset();
  }

 private:
  int root_;
  std::string parent_;
  Fd last_;
};

Status make_file(Places& places, const MountOp& op) {
  const Places::Place place = TRY(places.of(op.target));
  auto file = sys::openat(place.parent, place.name, O_WRONLY | O_CREAT | O_EXCL,
                          op.mode);
  if (!file) {
    // A file of HOME that is there already is the agent's to keep.
    if (file.error().err() == EEXIST && !op.required) return {};
    return std::unexpected(std::move(file).error());
  }
  return sys::write_full(file->get(), op.content);
}

// The same as make_dir() where its parent is at hand: most directories of a
// root are new, and side by side.
Result<Fd> make_dir_at(Places& places, const std::string& path, mode_t mode) {
  const Places::Place place = TRY(places.of(path));
  (void)sys::mkdirat(place.parent, place.name, mode);
  auto fd = sys::open_beneath(place.parent, place.name, O_PATH | O_DIRECTORY);
  if (fd) return fd;
  return make_dir(places.root(), path, mode);
}

Result<Fd> mount_point(Places& places, const MountOp& op, bool is_dir) {
  if (is_dir) return make_dir_at(places, op.target, 0755);
  const Places::Place place = TRY(places.of(op.target));
  TRY(sys::openat(place.parent, place.name, O_WRONLY | O_CREAT | O_NONBLOCK,
                  0644));
  return sys::open_path_beneath(place.parent, place.name);
}

Status attach(Places& places, const MountOp& op, int mount, bool is_dir) {
  Fd target = TRY(mount_point(places, op, is_dir));
  if (is_dir) places.forget(op.target);
  return sys::attach_mount(mount, target.get());
}

Result<Fd> fresh_mount(const MountOp& op) {
  std::vector<sys::MountOption> options;
  const char* type = "tmpfs";
  if (op.kind == MountKind::kTmpfs || op.kind == MountKind::kNotes) {
    options = {{"size", fmt::format("{}", op.size)},
               {"nr_inodes", fmt::format("{}", (op.size >> 12) + 16)},
               {"mode", fmt::format("{:o}", op.mode)}};
  } else if (op.kind == MountKind::kDevpts) {
    type = "devpts";
    options = {{"ptmxmode", "0666"}, {"mode", "0620"}};
  } else {
    type = "proc";
  }
  return sys::new_mount(type, options, attributes(op.flags));
}

Status apply(Places& places, const MountOp& op, const Fd& source,
             BuiltRoot& built) {
  switch (op.kind) {
    case MountKind::kDir:
      TRY(make_dir_at(places, op.target, op.mode));
      return {};
    case MountKind::kLink: {
      const Places::Place place = TRY(places.of(op.target));
      return sys::symlinkat(op.source, place.parent, place.name);
    }
    case MountKind::kFile:
      return make_file(places, op);
    case MountKind::kBind:
    case MountKind::kTree: {
      if (!source) return {};
      // fstat would ask a FUSE server that may not serve yet; a tree is a
      // directory by definition.
      bool is_dir = op.kind == MountKind::kTree;
      if (!is_dir) is_dir = S_ISDIR(TRY(sys::fstat(source.get())).mode);
      return attach(places, op, source.get(), is_dir);
    }
    case MountKind::kTmpfs:
    case MountKind::kDevpts:
    case MountKind::kProc: {
      Fd mount = TRY(fresh_mount(op));
      TRY(attach(places, op, mount.get(), true));
      if (op.kind == MountKind::kTmpfs)
        built.memory.push_back(std::move(mount));
      return {};
    }
    case MountKind::kNotes: {
      // Attached writable, copied, and only then made read-only: the copy,
      // which is attached nowhere, stays the one way to write.
      MountOp writable = op;
      writable.flags &= static_cast<uint8_t>(~kReadOnlyMount);
      Fd mount = TRY(fresh_mount(writable));
      TRY(attach(places, op, mount.get(), true));
      built.notes = TRY(sys::clone_tree(mount.get(), ""));
      return sys::add_mount_attributes(mount.get(), MOUNT_ATTR_RDONLY,
                                       sys::Depth::kOne);
    }
    default:
      return fail(Code::kInternal, "not a step of a root");
  }
}

Status explain(Status status, const MountOp& op) {
  if (status) return status;
  return std::unexpected(
      std::move(status.error())
          .context(
              fmt::format("cannot build the jail's root ({})", describe(op)))
          .as(Code::kUnsupported)
          .with_hint("'stoplog doctor' tells what this machine lacks"));
}

// A note that cannot be read is not worth a jail.
void read_notes(const std::string& path, std::vector<HomeFile>& notes) {
  auto fd = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!fd) return;
  const int at = fd->get();
  Dir dir = Dir::from(std::move(*fd));
  while (notes.size() < kMaxNotes) {
    auto entry = dir.next();
    if (!entry || *entry == nullptr) return;
    const std::string name((*entry)->name);
    auto text = sys::read_file(at, name, kMaxNote);
    if (text) notes.push_back({.path = name, .content = std::move(*text)});
  }
}

// The new root must stand on a mount point of the old one. Everything that is
// needed of the old tree is open by now, so what it covers does not matter.
Result<Fd> new_root() {
  const std::array<sys::MountOption, 2> options = {
      {{"size", "32m"}, {"mode", "755"}}};
  Fd root = TRY(
      sys::new_mount("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  for (const char* place : {"/tmp", "/usr", "/mnt"}) {
    auto at = sys::openat(AT_FDCWD, place, O_PATH | O_DIRECTORY);
    if (!at) continue;
    TRY(sys::attach_mount(root.get(), at->get()));
    return sys::openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY);
  }
  return fail(Code::kUnsupported, "there is no /tmp to build a root on");
}

}  // namespace

Result<OpenedPlan> open_sources(const JailSpec& spec,
                                std::vector<MountOp> plan) {
  OpenedPlan opened;
  opened.ops = std::move(plan);
  opened.sources.resize(opened.ops.size());
  for (size_t i = 0; i < opened.ops.size(); ++i) {
    MountOp& op = opened.ops[i];
    Result<Fd> fd = Fd();
    if (op.kind == MountKind::kBind) {
      fd = open_bind(op);
    } else if (op.kind == MountKind::kTree) {
      fd = open_tree_source(
          op.source == "home" ? spec.home_tree : spec.workspace_tree, op);
    } else if (op.kind == MountKind::kCopy) {
      auto text = sys::read_file(AT_FDCWD, op.source, kMaxCopy);
      if (text) op.content = std::move(*text);
      op.kind = MountKind::kFile;
      if (!text) fd = std::unexpected(std::move(text).error());
    } else if (op.kind == MountKind::kNotes && !op.source.empty()) {
      read_notes(op.source, opened.notes);
    }
    if (fd) {
      opened.sources[i] = std::move(*fd);
    } else if (op.required) {
      return std::unexpected(std::move(
          explain(std::unexpected(std::move(fd).error()), op).error()));
    } else {
      opened.left_out.push_back(op.source);
    }
  }
  return opened;
}

Result<BuiltRoot> build_root(OpenedPlan plan) {
  Fd root = TRY(new_root());
  BuiltRoot built;
  TRY(make_dir(root.get(), kEmptyDir, 0555));
  Places places(root.get());
  for (size_t i = 0; i < plan.ops.size(); ++i)
    TRY(explain(apply(places, plan.ops[i], plan.sources[i], built),
                plan.ops[i]));
  TRY_CTX(sys::add_mount_attributes(root.get(), MOUNT_ATTR_RDONLY,
                                    sys::Depth::kOne),
          "cannot make the jail's root read-only");
  TRY_CTX(sys::enter_root(root.get()), "cannot enter the jail's root");
  for (const HomeFile& note : plan.notes)
    TRY(write_note(built.notes.get(), note.path, note.content));
  return built;
}

Status write_note(int notes, const std::string& name,
                  const std::string& content) {
  if (!is_valid_name(name)) return fail_errno(EINVAL);
  Fd file = TRY(sys::openat(notes, name, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return sys::write_full(file.get(), content);
}

Status build_proc(const std::vector<MountOp>& plan) {
  for (const MountOp& op : plan) {
    Status done;
    const char* target = op.target.c_str();
    if (op.kind == MountKind::kProc) {
      done = [&]() -> Status {
        Fd mount = TRY(fresh_mount(op));
        Fd at = TRY(sys::openat(AT_FDCWD, target, O_PATH | O_DIRECTORY));
        return sys::attach_mount(mount.get(), at.get());
      }();
    } else if (op.kind == MountKind::kProtect) {
      done = sys::bind_over(target, target);
      if (done)
        done = sys::remount_bind_read_only(target,
                                           MS_NOSUID | MS_NODEV | MS_NOEXEC);
    } else if (op.kind == MountKind::kMask) {
      done =
          sys::bind_over(op.source == "dir" ? kEmptyDir : "/dev/null", target);
    }
    TRY(explain(std::move(done), op));
  }
  return {};
}

}  // namespace stoplog::jail
