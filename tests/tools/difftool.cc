// SPDX-License-Identifier: Apache-2.0
// The diff room on two plain directories: for system tests and for measuring.
//
//   difftool BASE DRAFT
//   patch|list|summary|stat|name-status|json|terminal|none
//            [--repo] [--moved NEW=OLD]... [-U N] [--time]
//
// --repo: ask BASE's git repository what is ignored and restorable. --time
// says on standard error how long the parts took.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sys_file.h"
#include "diff/change_set.h"
#include "diff/patch.h"
#include "diff/render.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

struct Arguments {
  std::string base, draft, form;
  std::map<std::string, std::string> moved;
  bool repo = false, time = false;
  unsigned context = 3;
};

Result<Arguments> parse(const std::vector<std::string>& words) {
  if (words.size() < 3) return fail(Code::kUsage, "BASE DRAFT FORM [OPTIONS]");
  Arguments args{words[0], words[1], words[2], {}};
  for (size_t i = 3; i < words.size(); i++) {
    if (words[i] == "--repo") {
      args.repo = true;
    } else if (words[i] == "--time") {
      args.time = true;
    } else if (words[i] == "-U" && i + 1 < words.size()) {
      args.context = static_cast<unsigned>(std::stoul(words[++i]));
    } else if (words[i] == "--moved" && i + 1 < words.size()) {
      const std::string& pair = words[++i];
      size_t equals = pair.find('=');
      args.moved[pair.substr(0, equals)] = pair.substr(equals + 1);
    } else {
      return fail(Code::kUsage, "unknown word '{}'", words[i]);
    }
  }
  return args;
}

Status write(const Arguments& args, const fs::View& view,
             const ChangeSet& set) {
  Sink sink = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  RenderOptions options;
  options.context = args.context;
  if (args.form == "patch") {
    PatchOptions patch;
    patch.context = args.context;
    auto report = TRY(write_patch(view, set, patch, sink));
    for (const std::string& why : report.not_in_patch)
      std::fprintf(stderr, "not in the patch: %s\n", why.c_str());
  } else if (args.form == "list") {
    render_list(set, options, sink);
  } else if (args.form == "summary") {
    render_summary(set, options, sink);
  } else if (args.form == "stat") {
    render_stat(set, options, sink);
  } else if (args.form == "name-status") {
    TRY(render_name_status(view, set, options, false, sink));
  } else if (args.form == "terminal") {
    options.terminal = true;
    TRY(render_terminal(view, set, options, sink));
  } else if (args.form == "json") {
    JsonOptions json;
    json.workspace = args.base;
    render_json(set, json, sink);
  } else if (args.form != "none") {
    return fail(Code::kUsage, "unknown form '{}'", args.form);
  }
  return {};
}

Status run(const std::vector<std::string>& words) {
  using Clock = std::chrono::steady_clock;
  Arguments args = TRY(parse(words));
  Fd base = TRY(sys::openat(AT_FDCWD, args.base, O_RDONLY | O_DIRECTORY));
  Fd draft = TRY(sys::openat(AT_FDCWD, args.draft, O_RDONLY | O_DIRECTORY));
  auto view = fs::view_of_directories(base.get(), draft.get(), args.moved);
  DiffOptions options;
  if (args.repo) options.real_root = std::filesystem::absolute(args.base);
  // A patch needs nothing of these; "none" is the digest alone.
  options.count_lines = args.form != "patch" && args.form != "none";
  options.digest = options.risks = args.form != "patch";
  auto start = Clock::now();
  ChangeSet set = TRY(build_change_set(*view, options));
  auto built = Clock::now();
  TRY(write(args, *view, set));
  auto ms = [](Clock::duration d) {
    return static_cast<long>(
        std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
  };
  if (args.time)
    std::fprintf(stderr, "change set %ld ms, output %ld ms, %zu changes\n",
                 ms(built - start), ms(Clock::now() - built),
                 set.changes.size());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Status status = run(std::vector<std::string>(argv + 1, argv + argc));
  if (status) return 0;
  std::fprintf(stderr, "difftool: %s\n", status.error().text().c_str());
  return status.error().code() == Code::kUsage ? 2 : 1;
}
