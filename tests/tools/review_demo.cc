// SPDX-License-Identifier: Apache-2.0
// The review screen over two plain directories, without a draft: what the tests
// of the screen drive through a terminal.
//
//   review_demo [--color] [--prompt] [--danger GLOB]... BEFORE AFTER [STATE]
//
// STATE is a directory in which "looked" is kept and "decisions" is written as
// text at the end. A commit writes "committed" there, or fails with the text of
// a file "refuse" when that is present. --prompt asks line by line instead.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/patch_prompt.h"
#include "cli/review_file.h"
#include "cli/review_screen.h"
#include "diff/change_set.h"
#include "fs/view.h"

using namespace stoplog;
using namespace stoplog::cli;

namespace {

struct Arguments {
  bool color = false;
  bool prompt = false;
  std::vector<diff::PolicyRule> rules;
  std::vector<std::string> words;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    if (word == "--color")
      out.color = true;
    else if (word == "--prompt")
      out.prompt = true;
    else if (word == "--danger" && i + 1 < argc)
      out.rules.push_back(
          {.glob = argv[++i], .message = "matches a rule of yours"});
    else
      out.words.push_back(word);
  }
  return out;
}

std::string text_of(const diff::ChangeSet& set, const DecisionStore& store) {
  std::string out;
  for (const diff::Change& change : set.changes) {
    LoadedFile file = load_file(change);
    FileDecision d = store.get(change, file.text ? &*file.text : nullptr);
    auto word = [](Verdict v) {
      return v == Verdict::kApproved   ? "approved"
             : v == Verdict::kRejected ? "rejected"
                                       : "none";
    };
    out += fmt::format("{}:", change.path.str());
    if (d.parts.empty()) out += fmt::format(" {}", word(d.whole));
    for (Verdict part : d.parts) out += fmt::format(" {}", word(part));
    if (!d.reason.empty()) out += fmt::format(" ({})", d.reason);
    out += '\n';
  }
  return out;
}

Result<int> run(const Arguments& args) {
  Fd before = TRY(sys::openat(AT_FDCWD, args.words[0], O_RDONLY | O_DIRECTORY));
  Fd after = TRY(sys::openat(AT_FDCWD, args.words[1], O_RDONLY | O_DIRECTORY));
  Fd state;
  if (args.words.size() > 2)
    state = TRY(sys::openat(AT_FDCWD, args.words[2], O_RDONLY | O_DIRECTORY));
  auto view = fs::view_of_directories(before.get(), after.get());
  diff::DiffOptions options;
  options.rules = args.rules;
  diff::ChangeSet set = TRY(diff::build_change_set(*view, options));
  MemoryDecisions store;
  int code = 0;
  auto command_text = [](uint32_t n) { return fmt::format("command {}", n); };
  if (args.prompt) {
    PromptEnd end = TRY(run_patch_prompt({.set = set,
                                          .decisions = store,
                                          .input = STDIN_FILENO,
                                          .output = STDOUT_FILENO,
                                          .color = args.color}));
    std::printf("%zu decided\n", end.decided);
  } else {
    Looked looked;
    if (state)
      if (auto text = sys::read_file(state.get(), "looked", 1 << 20))
        looked = Looked::parse(*text);
    ReviewEnd end = TRY(run_review(
        {.set = set,
         .decisions = store,
         .looked = std::move(looked),
         .title = "demo",
         .command_text = command_text,
         .commit =
             [&] {
               if (state)
                 if (auto why = sys::read_file(state.get(), "refuse", 4096))
                   return CommitReply{.done = false, .message = *why};
               if (state)
                 (void)write_file(state.get(), "committed",
                                  text_of(set, store));
               return CommitReply{.done = true, .message = "committed"};
             },
         .save_looked =
             [&](const Looked& now) {
               if (state) (void)write_file(state.get(), "looked", now.print());
             },
         .color = args.color}));
    if (!end.message.empty()) std::printf("%s\n", end.message.c_str());
    std::printf("%zu undecided, %zu approved\n", end.undecided, end.approved);
    if (end.signal != 0) code = 128 + end.signal;
  }
  if (state) TRY(write_file(state.get(), "decisions", text_of(set, store)));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args = parse(argc, argv);
  if (args.words.size() < 2) {
    std::fputs("usage: review_demo BEFORE AFTER [STATE]\n", stderr);
    return 2;
  }
  auto code = run(args);
  if (code) return *code;
  std::fprintf(stderr, "review_demo: %s\n", code.error().text().c_str());
  if (!code.error().hint().empty())
    std::fprintf(stderr, "hint: %s\n", code.error().hint().c_str());
  return code.error().code() == Code::kUsage ? 2 : 1;
}
