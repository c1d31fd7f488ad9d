// SPDX-License-Identifier: Apache-2.0
#include "base/json_path.h"

#include <algorithm>

#include "base/escape.h"
#include "base/shown_path.h"
#include "base/strings.h"

namespace stoplog {
namespace {

std::string bytes_key(std::string_view key) {
  return std::string(key) + "_bytes";
}

Json shown(std::string_view text) {
  return is_utf8(text) ? Json(text) : Json(escape(text));
}

}  // namespace

Json& set_path(Json& object, std::string_view key, std::string_view path) {
  object.set(key, shown(path));
  if (!is_utf8(path)) object.set(bytes_key(key), base64(path));
  return object;
}

Json& set_words(Json& object, std::string_view key,
                std::span<const std::string> words) {
  Json list = Json::array(), bytes = Json::array();
  for (const std::string& word : words) list.push(shown(word));
  object.set(key, std::move(list));
  if (std::ranges::all_of(words, is_utf8)) return object;
  for (const std::string& word : words) bytes.push(base64(word));
  return object.set(bytes_key(key), std::move(bytes));
}

Json& set_paths(Json& object, std::string_view key,
                std::span<const RelPath> paths) {
  std::vector<std::string> words;
  words.reserve(paths.size());
  for (const RelPath& path : paths) words.push_back(shown_path(path));
  return set_words(object, key, words);
}

}  // namespace stoplog
