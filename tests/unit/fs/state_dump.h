// SPDX-License-Identifier: Apache-2.0
// A state as text; equal states have equal text. Positions are told, but not
// the one that the state itself stands at.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fs/state.h"

namespace stoplog::test {

inline std::string dump(const fs::State& state) {
  std::vector<std::string> lines;
  Status result;
  state.snapshot(
      [&](fs::Record record) -> Status {
        if (auto* gone = std::get_if<fs::GoneRecord>(&record))
          std::ranges::sort(gone->names);
        if (auto* table = std::get_if<fs::TableRecord>(&record))
          table->position = 0;
        std::string bytes(1, static_cast<char>(record.index()));
        fs::encode(record, bytes);
        lines.push_back(std::move(bytes));
        return {};
      },
      result);
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

}  // namespace stoplog::test
