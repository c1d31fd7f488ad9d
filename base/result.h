// SPDX-License-Identifier: Apache-2.0
// Result<T>, Error and TRY: the one way errors travel.
//
//   Result<Fd> open_log(int dir) {
//     Fd fd = TRY(sys::openat(dir, "log", O_RDONLY));
//     ...
//     return fail(Code::kCorrupt, "bad magic in {}", name);
//   }
//   auto r = open_log(dir);
//   if (!r) report(r.error().context("cannot read the log").text());
//
// An Error is a code (what kind, decides the exit code), an errno (0 when none)
// and a message, outermost context first: "cannot read the log: bad magic".
// Making an Error from an errno alone allocates nothing: the FUSE path does it
// on every absent name.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace stoplog {

enum class Code {
  kErrno,        // a system call failed; err() says how
  kInvalid,      // bad input: a name, a number, a file that is not ours
  kUsage,        // the command line (exit 2)
  kDrift,        // the real tree or change set moved (exit 3)
  kRefused,      // policy or an unapproved danger (exit 4)
  kUnsupported,  // this machine cannot hold what was asked (exit 5)
  kRolledBack,   // failed, everything as before (exit 6)
  kCorrupt,      // stored data fails its check
  kDeclined,     // the user said no (exit 1)
  kInternal,     // a bug in stoplog (exit 70)
};

class Error {
 public:
  explicit Error(int err) : err_(err) {}
  Error(Code code, std::string message, int err = 0)
      : code_(code), err_(err), message_(std::move(message)) {}

  Code code() const { return code_; }
  int err() const { return err_; }
  // errno for a caller that can only take one (FUSE): EIO when there is none.
  int errno_or_eio() const { return err_ != 0 ? err_ : EIO; }
  // "context: message: No such file or directory"
  std::string text() const;
  // The words alone, without errno's: for carrying an error elsewhere.
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

  // Each returns the same error with more said about it.
  Error&& context(std::string_view what) &&;
  Error&& with_hint(std::string hint) &&;
  Error&& as(Code code) &&;

 private:
  Code code_ = Code::kErrno;
  int err_ = 0;
  std::string message_;
  std::string hint_;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> fail_errno(int err) {
  return std::unexpected(Error(err));
}
// fail_errno with words: "cannot open a/b: No such file or directory".
template <typename... Args>
std::unexpected<Error> fail_errno(int err, fmt::format_string<Args...> format,
                                  Args&&... args) {
  return std::unexpected(Error(
      Code::kErrno, fmt::format(format, std::forward<Args>(args)...), err));
}
template <typename... Args>
std::unexpected<Error> fail(Code code, fmt::format_string<Args...> format,
                            Args&&... args) {
  return std::unexpected(
      Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

namespace detail {
template <typename T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail

}  // namespace stoplog

#define STOPLOG_CONCAT2(a, b) a##b
#define STOPLOG_CONCAT(a, b) STOPLOG_CONCAT2(a, b)
#define STOPLOG_TRY(name, expression)                           \
  __extension__({                                               \
    auto name = (expression);                                   \
    if (!name) return std::unexpected(std::move(name).error()); \
    ::stoplog::detail::take(std::move(name));                   \
  })
// The value of a Result, or return its error from the enclosing function.
#define TRY(...) \
  STOPLOG_TRY(STOPLOG_CONCAT(stoplog_try_, __COUNTER__), (__VA_ARGS__))
// The same, with context put before the message.
#define STOPLOG_TRY_CTX(name, expression, what)                               \
  __extension__({                                                             \
    auto name = (expression);                                                 \
    if (!name) return std::unexpected(std::move(name.error()).context(what)); \
    ::stoplog::detail::take(std::move(name));                                 \
  })
#define TRY_CTX(expression, what)                                          \
  STOPLOG_TRY_CTX(STOPLOG_CONCAT(stoplog_try_, __COUNTER__), (expression), \
                  (what))
