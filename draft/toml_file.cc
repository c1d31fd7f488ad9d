// SPDX-License-Identifier: Apache-2.0
#include "draft/toml_file.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace stoplog::draft {
namespace {

void flatten(const toml::table& table, std::vector<std::string>& path,
             TomlFile& out) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, path, out);
    } else {
      TomlValue v;
      v.path = path;
      v.line = node.source().begin.line;
      v.column = node.source().begin.column;
      if (const auto* text = node.as_string()) v.value = text->get();
      if (const auto* number = node.as_integer()) v.value = number->get();
      if (const auto* flag = node.as_boolean()) v.value = flag->get();
      if (const toml::array* array = node.as_array()) {
        std::vector<std::string> list;
        bool strings = true;
        for (const toml::node& item : *array) {
          if (const auto* text = item.as_string())
            list.push_back(text->get());
          else
            strings = false;
        }
        if (strings) v.value = std::move(list);
      }
      out.values.push_back(std::move(v));
    }
    path.pop_back();
  }
}

}  // namespace

std::string TomlValue::dotted() const {
  std::string out;
  for (const std::string& part : path) {
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

std::string TomlFile::at(const TomlValue& value) const {
  return fmt::format("{}:{}:{}", name, value.line, value.column);
}

Result<TomlFile> parse_toml(std::string_view text, std::string_view name) {
  toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    std::string why(error.description());
    constexpr std::string_view kError = "Error while ";
    if (why.starts_with(kError)) why.erase(0, kError.size());
    return std::unexpected(
        Error(Code::kInvalid, fmt::format("{}:{}:{}: no TOML: {}", name,
                                          error.source().begin.line,
                                          error.source().begin.column, why))
            .with_hint("`man 5 stoplog.toml` has an example"));
  }
  TomlFile out;
  out.name = name;
  std::vector<std::string> path;
  flatten(parsed.table(), path, out);
  return out;
}

}  // namespace stoplog::draft
