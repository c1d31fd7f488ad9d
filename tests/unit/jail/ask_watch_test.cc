// SPDX-License-Identifier: Apache-2.0
#include "jail/ask_watch.h"

#include <string_view>

#include "catch_shim.h"

using namespace stoplog::jail;

namespace {

bool asks(std::string_view text) {
  AskWatch whole, pieces;
  auto bytes = std::as_bytes(std::span(text));
  whole.see(bytes);
  for (size_t i = 0; i < bytes.size(); i++) pieces.see(bytes.subspan(i, 1));
  CHECK(whole.asked() == pieces.asked());
  return whole.asked();
}

}  // namespace

TEST_CASE("output that a terminal answers is seen") {
  for (std::string_view text : {"\x1b[c",
                                "\x1b[>c",
                                "\x1b[=0c",
                                "\x1b[5n",
                                "\x1b[6n",
                                "\x1b[?6n",
                                "\x1b[?25$p",
                                "\x1b[x",
                                "\x1b[18t",
                                "\x1b[>q",
                                "\x1b[?u",
                                "\x1bZ",
                                "\x05",
                                "\x1b]10;?\x07",
                                "\x1b]52;c;?\x1b\\",
                                "\x1bP+q544e\x1b\\",
                                "\x1b_Ga=q\x1b\\",
                                "\x1b[?1000h",
                                "\x1b[?25;1004h",
                                "\x1b[?2048h",
                                "\xc2\x9b"
                                "c",
                                "\x9b"
                                "c",
                                "\xe2\x94\x9b\x9b"
                                "c",
                                "\x1b\x1b[c",
                                "\x1b[1\x1b[c",
                                "\x1b]0;t\x1b[c"}) {
    INFO(text);
    CHECK(asks(text));
  }
}

TEST_CASE("colours and cursors and titles are no questions") {
  for (std::string_view text :
       {"plain\r\n\t\a\b", "\x1b[31;1mred\x1b[0m", "\x1b[38:2::1:2:3m",
        "\x1b[2K\x1b[1G\x1b[3;4H\x1b[J", "\x1b[?25l\x1b[?25h",
        "\x1b[?1049h\x1b[?2004l", "\x1b(B\x1b)0\x1b=\x1b>\x1b7\x1b8",
        "\x1b]0;title\x07\x1b]8;;http://x/?a=b\x1b\\text\x1b]8;;\x1b\\",
        "\x1b[2 q\x1b[!p", "ü€😀 ┛ é", "\xc2\xa0\xc3\x9b"}) {
    INFO(text);
    CHECK_FALSE(asks(text));
  }
}

TEST_CASE("a line that was not ended is known") {
  auto open = [](std::string_view text) {
    AskWatch watch;
    watch.see(std::as_bytes(std::span(text)));
    return watch.open_line();
  };
  for (std::string_view text :
       {"text", "a\nb", "50%\r60%", "\x1b[31mred\x1b[0m", "日本", "a\n\tb",
        "a\x1b[m"})
    CHECK(open(text));
  for (std::string_view text :
       {"", "text\n", "a\r\n", "a\n\x1b[0m", "a\x1b[2K", "a\x1b[?1049l",
        "a\x1b[5A", "a\x1b[c", "a\x1b[3"})
    CHECK_FALSE(open(text));
}
