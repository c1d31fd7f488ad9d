// SPDX-License-Identifier: Apache-2.0
#include "jail/channel.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace stoplog::jail {
namespace {

bool is_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace

Fd own_stream(int stream, int access) {
  struct stat stat{};
  if (::fstat(stream, &stat) == 0 && S_ISFIFO(stat.st_mode)) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", stream);
    Fd again(::open(path, access | O_NONBLOCK | O_CLOEXEC));
    if (again) return again;
  }
  return Fd(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
}

void Channel::set_sink(Fd sink) {
  // Poll promises room for one page of a pipe; more might block.
  if (!is_nonblocking(sink.get())) burst_ = PIPE_BUF;
  struct stat stat{};
  if (sink && ::fstat(sink.get(), &stat) == 0 && S_ISREG(stat.st_mode))
    burst_ = kSize;
  sink_ = std::move(sink);
}

Channel Channel::input(Fd source, Fd sink) {
  Channel channel;
  channel.set_sink(std::move(sink));
  channel.source_ = std::move(source);
  return channel;
}

void Channel::give_back(int reader) {
  if (::lseek(source_.get(), 0, SEEK_CUR) < 0) return;
  rewind_ = Fd(::fcntl(source_.get(), F_DUPFD_CLOEXEC, 3));
  reader_ = Fd(::fcntl(reader, F_DUPFD_CLOEXEC, 3));
}

Channel Channel::output(Fd source, Fd sink) {
  Channel channel;
  channel.discards_ = !sink;
  channel.set_sink(std::move(sink));
  channel.source_ = std::move(source);
  return channel;
}

int Channel::wants_read() const {
  return begin_ == end_ && (sink_ || discards_) ? source_.get() : -1;
}

int Channel::wants_write() const { return begin_ < end_ ? sink_.get() : -1; }

void Channel::read() {
  if (!source_ || begin_ != end_) return;
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kSize);
  const ssize_t got = ::read(source_.get(), buffer_.get(), kSize);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    // End of file, or EIO from a pty that nobody has open any more. Closing
    // the sink lets the command read its end of file.
    source_.reset();
    sink_.reset();
    return;
  }
  taken_ += static_cast<uint64_t>(got);
  if (limited_) beyond_ += static_cast<uint64_t>(got);
  begin_ = 0;
  end_ = discards_ ? 0 : static_cast<size_t>(got);
}

void Channel::write() {
  if (!sink_ || begin_ == end_) return;
  const size_t most =
      std::min<uint64_t>({end_ - begin_, uint64_t{burst_}, allowed_});
  if (most == 0) {
    beyond_ += end_ - begin_;
    begin_ = end_ = 0;
    return;
  }
  const ssize_t put = ::write(sink_.get(), buffer_.get() + begin_, most);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (put < 0) {
    // Our reader is gone: the writer shall know, as of a broken pipe.
    begin_ = end_ = 0;
    source_.reset();
    sink_.reset();
    return;
  }
  if (watch_ != nullptr)
    watch_->see({buffer_.get() + begin_, static_cast<size_t>(put)});
  begin_ += static_cast<size_t>(put);
  delivered_ += static_cast<uint64_t>(put);
  allowed_ -= static_cast<uint64_t>(put);
  if (begin_ == end_) begin_ = end_ = 0;
}

void Channel::discard() {
  discards_ = true;
  limited_ = static_cast<bool>(sink_);
  beyond_ += end_ - begin_;
  sink_.reset();
  begin_ = end_ = 0;
}

void Channel::close() {
  if (rewind_ && reader_) {
    // It belongs to whoever reads the file next, as in
    // `while read line; do stoplog run ...; done < list`.
    int unread = 0;
    ::ioctl(reader_.get(), FIONREAD, &unread);
    // A command of our own user can open its end for writing and fill it: the
    // caller's file goes back to where we began, and no further.
    const uint64_t back = std::min(
        end_ - begin_ + static_cast<uint64_t>(std::max(unread, 0)), taken_);
    if (back > 0)
      (void)::lseek(rewind_.get(), -static_cast<off_t>(back), SEEK_CUR);
    rewind_.reset();
    reader_.reset();
  }
  begin_ = end_ = 0;
  source_.reset();
  sink_.reset();
}

void Channel::drain() {
  for (;;) {
    while (begin_ < end_ && sink_) {
      pollfd one{sink_.get(), POLLOUT, 0};
      if (::poll(&one, 1, -1) > 0) write();
    }
    if (!source_) return;
    pollfd one{source_.get(), POLLIN, 0};
    // Nothing there now: whoever still holds the other end is not ours.
    if (::poll(&one, 1, 0) <= 0) return;
    read();
  }
}

}  // namespace stoplog::jail
