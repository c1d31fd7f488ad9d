// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_spelling.h"

#include <algorithm>

#include "base/escape.h"
#include "diff/risk_text.h"

namespace stoplog::diff {
namespace {

bool is_ascii(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= ' ' && c < 0x7f; });
}

// What shows as a blank and is no U+0020.
bool is_blank(char32_t c) {
  return c == 0xa0 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

bool has_odd_blanks(std::string_view name) {
  if (name.starts_with(' ') || name.ends_with(' ') ||
      name.find("  ") != std::string_view::npos)
    return true;
  while (!name.empty())
    if (is_blank(take_utf8(name).c)) return true;
  return false;
}

// As NTFS and HFS+ take a name: ASCII letters are folded, what nobody sees is
// dropped, and so are blanks and dots at the end and what follows a colon.
bool is_git_elsewhere(std::string_view name) {
  if (name == ".git" || name.size() < 4 ||
      (is_ascii(name) && name[0] != '.' && name[0] != 'g' && name[0] != 'G'))
    return false;
  std::string folded;
  for (std::string_view rest = name; !rest.empty() && folded.size() < 16;) {
    const Decoded decoded = take_utf8(rest);
    if (decoded.c == ':') break;
    if (kind_of(decoded.c) == CharKind::kInvisible ||
        kind_of(decoded.c) == CharKind::kBidi)
      continue;
    if (!decoded.valid || decoded.c >= 0x80) return false;
    const char c = static_cast<char>(decoded.c);
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  while (folded.ends_with(' ') || folded.ends_with('.')) folded.pop_back();
  return folded == ".git" || folded == "git~1";
}

// Those of 8 bits, too: U+009B is what ESC [ is.
bool has_control(std::string_view name) {
  while (!name.empty()) {
    const Decoded decoded = take_utf8(name);
    if (decoded.valid && kind_of(decoded.c) == CharKind::kControl) return true;
  }
  return false;
}

// Nearly every name.
bool is_ordinary(std::string_view name) {
  return is_ascii(name) && !has_odd_blanks(name) && !is_git_elsewhere(name);
}

void look_at(std::string_view name, std::vector<Risk>& risks) {
  auto add = [&](Level level, std::string_view code, std::string message) {
    if (std::ranges::find(risks, code, &Risk::code) == risks.end())
      risks.push_back({level, std::string(code), std::move(message)});
  };
  if (is_git_elsewhere(name))
    add(Level::kDanger, "git-lookalike",
        "its name is that of the git directory where the file system folds "
        "case or drops characters: hooks and configuration would be git's own");
  if (has_odd_blanks(name))
    add(Level::kWarn, "odd-name",
        "blanks in its name that look like the columns of a list");
  if (is_ascii(name)) return;
  if (has_control(name))
    add(Level::kWarn, "control-character", "control characters in its name");
  for (Risk& risk : risks_of_text("", name))
    if (risk.code == "bidi" || risk.code == "invisible" ||
        risk.code == "mixed-script")
      add(risk.level, risk.code,
          "its name is not what it looks like: " + escape(name));
}

}  // namespace

void add_spelling_risks(const Change& change, const fs::View& view,
                        std::vector<Risk>& risks) {
  if (!change.after || (change.before && !change.from)) return;
  if (std::ranges::all_of(change.path.components(), is_ordinary)) return;
  std::vector<Risk> found;
  for (RelPath path = change.path; !path.is_root(); path = path.parent()) {
    if (path != change.path) {
      auto real = view.real_state(path);
      if (real && *real) break;
    }
    look_at(path.name(), found);
  }
  risks.insert(risks.end(), found.begin(), found.end());
}

}  // namespace stoplog::diff
