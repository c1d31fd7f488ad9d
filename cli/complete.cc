// SPDX-License-Identifier: Apache-2.0
#include "cli/complete.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace stoplog::cli {
namespace {

// What the arguments of a command are, one after the other; the last counts
// for all that follow.
const std::vector<Fill>& arguments_of(std::string_view command) {
  static const std::map<std::string_view, std::vector<Fill>> kArguments = {
      {"approve", {Fill::kPaths}}, {"cat", {Fill::kMarkPath}},
      {"diff", {Fill::kPaths}},    {"discard", {Fill::kPaths}},
      {"export", {Fill::kFiles}},  {"fork", {Fill::kWords, Fill::kMarks}},
      {"import", {Fill::kFiles}},  {"mount", {Fill::kDirs}},
      {"unmount", {Fill::kDirs}},  {"reject", {Fill::kPaths}},
      {"rm", {Fill::kDrafts}},     {"rollback", {Fill::kMarks}},
      {"run", {Fill::kCommand}},   {"show", {Fill::kCommits}},
      {"status", {Fill::kPaths}},  {"switch", {Fill::kDrafts}},
      {"undo", {Fill::kCommits}},  {"policy", {Fill::kWords, Fill::kFiles}},
  };
  static const std::vector<Fill> kNothing = {Fill::kWords};
  auto found = kArguments.find(command);
  return found == kArguments.end() ? kNothing : found->second;
}

// Words that may be the first argument.
std::vector<Candidate> words_of(std::string_view command) {
  if (command == "completion") return {{"bash", ""}, {"zsh", ""}, {"fish", ""}};
  if (command == "policy")
    return {{"show", "the policy in force"},
            {"init", "write a file to start from"},
            {"check", "what it means for a path, host or command"}};
  if (command != "help") return {};
  std::vector<Candidate> out;
  for (const Command* c : all_commands())
    if (!c->summary.empty())
      out.push_back({std::string(c->name), std::string(c->summary)});
  return out;
}

// What the value of an option is, by what its table calls it.
Completion value_of(const OptionSpec& option) {
  Completion out;
  std::string_view kind = option.value;
  if (kind == "DRAFT") {
    out.fill = Fill::kDrafts;
  } else if (kind == "MARK") {
    out.fill = Fill::kMarks;
  } else if (kind == "DIR") {
    out.fill = Fill::kDirs;
  } else if (kind == "FILE" || kind == "PATH" || kind == "GLOB") {
    out.fill = Fill::kFiles;
  } else if (std::string_view(option.name) == "preset") {
    out.fill = Fill::kPresets;
  } else if (std::string_view(option.name) == "net") {
    out.words = {{"none", "no network"}, {"host", "the host's network"}};
  } else if (kind.find('|') != kind.npos) {
    for (std::string_view word : split(kind, '|'))
      out.words.push_back({std::string(word), ""});
  }
  return out;
}

std::string flag_of(const OptionSpec& option) {
  // An option of one letter has no long form that people would type.
  if (std::string_view(option.name).size() == 1)
    return fmt::format("-{}", option.name);
  return fmt::format("--{}", option.name);
}

class Line {
 public:
  explicit Line(std::span<const std::string> words) : words_(words) {
    for (const OptionSpec& option : global_options())
      options_.push_back(option);
  }

  Completion complete() {
    std::string last = words_.empty() ? "" : words_.back();
    for (size_t i = 0; i + 1 < words_.size(); i++) {
      if (!take(words_[i])) {  // a command line of its own
        out_.fill = Fill::kCommand;
        return finish(last);
      }
    }
    if (pending_ != nullptr) return value(*pending_, "", last);
    if (!ended_ && last.starts_with("--") && last.find('=') != last.npos) {
      size_t equals = last.find('=');
      const OptionSpec* option = find(last.substr(2, equals - 2));
      if (option == nullptr || option->value == nullptr) return finish(last);
      return value(*option, last.substr(0, equals + 1),
                   last.substr(equals + 1));
    }
    if (!ended_ && last.starts_with('-')) return options(last);
    if (command_ == nullptr) return commands(last);
    return argument(last);
  }

 private:
  // A word before the last; false when what follows is not ours.
  bool take(const std::string& word) {
    if (pending_ != nullptr) {
      remember(*pending_, word);
      pending_ = nullptr;
      return true;
    }
    if (!ended_ && word == "--") {
      ended_ = true;
      return command_ == nullptr || !command_->command_follows;
    }
    if (!ended_ && word.size() > 1 && word[0] == '-') {
      take_option(word);
      return true;
    }
    if (command_ == nullptr) {
      command_ = find_command(word);
      if (command_ == nullptr) return false;
      std::erase_if(options_, [](const OptionSpec& o) {
        return std::string_view(o.name) == "version";
      });
      options_.insert(options_.begin(), command_->options.begin(),
                      command_->options.end());
      return true;
    }
    arguments_++;
    return !command_->command_follows;
  }

  void take_option(const std::string& word) {
    if (word.starts_with("--")) {
      size_t equals = word.find('=');
      const OptionSpec* option = find(word.substr(2, equals - 2));
      if (option == nullptr || option->value == nullptr) return;
      if (equals == word.npos)
        pending_ = option;
      else
        remember(*option, word.substr(equals + 1));
      return;
    }
    for (size_t i = 1; i < word.size(); i++) {
      auto option = std::ranges::find(options_, word[i], &OptionSpec::letter);
      if (option == options_.end()) return;
      if (option->value == nullptr) continue;
      if (i + 1 == word.size())
        pending_ = &*option;
      else
        remember(*option, word.substr(i + 1));
      return;
    }
  }

  const OptionSpec* find(std::string_view name) const {
    for (const OptionSpec& option : options_)
      if (name == option.name) return &option;
    return nullptr;
  }

  void remember(const OptionSpec& option, const std::string& value) {
    std::string_view name = option.name;
    if (name == "workspace") out_.globals.workspace = value;
    if (name == "draft") out_.globals.draft = value;
    if (name == "C") out_.directory = value;
  }

  Completion finish(const std::string& typed) {
    out_.typed = typed;
    std::erase_if(out_.words, [&](const Candidate& c) {
      return !c.word.starts_with(typed);
    });
    return std::move(out_);
  }

  Completion value(const OptionSpec& option, std::string prefix,
                   const std::string& typed) {
    Completion kind = value_of(option);
    out_.fill = kind.fill;
    out_.words = std::move(kind.words);
    out_.prefix = std::move(prefix);
    return finish(typed);
  }

  Completion options(const std::string& typed) {
    for (const OptionSpec& option : options_) {
      bool is_global = find_global(option.name);
      // The command's own first; the rest only when asked for by letter.
      if (command_ != nullptr && is_global && typed.size() < 3) continue;
      out_.words.push_back({flag_of(option), option.value != nullptr
                                                 ? option.value
                                                 : std::string()});
    }
    return finish(typed);
  }

  static bool find_global(std::string_view name) {
    return std::ranges::any_of(global_options(), [&](const OptionSpec& o) {
      return name == o.name && name != "help";
    });
  }

  Completion commands(const std::string& typed) {
    for (const Command* c : all_commands())
      if (!c->summary.empty())
        out_.words.push_back({std::string(c->name), std::string(c->summary)});
    return finish(typed);
  }

  Completion argument(const std::string& typed) {
    if (arguments_ >= command_->max && !command_->command_follows)
      return finish(typed);
    const std::vector<Fill>& kinds = arguments_of(command_->name);
    out_.fill = kinds[std::min(arguments_, kinds.size() - 1)];
    if (out_.fill == Fill::kWords && arguments_ == 0)
      out_.words = words_of(command_->name);
    return finish(typed);
  }

  std::span<const std::string> words_;
  std::vector<OptionSpec> options_;  // in force so far
  const Command* command_ = nullptr;
  const OptionSpec* pending_ = nullptr;  // its value comes next
  bool ended_ = false;                   // by "--"
  size_t arguments_ = 0;
  Completion out_;
};

}  // namespace

Completion complete_line(std::span<const std::string> words) {
  return Line(words).complete();
}

}  // namespace stoplog::cli
