// SPDX-License-Identifier: Apache-2.0
// Small phrases that several commands print. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoplog::cli {

// A command line as a shell would take it, escaped for a terminal and cut to
// `columns` (0: whole).
std::string show_argv(const std::vector<std::string>& argv,
                      size_t columns = 60);
// "1 change", "3 changes".
std::string plural(uint64_t count, std::string_view noun);

}  // namespace stoplog::cli
