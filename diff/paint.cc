// SPDX-License-Identifier: Apache-2.0
#include "diff/paint.h"

#include <cstdlib>

#include "base/escape.h"
#include "base/fold.h"
#include "diff/select.h"

namespace stoplog::diff {

std::string paint(bool color, Ink ink, std::string_view text) {
  if (!color) return std::string(text);
  std::string_view code;
  switch (ink) {
    case Ink::kRed:
      code = "31";
      break;
    case Ink::kGreen:
      code = "32";
      break;
    case Ink::kYellow:
      code = "33";
      break;
    case Ink::kCyan:
      code = "36";
      break;
    case Ink::kBold:
      code = "1";
      break;
    case Ink::kAlarm:
      code = "1;31";
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[m", code, text);
}

std::string shown_name(std::string_view name, const RenderOptions& options) {
  return options.terminal ? escape(name) : quote_name(name);
}

std::string shown_line(const std::string& line, std::string_view lead,
                       const RenderOptions& options) {
  return (options.terminal ? fold(line, options.width, lead) : line) + "\n";
}

char letter_of(const Change& change) {
  switch (change.kind) {
    case Kind::kAdded:
      return 'A';
    case Kind::kDeleted:
      return 'D';
    case Kind::kRenamed:
      return 'R';
    case Kind::kType:
      return 'T';
    case Kind::kModified:
    case Kind::kMode:
      return 'M';
  }
  return 'M';
}

bool is_listed(const Change& change, bool ignored,
               const std::vector<RelPath>& paths) {
  if (change.ignored && !ignored && !change.is_deletion() &&
      !change.is_danger())
    return false;
  return is_selected(change, paths);
}

void HunkCounter::start(std::string_view header) {
  auto count = [&](char sign) -> long {
    size_t at = header.find(sign) + 1;
    size_t end = header.find(' ', at);
    std::string range(header.substr(at, end - at));
    size_t comma = range.find(',');
    return comma == std::string::npos
               ? 1
               : std::strtol(range.c_str() + comma + 1, nullptr, 10);
  };
  old_left_ = count('-');
  new_left_ = count('+');
}

bool HunkCounter::is_content(std::string_view line) {
  if ((old_left_ <= 0 && new_left_ <= 0) || line.empty() || line[0] == '\\')
    return false;
  old_left_ -= line[0] != '+';
  new_left_ -= line[0] != '-';
  return true;
}

std::string plural(uint64_t count, std::string_view one,
                   std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace stoplog::diff
