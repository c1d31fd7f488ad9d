// SPDX-License-Identifier: Apache-2.0
// What parses is printed and parses again to the same; deep input is refused.
#include "base/json.h"
#include "fuzz.h"

using stoplog::Json;

void fuzz(std::string_view input) {
  auto value = Json::parse(input);
  if (!value) return;
  std::string printed = value->dump();
  auto again = Json::parse(printed);
  require(again.has_value());
  require(again->dump() == printed);
}
