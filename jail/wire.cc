// SPDX-License-Identifier: Apache-2.0
#include "jail/wire.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/sys_file.h"
#include "base/unix_socket.h"

namespace stoplog::jail {
namespace {

// Small: the receiver takes this much memory for every packet.
constexpr size_t kPacketLimit = 8 << 10;
// ARG_MAX is 6 MiB at most (3/4 of _STK_LIM); environment and argv together.
constexpr size_t kFileLimit = 64 << 20;
constexpr char kInMemoryFile = 'M';

}  // namespace

Writer& Writer::number(uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out_.append(bytes, sizeof bytes);
  return *this;
}

Writer& Writer::text(std::string_view value) {
  number(value.size());
  out_.append(value);
  return *this;
}

Writer& Writer::list(const std::vector<std::string>& values) {
  number(values.size());
  for (const std::string& value : values) text(value);
  return *this;
}

Message Reader::kind() {
  if (rest_.empty()) {
    ok_ = false;
    return Message::kFailed;
  }
  auto kind = static_cast<Message>(rest_.front());
  rest_.remove_prefix(1);
  return kind;
}

uint64_t Reader::number() {
  uint64_t value = 0;
  if (rest_.size() < sizeof value) {
    ok_ = false;
    return 0;
  }
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

std::string Reader::text() {
  uint64_t size = number();
  if (size > rest_.size()) {
    ok_ = false;
    return {};
  }
  std::string value(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return value;
}

std::vector<std::string> Reader::list() {
  std::vector<std::string> values;
  for (uint64_t left = number(); left > 0 && ok_; --left)
    values.push_back(text());
  return values;
}

std::string encode(const RunRequest& request) {
  return Writer(Message::kRun)
      .list(request.argv)
      .list(request.env)
      .text(request.cwd)
      .number(request.umask)
      .number(request.max_files)
      .number(request.max_processes)
      .number(request.controlling_terminal ? 1 : 0)
      .data();
}

Result<RunRequest> decode_run(std::string_view data) {
  Reader reader(data);
  RunRequest request;
  if (reader.kind() != Message::kRun)
    return fail(Code::kInternal, "not a command");
  request.argv = reader.list();
  request.env = reader.list();
  request.cwd = reader.text();
  request.umask = static_cast<mode_t>(reader.number());
  request.max_files = reader.number();
  request.max_processes = reader.number();
  request.controlling_terminal = reader.number() != 0;
  if (!reader.ok()) return fail(Code::kInternal, "a short command");
  return request;
}

std::string encode(const EndReport& report) {
  return Writer(Message::kEnded)
      .number(static_cast<uint32_t>(report.status))
      .number(report.user_us)
      .number(report.system_us)
      .number(report.max_rss)
      .data();
}

Result<EndReport> decode_end(std::string_view data) {
  Reader reader(data);
  EndReport report;
  if (reader.kind() != Message::kEnded)
    return fail(Code::kInternal, "not a report");
  report.status = static_cast<int>(reader.number());
  report.user_us = reader.number();
  report.system_us = reader.number();
  report.max_rss = reader.number();
  if (!reader.ok()) return fail(Code::kInternal, "a short report");
  return report;
}

std::string encode(const Error& error) {
  // The text carries the errno's words already.
  return Writer(Message::kFailed)
      .number(static_cast<uint64_t>(error.code()))
      .text(error.text())
      .text(error.hint())
      .data();
}

Error decode_error(std::string_view data) {
  Reader reader(data);
  if (reader.kind() != Message::kFailed)
    return Error(Code::kInternal, "an unexpected message from the jail");
  auto code = static_cast<Code>(reader.number());
  std::string text = reader.text();
  std::string hint = reader.text();
  if (!reader.ok()) return Error(Code::kInternal, "a short message");
  return Error(code, std::move(text)).with_hint(std::move(hint));
}

Status send_large(int socket, const std::string& data, std::vector<int> fds) {
  if (data.size() <= kPacketLimit) return send_message(socket, data, fds);
  Fd file(::memfd_create("command", MFD_CLOEXEC));
  if (!file) return fail_errno(errno, "cannot make a memory file");
  TRY(sys::write_full(file.get(), data));
  fds.push_back(file.get());
  return send_message(socket, std::string(1, kInMemoryFile), fds);
}

Result<Packet> receive(int socket) {
  auto received = recv_message(socket, kPacketLimit);
  // Told once when the other end died with something of ours unread. What it
  // said before its death, the reason above all, is still to be had.
  if (!received && received.error().err() == ECONNRESET)
    received = recv_message(socket, kPacketLimit);
  Frame frame = TRY(std::move(received));
  if (frame.data.size() != 1 || frame.data[0] != kInMemoryFile)
    return Packet{std::move(frame.data), std::move(frame.fds)};
  if (frame.fds.empty()) return fail(Code::kInternal, "a lost memory file");
  Fd file = std::move(frame.fds.back());
  frame.fds.pop_back();
  const sys::Stat stat = TRY(sys::fstat(file.get()));
  if (stat.size > kFileLimit) return fail_errno(E2BIG);
  std::string data(stat.size, '\0');
  TRY(sys::pread_full(file.get(), std::as_writable_bytes(std::span(data)), 0));
  return Packet{std::move(data), std::move(frame.fds)};
}

}  // namespace stoplog::jail
