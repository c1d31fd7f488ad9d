// SPDX-License-Identifier: Apache-2.0
// The floor: a FUSE file system that keeps everything in memory and does
// nothing else, asked by the kernel as stoplog is (OPEN, OPENDIR, FLUSH
// unanswered, long timeouts, files made to be written are direct). What it
// takes is what round trips through FUSE take here; what stoplog takes beyond
// it is stoplog's own.
//
// usage: bench_floor MOUNTPOINT     serves in the foreground until unmounted
//
// One thread. Not a file system to keep anything in: no links, no renames, no
// permissions, nodes are never given back.
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr double kLong = 1e9;

struct Node {
  struct stat attr{};
  std::string content;  // a link's target too
  std::map<std::string, fuse_ino_t> names;
};

std::vector<Node> g_nodes;

Node& node(fuse_ino_t number) { return g_nodes[number]; }

fuse_ino_t make(mode_t mode) {
  Node made;
  made.attr.st_ino = g_nodes.size();
  made.attr.st_mode = mode;
  made.attr.st_nlink = S_ISDIR(mode) ? 2 : 1;
  made.attr.st_uid = getuid();
  made.attr.st_gid = getgid();
  made.attr.st_blksize = 4096;
  clock_gettime(CLOCK_REALTIME_COARSE, &made.attr.st_mtim);
  made.attr.st_ctim = made.attr.st_atim = made.attr.st_mtim;
  g_nodes.push_back(std::move(made));
  return g_nodes.size() - 1;
}

void touch(Node& n) {
  clock_gettime(CLOCK_REALTIME_COARSE, &n.attr.st_mtim);
  n.attr.st_ctim = n.attr.st_mtim;
}

fuse_entry_param shown(fuse_ino_t number) {
  fuse_entry_param e{};
  e.ino = number;
  e.attr = node(number).attr;
  e.attr_timeout = e.entry_timeout = kLong;
  return e;
}

fuse_entry_param add(fuse_ino_t parent, const char* name, mode_t mode) {
  fuse_ino_t number = make(mode);
  node(parent).names[name] = number;
  touch(node(parent));
  return shown(number);
}

void op_init(void*, fuse_conn_info* conn) {
  conn->want = (FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
                FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT) &
               conn->capable;
  conn->max_write = 1u << 20;
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  auto it = node(parent).names.find(name);
  fuse_entry_param e{};
  e.entry_timeout = kLong;
  if (it != node(parent).names.end()) e = shown(it->second);
  fuse_reply_entry(req, &e);
}

void op_getattr(fuse_req_t req, fuse_ino_t number, fuse_file_info*) {
  fuse_reply_attr(req, &node(number).attr, kLong);
}

void op_setattr(fuse_req_t req, fuse_ino_t number, struct stat* attr,
                int to_set, fuse_file_info*) {
  Node& n = node(number);
  if ((to_set & FUSE_SET_ATTR_MODE) != 0)
    n.attr.st_mode = (n.attr.st_mode & S_IFMT) | (attr->st_mode & 07777);
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    n.content.resize(static_cast<size_t>(attr->st_size));
    n.attr.st_size = attr->st_size;
  }
  if ((to_set & FUSE_SET_ATTR_MTIME) != 0) n.attr.st_mtim = attr->st_mtim;
  fuse_reply_attr(req, &n.attr, kLong);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name,
              mode_t mode) {
  auto e = add(parent, name, S_IFDIR | (mode & 07777));
  fuse_reply_entry(req, &e);
}

void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent,
                const char* name) {
  auto e = add(parent, name, S_IFLNK | 0777);
  node(e.ino).content = target;
  fuse_reply_entry(req, &e);
}

void op_readlink(fuse_req_t req, fuse_ino_t number) {
  fuse_reply_readlink(req, node(number).content.c_str());
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* file) {
  auto e = add(parent, name, S_IFREG | (mode & 07777));
  file->direct_io = 1;
  fuse_reply_create(req, &e, file);
}

void op_write(fuse_req_t req, fuse_ino_t number, const char* data, size_t size,
              off_t offset, fuse_file_info*) {
  Node& n = node(number);
  auto at = static_cast<size_t>(offset);
  if (n.content.size() < at + size) n.content.resize(at + size);
  std::memcpy(n.content.data() + at, data, size);
  n.attr.st_size = static_cast<off_t>(n.content.size());
  n.attr.st_blocks = (n.attr.st_size + 511) / 512;
  touch(n);
  fuse_reply_write(req, size);
}

void op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
             fuse_file_info*) {
  const std::string& content = node(number).content;
  auto at = static_cast<size_t>(offset);
  if (at >= content.size())
    fuse_reply_buf(req, nullptr, 0);
  else
    fuse_reply_buf(req, content.data() + at,
                   std::min(size, content.size() - at));
}

void op_remove(fuse_req_t req, fuse_ino_t parent, const char* name) {
  auto it = node(parent).names.find(name);
  if (it == node(parent).names.end()) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  Node& gone = node(it->second);
  if (!gone.names.empty()) {
    fuse_reply_err(req, ENOTEMPTY);
    return;
  }
  gone.content = {};
  gone.attr.st_nlink = 0;
  node(parent).names.erase(it);
  touch(node(parent));
  fuse_reply_err(req, 0);
}

// A chown asks for security.capability: whoever says ENOSYS once is not asked
// again, and has no extended attributes at all.
void op_getxattr(fuse_req_t req, fuse_ino_t, const char*, size_t) {
  fuse_reply_err(req, ENODATA);
}

void op_unanswered(fuse_req_t req, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(req, ENOSYS);
}

// The offset is the number of the entry: nobody removes while somebody lists.
void op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
                fuse_file_info*) {
  std::string out(size, '\0');
  size_t used = 0;
  off_t position = 0;
  for (const auto& [name, child] : node(number).names) {
    if (position++ < offset) continue;
    size_t need = fuse_add_direntry(req, out.data() + used, size - used,
                                    name.c_str(), &node(child).attr, position);
    if (need > size - used) break;
    used += need;
  }
  fuse_reply_buf(req, out.data(), used);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = op_lookup;
  ops.getattr = op_getattr;
  ops.setattr = op_setattr;
  ops.mkdir = op_mkdir;
  ops.symlink = op_symlink;
  ops.readlink = op_readlink;
  ops.create = op_create;
  ops.write = op_write;
  ops.read = op_read;
  ops.unlink = op_remove;
  ops.rmdir = op_remove;
  ops.open = op_unanswered;
  ops.opendir = op_unanswered;
  ops.readdir = op_readdir;
  ops.getxattr = op_getxattr;
  return ops;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bench_floor MOUNTPOINT\n", stderr);
    return 2;
  }
  make(0);               // 0 is no node
  make(S_IFDIR | 0755);  // FUSE_ROOT_ID
  g_nodes.reserve(1 << 20);
  const char* words[] = {argv[0], "-o",
                         "default_permissions,allow_other,fsname=floor"};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(words));
  fuse_lowlevel_ops ops = operations();
  fuse_session* session = fuse_session_new(&args, &ops, sizeof ops, nullptr);
  if (session == nullptr || fuse_session_mount(session, argv[1]) != 0) return 1;
  int ended = fuse_session_loop(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  fuse_opt_free_args(&args);
  return ended == 0 ? 0 : 1;
}
