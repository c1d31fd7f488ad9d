// SPDX-License-Identifier: Apache-2.0
#include "diff/canonical.h"

#include "base/parallel.h"
#include "diff/git_meta.h"

namespace stoplog::diff {
namespace {

constexpr size_t kManyChanges = 2000;  // a digest takes 2 us, a thread 50

// Every field with its length in front, so that no two lists of fields give
// the same bytes.
class Form {
 public:
  void field(std::string_view bytes) {
    char size[8];
    for (int i = 0; i < 8; i++)
      size[i] =
          static_cast<char>(static_cast<uint64_t>(bytes.size()) >> (8 * i));
    hash_.update(std::string_view(size, sizeof size));
    hash_.update(bytes);
  }
  void digest(const std::optional<Sha256Digest>& digest) {
    field(digest ? hex(*digest) : "");
  }
  Sha256Digest finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

void put_state(Form& form, const std::optional<fs::NodeState>& state,
               const std::optional<Sha256Digest>& content) {
  if (!state) {
    form.field("absent");
    return;
  }
  form.field(mode_text(*state));
  form.field(fmt::format("{}:{}", state->uid, state->gid));
  bool device =
      state->type == fs::Type::kChar || state->type == fs::Type::kBlock;
  form.field(device ? fmt::format("{:x}", state->rdev) : "");
  form.digest(content);
  form.field(fmt::format("{}", state->xattrs.size()));
  for (const auto& [name, value] : state->xattrs) {
    form.field(name);
    form.field(value);
  }
}

}  // namespace

bool is_covered(const Change& change, bool include_ignored) {
  return !change.ignored || include_ignored || change.is_deletion() ||
         change.is_danger();
}

Sha256Digest change_digest(const Change& change) {
  Form form;
  form.field("stoplog change 1");
  form.field(name_of(change.kind));
  form.field(change.path.str());
  form.field(change.from ? "from" : "");
  form.field(change.from ? change.from->str() : "");
  form.field(change.link_to ? "link" : "");
  form.field(change.link_to ? change.link_to->str() : "");
  if (change.merges) {
    form.field("merges");
    form.field(change.merges->str());
  }
  if (change.git) {
    form.field("git");
    form.digest(change.git->meaning);
    return form.finish();
  }
  put_state(form, change.before, change.old_sha256);
  put_state(form, change.after, change.new_sha256);
  return form.finish();
}

Sha256Digest set_digest(const ChangeSet& set, bool include_ignored) {
  Form form;
  form.field("stoplog change set 1");
  // Each by itself, on all processors when there are many, and then in order.
  std::vector<Sha256Digest> each(set.changes.size());
  const unsigned threads = each.size() < kManyChanges ? 1 : 0;
  (void)parallel_for(each.size(), threads, [&](size_t i) -> Status {
    if (is_covered(set.changes[i], include_ignored))
      each[i] = change_digest(set.changes[i]);
    return {};
  });
  for (size_t i = 0; i < each.size(); ++i)
    if (is_covered(set.changes[i], include_ignored)) form.digest(each[i]);
  form.field("directories");
  for (const Change& change : set.directories)
    if (is_covered(change, include_ignored)) form.digest(change_digest(change));
  return form.finish();
}

}  // namespace stoplog::diff
