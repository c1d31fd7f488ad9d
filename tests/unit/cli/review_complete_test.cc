// SPDX-License-Identifier: Apache-2.0
#include "catch_shim.h"
#include "cli/complete.h"

using namespace stoplog;
using namespace stoplog::cli;

namespace {

Completion at(std::vector<std::string> words) { return complete_line(words); }

std::vector<std::string> words(const Completion& c) {
  std::vector<std::string> out;
  for (const Candidate& candidate : c.words) out.push_back(candidate.word);
  return out;
}

}  // namespace

TEST_CASE("complete: commands with what they do") {
  CHECK(words(at({"polic"})) == std::vector<std::string>{"policy"});
  CHECK_FALSE(at({"polic"}).words[0].about.empty());
  CHECK(words(at({""})).size() > 5);
  CHECK(at({"__"}).words.empty());
  CHECK(words(at({"-d", "x", "vers"})) == std::vector<std::string>{"version"});
}

TEST_CASE("complete: options of the command and of all") {
  CHECK(words(at({"log", "--ver"})) == std::vector<std::string>{"--verify"});
  CHECK(words(at({"log", "--work"})) ==
        std::vector<std::string>{"--workspace"});
  CHECK(words(at({"--col"})) == std::vector<std::string>{"--color"});
  CHECK(at({"log", "--", "--ver"}).words.empty());
}

TEST_CASE("complete: values of options") {
  CHECK(words(at({"--color", "a"})) ==
        std::vector<std::string>{"auto", "always"});
  CHECK(at({"-d", ""}).fill == Fill::kDrafts);
  CHECK(at({"--draft", ""}).fill == Fill::kDrafts);
  Completion joined = at({"--draft=ca"});
  CHECK(joined.fill == Fill::kDrafts);
  CHECK(joined.prefix == "--draft=");
  CHECK(joined.typed == "ca");
  CHECK(at({"-C", ""}).fill == Fill::kDirs);
  CHECK(at({"policy", "--preset", ""}).fill == Fill::kPresets);
  CHECK(words(at({"--color=n"})) == std::vector<std::string>{"never"});
}

TEST_CASE("complete: arguments by command and place") {
  CHECK(at({"switch", ""}).fill == Fill::kDrafts);
  CHECK(at({"switch", "one", ""}).words.empty());
  CHECK(at({"switch", "one", ""}).fill == Fill::kWords);
  CHECK(words(at({"completion", "z"})) == std::vector<std::string>{"zsh"});
  CHECK(words(at({"policy", "s"})) == std::vector<std::string>{"show"});
  CHECK(at({"policy", "check", ""}).fill == Fill::kFiles);
  CHECK(words(at({"help", "polic"})) == std::vector<std::string>{"policy"});
  CHECK(at({"unknown", ""}).fill == Fill::kCommand);
}

TEST_CASE("complete: where the line is about is remembered") {
  Completion c = at({"-C", "/tmp", "--workspace=/w", "-dcalm", "switch", ""});
  CHECK(c.directory == "/tmp");
  CHECK(c.globals.workspace == "/w");
  CHECK(c.globals.draft == "calm");
}

TEST_CASE("complete: nothing at all is no harm") {
  CHECK_FALSE(complete_line({}).words.empty());
  CHECK(at({"--"}).words.size() > 3);
  CHECK(at({"-"}).words.size() > 3);
  CHECK(at({"--x=", ""}).words.size() > 3);
}
