// SPDX-License-Identifier: Apache-2.0
// A TOML file as a flat list of its values with where each stands. The parser
// (toml++) is seen by toml_file.cc alone: its header costs ten seconds.
//
//   TomlFile file = TRY(parse_toml(text, "config.toml"));
//   for (const TomlValue& v : file.values) use(v.path, v.line);
//
// A syntax error is kInvalid: "config.toml:3:7: reason". Values are strings,
// integers, booleans and lists of strings; anything else is kept as kOther, so
// that the reader can name it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stoplog::draft {

struct TomlValue {
  struct Other {
    bool operator==(const Other&) const = default;
  };
  std::vector<std::string> path;  // {"limits", "time"}
  std::variant<Other, std::string, int64_t, bool, std::vector<std::string>>
      value;
  uint32_t line = 0, column = 0;

  std::string dotted() const;  // "limits.time"
};

struct TomlFile {
  std::string name;
  std::vector<TomlValue> values;  // in no particular order
  // "config.toml:3:7"
  std::string at(const TomlValue& value) const;
};

Result<TomlFile> parse_toml(std::string_view text, std::string_view name);

}  // namespace stoplog::draft
