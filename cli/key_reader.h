// SPDX-License-Identifier: Apache-2.0
// Keys out of what a terminal sends. A terminal also answers: to reports that a
// command asked for, to the mouse, to focus. Such an answer is a control
// sequence, and may hold any letter; taken apart it would press keys. So a
// whole CSI, SS3, OSC, DCS (or SOS, PM, APC) that is no known key is one
// kOther, in 7 and in 8 bits.
//
//   KeyReader keys([](int wait_ms) -> Key {...}, true);
//   while (Key key = keys.next()) ...              // 0: none waiting
//
// The source gives a byte, a key of key:: that it knows by itself, or kNone
// when nothing came in time. ESC is the key when nothing follows it at once,
// or nothing that begins a sequence.
#pragma once

#include <functional>
#include <vector>

#include "cli/review_keys.h"

namespace stoplog::cli {

class KeyReader {
 public:
  static constexpr Key kNone = UINT32_MAX;
  using Source = std::function<Key(int wait_ms)>;
  // `utf8`: bytes above ASCII are UTF-8; else of the locale, one a character.
  KeyReader(Source source, bool utf8)
      : source_(std::move(source)), utf8_(utf8) {}
  Key next();

 private:
  Key pull(int wait_ms);
  void put_back(Key byte) { back_.push_back(byte); }
  Key escape();
  Key beyond_ascii(Key first);
  Key introduced_by(Key c1);
  Key skip_csi();
  Key skip_string(bool bell_ends);
  Key skip_final();
  Key skip(int count);

  Source source_;
  bool utf8_;
  std::vector<Key> back_;  // the last is the next
};

}  // namespace stoplog::cli
