// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <charconv>

#include "base/escape.h"
#include "base/strings.h"

namespace stoplog::cli {
namespace {

Error unknown_option(std::string_view word, const ArgSpec& spec) {
  Error error(Code::kUsage,
              spec.command.empty()
                  ? fmt::format("unknown option '{}'", escape(word))
                  : fmt::format("unknown option '{}' of '{}'", escape(word),
                                spec.command));
  std::vector<std::string> longs;
  for (const OptionSpec& o : spec.options)
    longs.push_back(std::string("--") + o.name);
  std::vector<std::string_view> names(longs.begin(), longs.end());
  std::string_view near = nearest(word.substr(0, word.find('=')), names);
  if (!near.empty())
    return std::move(error).with_hint(fmt::format("did you mean '{}'?", near));
  return std::move(error).with_hint(
      spec.command.empty()
          ? std::string("see `stoplog --help`")
          : fmt::format("see `stoplog {} --help`", spec.command));
}

class Parser {
 public:
  Parser(std::span<const std::string> words, const ArgSpec& spec)
      : words_(words), spec_(spec) {}

  Result<Args> parse() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "--") {
        args_.double_dash = true;
        ++at_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        if (spec_.command_follows) break;
        args_.positionals.push_back(word);
        ++at_;
        continue;
      }
      ++at_;
      TRY(word[1] == '-' ? long_option(word) : letters(word));
    }
    for (; at_ < words_.size(); ++at_) args_.positionals.push_back(words_[at_]);
    TRY(check_count());
    return std::move(args_);
  }

 private:
  Status check_count() const {
    size_t n = args_.positionals.size();
    if (n < spec_.min)
      return std::unexpected(
          Error(Code::kUsage,
                fmt::format("'{}' needs {}", spec_.command,
                            spec_.min == 1
                                ? "an argument"
                                : std::to_string(spec_.min) + " arguments"))
              .with_hint(
                  fmt::format("see `stoplog {} --help`", spec_.command)));
    if (n > spec_.max)
      return std::unexpected(
          Error(Code::kUsage,
                fmt::format("'{}' takes no argument '{}'", spec_.command,
                            escape(args_.positionals[spec_.max])))
              .with_hint(
                  fmt::format("see `stoplog {} --help`", spec_.command)));
    return {};
  }

  Status store(const OptionSpec& option, std::optional<std::string> value,
               std::string_view shown) {
    auto& list = args_.options[option.name];
    if (option.value == nullptr) {
      if (value) return fail(Code::kUsage, "option '{}' takes no value", shown);
      list = {""};
      return {};
    }
    if (!value) {
      if (at_ == words_.size())
        return fail(Code::kUsage, "option '{}' needs a value ({})", shown,
                    option.value);
      value = words_[at_++];
    }
    if (!option.repeats) list.clear();
    list.push_back(std::move(*value));
    return {};
  }

  Status long_option(const std::string& word) {
    size_t equals = word.find('=');
    std::string name =
        word.substr(2, equals == word.npos ? word.npos : equals - 2);
    std::optional<std::string> value;
    if (equals != word.npos) value = word.substr(equals + 1);
    for (const OptionSpec& option : spec_.options)
      if (name == option.name) return store(option, value, "--" + name);
    return std::unexpected(unknown_option(word, spec_));
  }

  Status letters(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const OptionSpec* found = nullptr;
      for (const OptionSpec& option : spec_.options)
        if (option.letter == word[i]) found = &option;
      if (found == nullptr)
        return std::unexpected(unknown_option(
            word.size() == 2 ? word : fmt::format("-{}", word[i]), spec_));
      std::string shown = fmt::format("-{}", word[i]);
      if (found->value != nullptr && i + 1 < word.size())
        return store(*found, word.substr(i + 1), shown);
      TRY(store(*found, std::nullopt, shown));
      if (found->value != nullptr) break;
    }
    return {};
  }

  std::span<const std::string> words_;
  const ArgSpec& spec_;
  size_t at_ = 0;
  Args args_;
};

}  // namespace

std::optional<std::string> Args::value(std::string_view name) const {
  auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Args::values(std::string_view name) const {
  auto found = options.find(name);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

Result<Args> parse_args(std::span<const std::string> words,
                        const ArgSpec& spec) {
  return Parser(words, spec).parse();
}

Result<uint64_t> parse_number(std::string_view text, std::string_view option,
                              uint64_t min, uint64_t max) {
  constexpr uint64_t kLarge = uint64_t{1} << 31;  // nobody gets there
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      text.empty() || value < min || value > max)
    return fail(Code::kUsage, "{}'{}' is not a number from {} {}",
                option.empty() ? "" : fmt::format("{}: ", option), escape(text),
                min, max < kLarge ? fmt::format("to {}", max) : "upwards");
  return value;
}

}  // namespace stoplog::cli
