// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstring>

namespace stoplog {

std::string Error::text() const {
  std::string out = message_;
  if (err_ != 0) {
    if (!out.empty()) out += ": ";
    const char* words = ::strerrordesc_np(err_);
    if (err_ == EINTR) words = "interrupted";  // Ctrl-C (base/interrupt.h)
    out += words != nullptr ? words : fmt::format("errno {}", err_);
  }
  return out.empty() ? "unknown error" : out;
}

Error&& Error::context(std::string_view what) && {
  message_ = message_.empty() ? std::string(what)
                              : fmt::format("{}: {}", what, message_);
  return std::move(*this);
}

Error&& Error::with_hint(std::string hint) && {
  hint_ = std::move(hint);
  return std::move(*this);
}

Error&& Error::as(Code code) && {
  code_ = code;
  return std::move(*this);
}

}  // namespace stoplog
