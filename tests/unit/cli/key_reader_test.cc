// SPDX-License-Identifier: Apache-2.0
#include "cli/key_reader.h"

#include <deque>
#include <string>

#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::cli;

namespace {

std::vector<Key> keys_of(std::string_view bytes, bool utf8 = true) {
  std::deque<Key> waiting;
  for (char c : bytes) waiting.push_back(static_cast<unsigned char>(c));
  KeyReader reader(
      [&](int) {
        if (waiting.empty()) return KeyReader::kNone;
        Key out = waiting.front();
        waiting.pop_front();
        return out;
      },
      utf8);
  std::vector<Key> out;
  while (Key key = reader.next())
    if (key != key::kOther) out.push_back(key);
  return out;
}

using Keys = std::vector<Key>;

}  // namespace

TEST_CASE("a terminal's answers press no keys in the review") {
  for (std::string_view answer : {
           "\x1b[?25;1$y",
           "\x1b[?62;4c",
           "\x1b[0n",
           "\x1b]10;rgb:aaaa/yyyy/cccc\x1b\\",
           "\x1b]52;c;eWM=\x07",
           "\x1bP>|tmux yac\x1b\\",
           "\x1bP1$r0 q\x07y\x1b\\",
           "\x1b_Gi=31;yc\x1b\\",
           "\x1b^yc\x1b\\",
           "\x1bXyc\x1b\\",
           "\x1bOy",
           "\x1bO5y",
           "\x1b/Z",
           "\x1b[M yc",
           "\x1b[M\xc2\xa0yc",
           "\x1b[<0;10;5M",
           "\x1b[[A",
           "\x9b?62;4c",
           "\xc2\x9b?25;1$y",
           "\xc2\x90yc\xc2\x9c",
           "\xc2\x9d"
           "0;yc\x07",
           "\x1b[12\x18",
           "\x1b]0;\xe2\x9c\x9cyc\x1b\\",
       }) {
    INFO(answer);
    CHECK(keys_of(answer) == Keys{});
    // What follows an answer is a key again.
    CHECK(keys_of(std::string(answer) + "q") == Keys{'q'});
  }
  CHECK(keys_of("\x90yc\x9cq", false) == Keys{'q'});
  CHECK(keys_of("\x1b]yc\x1b[?62;4cq") == Keys{'q'});
  CHECK(keys_of("\x1b[12;\x1b[?62;4cq") == Keys{'q'});
}

TEST_CASE("an answer that does not end takes no key once it is silent") {
  std::deque<Key> waiting = {27, ']', 'y', KeyReader::kNone, 'q'};
  KeyReader reader(
      [&](int) {
        if (waiting.empty()) return KeyReader::kNone;
        Key out = waiting.front();
        waiting.pop_front();
        return out;
      },
      true);
  CHECK(reader.next() == key::kOther);
  CHECK(reader.next() == 'q');
  CHECK(reader.next() == 0);
}

TEST_CASE("keys are what was pressed") {
  CHECK(keys_of("yc[]/") == Keys{'y', 'c', '[', ']', '/'});
  CHECK(keys_of("\x1b") == Keys{key::kEscape});
  CHECK(keys_of("\x1bq") == Keys{key::kEscape, 'q'});
  CHECK(keys_of("\x1b\x1b") == Keys{key::kEscape, key::kEscape});
  CHECK(keys_of("\r\t\x7f\b") ==
        Keys{key::kEnter, key::kTab, key::kBackspace, key::kBackspace});
  CHECK(keys_of("ü€😀") == Keys{0xfc, 0x20ac, 0x1f600});
  CHECK(keys_of("\xc3q") == Keys{'q'});
  CHECK(keys_of("\xff\xfeq") == Keys{'q'});
}

TEST_CASE("a key that the source knows passes") {
  std::deque<Key> waiting = {key::kUp, 27, key::kDown};
  KeyReader reader(
      [&](int) {
        if (waiting.empty()) return KeyReader::kNone;
        Key out = waiting.front();
        waiting.pop_front();
        return out;
      },
      true);
  CHECK(reader.next() == key::kUp);
  CHECK(reader.next() == key::kEscape);
  CHECK(reader.next() == key::kDown);
  CHECK(reader.next() == 0);
}
