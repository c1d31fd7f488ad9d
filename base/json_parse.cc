// SPDX-License-Identifier: Apache-2.0
// Json::parse: nlohmann-json's parser, which sees every byte, feeding our value
// type. In a file of its own: the header costs 1.5 s of compile time.
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace stoplog {
namespace {

constexpr size_t kMaxDepth = 64;
// Objects of ours are small; a large one with many keys is hostile, and a
// quadratic search over it would be its weapon.
constexpr size_t kMaxMembers = 4096;

}  // namespace

// The callbacks of nlohmann::json_sax: false ends the parse.
class JsonBuilder {
 public:
  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) { return add(Json(value)); }
  bool number_float(double value, const std::string&) {
    return add(Json(value));
  }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Level& level = levels_.back();
    if (level.value.members().size() >= kMaxMembers)
      return refuse("too many members");
    level.key = std::move(name);
    return true;
  }
  bool parse_error(size_t at, const std::string&,
                   const nlohmann::detail::exception&) {
    problem_ = fmt::format("not JSON at byte {}", at);
    return false;
  }

  Result<Json> take(bool parsed) {
    if (parsed) return std::move(result_);
    return fail(Code::kInvalid, "{}", problem_.empty() ? "not JSON" : problem_);
  }

 private:
  struct Level {
    Json value;
    std::string key;
  };

  bool refuse(const char* why) {
    problem_ = fmt::format("not JSON as we take it: {}", why);
    return false;
  }
  bool open(Json value) {
    if (levels_.size() >= kMaxDepth) return refuse("nested too deep");
    levels_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (levels_.empty()) {
      result_ = std::move(value);
      return true;
    }
    Level& top = levels_.back();
    if (top.value.is_array())
      top.value.push(std::move(value));
    else
      return add_member(top, std::move(value));
    return true;
  }

  // set() looks for the key, and replaces where it is there already.
  bool add_member(Level& top, Json value) {
    const size_t before = top.value.members().size();
    top.value.set(top.key, std::move(value));
    return top.value.members().size() > before || refuse("a key appears twice");
  }

  std::vector<Level> levels_;
  Json result_;
  std::string problem_;
};

Result<Json> Json::parse(std::string_view text) {
  JsonBuilder builder;
  bool parsed = nlohmann::json::sax_parse(text, &builder);
  return builder.take(parsed);
}

}  // namespace stoplog
