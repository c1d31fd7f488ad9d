// SPDX-License-Identifier: Apache-2.0
// Whether what went to a terminal may make it answer: reports that were asked
// for, the mouse or focus switched on. Colours, the cursor, titles, links and
// screens do not, so most commands are over without a question of ours. And
// whether what is said next would stand behind the command's own text.
//
//   AskWatch watch;
//   watch.see(bytes);
//   if (watch.asked()) ...
//
// What it does not know it takes for a question.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stoplog::jail {

class AskWatch {
 public:
  void see(std::span<const std::byte> bytes);
  bool asked() const { return asked_; }
  // The cursor stands behind text, as far as can be told: after programs that
  // move it about, nothing can.
  bool open_line() const { return open_ && !asked_ && at_ == At::kText; }

 private:
  enum class At { kText, kEscape, kCharset, kCsi, kOsc };
  void see(unsigned char c);
  void text(unsigned char c);
  bool csi_is_quiet(unsigned char final) const;

  At at_ = At::kText;
  int continued_ = 0;  // bytes of a UTF-8 character that are to come
  std::string body_;   // of a sequence, as much of it as matters
  bool asked_ = false;
  bool open_ = false;  // printed since the last end of a line
};

}  // namespace stoplog::jail
