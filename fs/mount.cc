// SPDX-License-Identifier: Apache-2.0
// The life of a mount: device, session, threads, end.
//
// Readers use a clone of the device (FUSE_DEV_IOC_CLONE), notifications the
// original, in threads with a descriptor table of their own. After kill -9 a
// thread inside of a notification lives on until the page it waits for is
// unlocked, and holds its table open. The clone is in the other table and is
// closed at once, which ends the requests read through it, which unlocks the
// page; should its reader ask again, fs/mount_guard answers. With one device
// or one table for both, such a mount hangs until somebody aborts it.
#include "fs/mount.h"

#include <sys/mount.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/proc_stat.h"
#include "base/sys_process.h"
#include "fs/mount_impl.h"

// Character devices are not served: with this the linker leaves them, and the
// whole of libfuse's other interface, which loads modules, out of the program.
extern "C" void cuse_lowlevel_init() {}

namespace stoplog::fs {
namespace {

ssize_t io_write(int, iovec* parts, int count, void* userdata) {
  return static_cast<MountServer::Impl*>(userdata)->write_reply(parts, count);
}

// Never called: we read by ourselves. libfuse demands that it be there.
ssize_t io_read(int fd, void* buffer, size_t size, void*) {
  return ::read(fd, buffer, size);
}

Result<fuse_session*> new_session(MountServer::Impl& impl, int device) {
  char name[] = "stoplog";
  char* argv[] = {name, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, argv);
  fuse_session* session =
      fuse_session_new(&args, &kMountOps, sizeof kMountOps, &impl);
  fuse_opt_free_args(&args);
  if (session == nullptr)
    return fail(Code::kInternal, "cannot make a FUSE session");
  fuse_custom_io io{};
  io.writev = io_write;
  io.read = io_read;
  if (fuse_session_custom_io(session, &io, device) != 0) {
    fuse_session_destroy(session);
    return fail(Code::kInternal, "cannot set up FUSE input and output");
  }
  return session;
}

}  // namespace

CurrentRequest& current_request() {
  thread_local CurrentRequest request;
  return request;
}

MountServer::Impl::~Impl() {
  tree.set_observer(nullptr);
  // Closes `reader`'s descriptor, which it was given.
  if (session != nullptr) fuse_session_destroy(session);
}

void MountServer::Impl::log(std::string_view line) const {
  if (options.log)
    options.log(line);
  else
    fmt::print(stderr, "stoplog: {}\n", line);
}

void MountServer::Impl::invalidate(std::span<const Invalidation> what) {
  if (watch) {
    for (const auto& one : what) {
      if (one.kind != Invalidation::Kind::kNode) continue;
      if (one.replaced)
        watch->reset(one.node);
      else
        watch->reconsider(one.node);
      if (one.links) static_cast<void>(watch->cover_file(one.node));
    }
  }
  if (notifier) notifier->push(what);
}

// Since Linux 6.16; being told costs nothing but that names are asked again.
bool MountServer::Impl::forgets_names() {
  std::call_once(names_tried, [this] {
    std::string bytes = wire::inc_epoch();
    names_at_once =
        ::write(mounted.device.get(), bytes.data(), bytes.size()) >= 0;
  });
  return names_at_once;
}

// No INTERRUPT tells it (fs/mount_raw.cc). A signal that ends a process is with
// each of its threads as SIGKILL.
bool MountServer::Impl::is_given_up() {
  const CurrentRequest& current = current_request();
  if (!current.raw.valid()) return false;
  return is_killed(static_cast<pid_t>(current.raw.header().pid));
}

void MountServer::Impl::drift(const DriftNote& note) {
  if (options.observer != nullptr) options.observer->drift(note);
}

void MountServer::Impl::lost(const std::string& path) {
  if (options.observer != nullptr) options.observer->lost(path);
}

void MountServer::Impl::denied(const Denial& denial) {
  if (options.observer != nullptr) options.observer->denied(denial);
}

void MountServer::Impl::send(const Invalidation& what) {
  using Kind = Invalidation::Kind;
  std::string bytes =
      what.kind == Kind::kNode ? wire::inval_inode(what.node, 0, 0)
      : what.kind == Kind::kEveryName
          ? wire::inc_epoch()
          : wire::inval_entry(what.node, what.name, what.kind == Kind::kExpire);
  // ENOENT: the kernel does not know it, all is well. ENOTDIR and its like: the
  // name is another thing by now, and was asked anew.
  static_cast<void>(!::write(mounted.device.get(), bytes.data(), bytes.size()));
}

// What the tree told the kernel by name are the nodes that it knows; this is
// for the names that it does not.
void MountServer::Impl::expire_all() {
  std::string bytes = wire::inc_epoch();
  if (::write(mounted.device.get(), bytes.data(), bytes.size()) < 0)
    log("too many changes at once: names that were absent may stay so until "
        "the next mount (Linux 6.16 can be told)");
}

ssize_t MountServer::Impl::write_reply(const iovec* parts, int count) {
  if (count < 1 || parts[0].iov_len < sizeof(fuse_out_header))
    return ::writev(mounted.device.get(), parts, count);
  const CurrentRequest& current = current_request();
  if (current.slot != nullptr) return current.slot->reply(parts, count);
  fuse_out_header header{};
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  bool is_init = header.unique != 0 && header.unique == init_unique &&
                 header.error == 0 && count == 2 &&
                 parts[1].iov_len >= sizeof(fuse_init_out);
  if (!is_init) return ::writev(current.device, parts, count);
  init_unique = 0;
  fuse_init_out out{};
  std::memcpy(&out, parts[1].iov_base, sizeof out);
  return answer_init(parts, out);
}

// With rings in the answer the kernel sends nothing before they are there.
ssize_t MountServer::Impl::answer_init(const iovec* parts, fuse_init_out out) {
  uint64_t extra = wire::extra_init_flags(init_offered);
  if (rings) {
    extra |= init_offered & ring::kInitFlag;
    // There are few threads: looks at names of one directory that hangs, all at
    // once, would take every one of them.
    extra &= ~uint64_t{FUSE_PARALLEL_DIROPS};
  }
  wire::add_init_flags(out, extra);
  setxattr_ext = (extra & FUSE_SETXATTR_EXT) != 0;
  iovec amended[2] = {parts[0], {&out, sizeof out}};
  ssize_t written = ::writev(current_request().device, amended, 2);
  if (rings && written >= 0 && (extra & ring::kInitFlag) != 0)
    rings->go();
  else if (rings)
    rings->stop();
  return written;
}

void MountServer::Impl::serve(const ReaderPool::Request& from) {
  current_request().device = from.device;
  serve_bytes(from.bytes);
}

void MountServer::Impl::serve_bytes(std::span<std::byte> request) {
  CurrentRequest& current = current_request();
  current.raw = wire::Raw(request);
  current.setxattr_flags = 0;
  if (!current.raw.valid()) return;
  fuse_in_header header = current.raw.header();
  ++counts[header.opcode < wire::kOpcodes ? header.opcode : 0];
  if (header.opcode == FUSE_INIT) {
    init_unique = header.unique;
    init_offered = wire::offered_flags(current.raw.argument<fuse_init_in>());
  }
  if (serve_raw(current.raw)) return;
  size_t size = request.size();
  if (header.opcode == FUSE_SETXATTR && setxattr_ext) {
    auto stripped = wire::strip_setxattr_ext(request);
    size = stripped.size;
    current.setxattr_flags = stripped.flags;
  }
  fuse_buf buffer{};
  buffer.mem = request.data();
  buffer.size = size;
  fuse_session_process_buf(session, &buffer);
  // After INIT, which sets it back. A user may not, and reads a little slower.
  if (header.opcode == FUSE_INIT && mounted.minor != 0)
    static_cast<void>(sys::set_read_ahead(mounted.minor, 1024));
}

// Only where a dead daemon's connection can be aborted: what is in a ring's
// hands ends in no other way.
void MountServer::Impl::prepare_rings() {
  if (!guard.can_abort()) return;
  rings = std::make_unique<RingPool>(RingPool::Options{
      .device = fuse_session_fd(session),
      .payload = kMostContent,
      .position = [this] { return pool->position(); },
      .serve =
          [this](RingSlot& slot, std::span<std::byte> request) {
            current_request().slot = &slot;
            serve_bytes(request);
          },
      .log = [this](std::string_view line) { log(line); },
      .failed =
          [this] {
            if (!sys::abort_fuse_connection(mounted.minor))
              static_cast<void>(sys::umount(mounted.path, MNT_FORCE));
          }});
  if (auto ready = rings->prepare(); !ready) {
    log("requests come from the device alone: " + ready.error().text());
    rings.reset();
  }
}

MountServer::MountServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MountServer::~MountServer() { stop(); }

Result<std::unique_ptr<MountServer>> MountServer::create(Tree& tree,
                                                         const MountSpec& spec,
                                                         ServeOptions options) {
  auto impl = std::make_unique<Impl>(tree);
  impl->options = std::move(options);
  const ServeOptions& o = impl->options;
  if (o.watch && o.base >= 0) {
    auto magic = sys::fs_magic(o.base);
    if (magic && reports_changes(*magic)) {
      auto watch = Watch::create(
          tree, {.base = o.base,
                 .most = o.most_watches,
                 .overflowed = [self = impl.get()] { self->expire_all(); }});
      // A desktop's programs can have them all; nothing depends on it but how
      // soon an edit shows.
      bool used_up = !watch && watch.error().err() == EMFILE;
      if (!watch && !used_up) return std::unexpected(std::move(watch).error());
      if (watch) impl->watch = std::move(*watch);
      if (used_up)
        impl->log(
            "the real tree is not watched, its edits show after a "
            "second: no inotify instance is left "
            "(fs.inotify.max_user_instances)");
    }
  }
  impl->mounted = TRY(mount_at(spec));
  auto clone = sys::clone_fuse_device(impl->mounted.device.get());
  // Without permission to open /dev/fuse again (fusermount3 opened it) a
  // second descriptor of the same device serves.
  Fd reader =
      clone ? std::move(*clone) : TRY(sys::dup(impl->mounted.device.get()));
  auto session = new_session(*impl, reader.get());
  if (!session) {
    static_cast<void>(unmount(spec.path, spec.way));
    return std::unexpected(std::move(session).error());
  }
  impl->session = *session;
  static_cast<void>(reader.release());  // the session closes it
  impl->guard =
      TRY(MountGuard::start(impl->mounted, o.rings && sys::fuse_offers_uring()
                                               ? MountGuard::Abort::kIfPossible
                                               : MountGuard::Abort::kNo));
  tree.set_observer(impl.get());
  return std::unique_ptr<MountServer>(new MountServer(std::move(impl)));
}

Status MountServer::start() {
  Impl* self = impl_.get();
  self->tree.start();
  Result<Fd> polled = self->options.polls
                          ? sys::clone_fuse_device(self->mounted.device.get())
                          : fail_errno(ENOSYS);
  if (polled && sys::set_nonblocking(polled->get(), true))
    self->polled = std::move(*polled);
  self->pool = std::make_unique<ReaderPool>(ReaderPool::Options{
      .device = fuse_session_fd(self->session),
      .polled = self->polled.get(),
      .least = self->options.least_readers,
      .is_large = [](auto bytes) { return wire::Raw(bytes).is_large(); },
      .serve = [self](const ReaderPool::Request& r) { self->serve(r); }});
  self->notifier = std::make_unique<Notifier>(Notifier::Options{
      .begin =
          [self] {
            static_cast<void>(sys::keep_only_fd(self->mounted.device.get()));
          },
      .send = [self](const Invalidation& what) { self->send(what); },
      .tick = [self] { return self->pool->tick(); },
      .oldest_busy =
          [self] {
            uint64_t oldest = self->pool->oldest_busy();
            return self->rings ? std::min(oldest, self->rings->oldest_busy())
                               : oldest;
          }});
  self->prepare_rings();
  TRY(self->pool->start());
  self->notifier->start();
  if (self->watch) TRY(self->watch->start());
  self->started = true;
  return {};
}

void MountServer::stop() {
  if (impl_->stopped) return;
  impl_->stopped = true;
  static_cast<void>(unmount(impl_->mounted.path, impl_->mounted.way));
  impl_->tree.end_waits();
  // Readers last: a notification may wait for a request in flight.
  if (impl_->watch) impl_->watch->stop();
  if (impl_->notifier) impl_->notifier->stop();
  if (impl_->rings) impl_->rings->stop();
  if (impl_->pool) impl_->pool->stop();
  impl_->polled.reset();  // the connection ends with its last device
  impl_->guard.end();
  impl_->mounted.device.reset();
  fuse_session_destroy(impl_->session);
  impl_->session = nullptr;
}

int MountServer::ended_fd() const {
  return impl_->pool ? impl_->pool->ended_fd() : -1;
}

bool MountServer::drain(int milliseconds) {
  return !impl_->notifier || impl_->notifier->drain(milliseconds);
}

std::map<std::string, uint64_t> MountServer::request_counts() const {
  std::map<std::string, uint64_t> out;
  for (uint32_t i = 0; i < wire::kOpcodes; ++i) {
    uint64_t count = impl_->counts[i];
    if (count != 0) out[wire::opcode_name(i)] += count;
  }
  return out;
}

uint64_t MountServer::total_requests() const {
  uint64_t total = 0;
  for (const auto& count : impl_->counts) total += count;
  return total - impl_->counts[FUSE_FORGET] - impl_->counts[FUSE_BATCH_FORGET];
}

bool MountServer::over_rings() const {
  return impl_->rings && impl_->rings->serves();
}

WatchStats MountServer::watch_stats() const {
  return impl_->watch ? impl_->watch->stats() : WatchStats{};
}

void MountServer::set_warmer(pid_t process) { impl_->warmer = process; }
uint64_t MountServer::warmed_bytes() const { return impl_->warmed_bytes; }

const Mounted& MountServer::mounted() const { return impl_->mounted; }

}  // namespace stoplog::fs
