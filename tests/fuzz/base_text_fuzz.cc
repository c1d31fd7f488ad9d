// SPDX-License-Identifier: Apache-2.0
// The text functions of base over any bytes: what they promise must hold.
#include "base/clock.h"
#include "base/escape.h"
#include "base/glob.h"
#include "base/relpath.h"
#include "base/units.h"
#include "fuzz.h"

using namespace stoplog;

namespace {

void check_escape(std::string_view input) {
  std::string shown = escape(input);
  std::string_view rest = shown;
  char32_t previous = 0;
  while (!rest.empty()) {
    auto [c, valid] = take_utf8(rest);
    require(valid);
    // The emoji selector after a symbol is the one exception.
    require(kind_of(c) == CharKind::kPlain || (c == 0xfe0f && previous > 0xa8));
    previous = c;
  }
  for (size_t columns : {0u, 1u, 2u, 7u, 80u})
    for (Cut cut : {Cut::kEnd, Cut::kStart})
      require(display_width(fit(shown, columns, cut)) <= columns);
}

void check_parsers(std::string_view input) {
  require(unquote_name(quote_name(input)).value() == input ||
          input.starts_with('"'));
  (void)unquote_name(input);
  if (auto size = parse_size(input))
    require(parse_size(print_size_exact(*size)).value() == *size);
  if (auto duration = parse_duration(input))
    require(parse_duration(print_duration_exact(*duration)).value() ==
            *duration);
  (void)parse_rfc3339(input);
  if (auto path = RelPath::parse(input)) {
    require(path->str() == input);
    for (std::string_view part : path->components())
      require(is_valid_name(part));
  }
  size_t half = input.size() / 2;
  if (auto glob = Glob::parse(input.substr(0, half)))
    (void)glob->covers(input.substr(half));
}

}  // namespace

void fuzz(std::string_view input) {
  check_escape(input);
  check_parsers(input);
}
