// SPDX-License-Identifier: Apache-2.0
// fuzz: sources diff/hunks.cc diff/windows.cc diff/git_library.cc
// fuzz: sources diff/risk_text.cc diff/risk_package.cc diff/secrets.cc
//
// Two texts out of one input: all edits give the new text and none the old,
// hunks count their lines right, and the looks for risks stay within bounds.
#include <cstdlib>
#include <string_view>

#include "diff/hunks.h"
#include "diff/risk_package.h"
#include "diff/risk_text.h"
#include "diff/secrets.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_diff(std::string_view a, std::string_view b) {
  auto diff = diff_texts(std::string(a), std::string(b));
  if (!diff) {
    require(diff.error().err() == EFBIG);
    return;
  }
  std::vector<size_t> all(diff->edits.size());
  for (size_t i = 0; i < all.size(); i++) all[i] = i;
  require(apply_edits(*diff, all).value() == b);
  require(apply_edits(*diff, {}).value() == a);
  for (unsigned context : {0u, 1u, 3u, 100u})
    for (const Hunk& hunk : make_hunks(*diff, context)) {
      size_t old_lines = 0, new_lines = 0;
      for (const Line& line : hunk.lines) {
        old_lines += line.origin != '+';
        new_lines += line.origin != '-';
      }
      require(old_lines == hunk.old_lines && new_lines == hunk.new_lines);
      require(hunk.header.size() <= 80);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t middle = input.find("\xff\xff");
  if (middle == std::string_view::npos) middle = size / 2;
  std::string_view a = input.substr(0, middle), b = input.substr(middle);
  check_diff(a, b);
  (void)risks_of_text(a, b);
  (void)risks_of_bytes(a, b);
  for (const char* name : {"package.json", "composer.json", "deno.jsonc"})
    (void)risks_of_package(name, a, b);
  for (const Secret& secret : find_secrets(input, 100))
    require(secret.value.data() >= input.data() &&
            secret.value.data() + secret.value.size() <= input.data() + size);
  return 0;
}
