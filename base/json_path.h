// SPDX-License-Identifier: Apache-2.0
// Paths and words of a command in JSON, exactly: JSON knows UTF-8 alone, and a
// path is any bytes. What is UTF-8 stands as it is. What is not is escaped for
// people, and a second key carries its bytes:
//
//   set_path(j, "path", name);     "path":"a\\xff","path_bytes":"Yf8="
//   set_words(j, "argv", argv);    "argv":["cp","a\\xff"],
//                                  "argv_bytes":["Y3A=","Yf8="]
//
// A list has its bytes for each word, or for none. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/relpath.h"

namespace stoplog {

Json& set_path(Json& object, std::string_view key, std::string_view path);
Json& set_words(Json& object, std::string_view key,
                std::span<const std::string> words);
Json& set_paths(Json& object, std::string_view key,
                std::span<const RelPath> paths);

}  // namespace stoplog
