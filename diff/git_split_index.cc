// SPDX-License-Identifier: Apache-2.0
// The layout is that of gitformat-index(5), "Split index", and of git's EWAH
// bitmaps.
#include "diff/git_split_index.h"

#include <algorithm>
#include <bit>

namespace stoplog::diff {
namespace {

std::unexpected<Error> bad(std::string_view what) {
  return fail(Code::kInvalid, "the index is damaged: {}", what);
}

bool less(const IndexEntry& a, const IndexEntry& b) {
  int order = a.path.compare(b.path);
  return order != 0 ? order < 0 : a.stage < b.stage;
}

uint64_t take_big(std::string_view& bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(size);
  return value;
}

// One bitmap, taken off `bytes`, for `count` entries: runs of equal words and
// literal ones.
Result<std::vector<bool>> take_bitmap(std::string_view& bytes, size_t count) {
  if (bytes.size() < 8) return bad("a bitmap is cut off");
  (void)take_big(bytes, 4);  // how many bits; the words say it too
  uint64_t words = take_big(bytes, 4);
  if (words * 8 + 4 > bytes.size()) return bad("a bitmap is cut off");
  std::vector<bool> bits(count);
  uint64_t at = 0;
  while (words > 0) {
    uint64_t head = take_big(bytes, 8);
    words--;
    uint64_t run = 64 * (head >> 1 & 0xffff'ffff), literals = head >> 33;
    if ((head & 1) != 0) {
      if (at > count || run > count - at) return bad("a bitmap is too long");
      std::fill_n(bits.begin() + static_cast<long>(at), run, true);
    }
    at += run;
    if (literals > words) return bad("a bitmap is cut off");
    for (; literals > 0; literals--, words--, at += 64)
      for (uint64_t word = take_big(bytes, 8); word != 0; word &= word - 1) {
        uint64_t bit = at + static_cast<uint64_t>(std::countr_zero(word));
        if (bit >= count) return bad("a bitmap is too long");
        bits[static_cast<size_t>(bit)] = true;
      }
  }
  (void)take_big(bytes, 4);  // where the last head is: for those who append
  return bits;
}

// The extension that makes it a split one. Most indexes are told by the word
// alone, without reading them twice.
Result<std::optional<std::string_view>> find_link(std::string_view bytes,
                                                  ObjectFormat format) {
  if (bytes.find("link") == std::string_view::npos) return std::nullopt;
  IndexReader reader =
      TRY(IndexReader::open(bytes, format, IndexReader::Names::kMayLack));
  while (TRY(reader.next())) continue;
  auto link = reader.link();
  const size_t id = id_size(format);
  if (!link) return std::nullopt;
  if (link->size() < id) return bad("the link is cut off");
  // A zero id: nothing is shared.
  bool none =
      link->substr(0, id).find_first_not_of('\0') == std::string_view::npos;
  return none ? std::nullopt : link;
}

}  // namespace

Result<IndexEntries> IndexEntries::open(const IndexText& text,
                                        ObjectFormat format) {
  IndexEntries out;
  if (text.bytes.empty()) return out;
  if (auto link = TRY(find_link(text.bytes, format)))
    out.split_ = TRY(open_split(text, *link, format));
  else
    out.plain_ = TRY(IndexReader::open(text.bytes, format));
  return out;
}

Result<std::unique_ptr<IndexEntries::Split>> IndexEntries::open_split(
    const IndexText& text, std::string_view link, ObjectFormat format) {
  if (!text.shared)
    return fail(Code::kUnsupported, "a split index without its other half");
  std::string_view id = link.substr(0, id_size(format));
  link.remove_prefix(id.size());
  auto split = std::make_unique<Split>();
  split->bytes = TRY_CTX(
      text.shared(
          "sharedindex." +
          hex({reinterpret_cast<const unsigned char*>(id.data()), id.size()})),
      "the shared part of a split index");
  if (!split->bytes.ends_with(id))
    return bad("its shared part is not the one that it names");
  split->shared = TRY(IndexReader::open(split->bytes, format));
  size_t count = split->shared->count();
  split->deleted.resize(count);
  split->replaced.resize(count);
  if (!link.empty()) {
    split->deleted = TRY(take_bitmap(link, count));
    split->replaced = TRY(take_bitmap(link, count));
  }
  // Entries that replace shared ones come first, without names.
  constexpr auto kMayLack = IndexReader::Names::kMayLack;
  split->replacing = TRY(IndexReader::open(text.bytes, format, kMayLack));
  split->adding = TRY(IndexReader::open(text.bytes, format, kMayLack));
  for (auto n = std::ranges::count(split->replaced, true); n > 0; n--)
    if (!TRY(split->adding->next())) return bad("replaced entries are missing");
  TRY(next_shared(*split));
  TRY(next_added(*split));
  return split;
}

Status IndexEntries::next_shared(Split& split) {
  for (;;) {
    split.next_shared = TRY(split.shared->next());
    if (!split.next_shared) return {};
    size_t at = split.at++;
    if (split.replaced[at]) {
      auto own = TRY(split.replacing->next());
      if (!own || !own->path.empty()) return bad("a replaced entry has a name");
      own->path = std::move(split.next_shared->path);
      split.next_shared = std::move(own);
    }
    if (!split.deleted[at]) return {};
  }
}

Status IndexEntries::next_added(Split& split) {
  split.next_added = TRY(split.adding->next());
  if (split.next_added && split.next_added->path.empty())
    return bad("an entry has no path");
  return {};
}

Result<std::optional<IndexEntry>> IndexEntries::next() {
  if (plain_) return plain_->next();
  if (!split_) return std::nullopt;
  auto& shared = split_->next_shared;
  auto& added = split_->next_added;
  std::optional<IndexEntry> out;
  if (added && (!shared || !less(*shared, *added))) {
    // Of the same name: it stands for the shared one.
    if (shared && !less(*added, *shared)) TRY(next_shared(*split_));
    out = std::move(added);
    TRY(next_added(*split_));
  } else if (shared) {
    out = std::move(shared);
    TRY(next_shared(*split_));
  }
  return out;
}

namespace {

// One side of a comparison; an absent index has no entries.
class Side {
 public:
  static Result<Side> open(const IndexText& text, ObjectFormat format) {
    Side side;
    side.entries_ = TRY(IndexEntries::open(text, format));
    TRY(side.advance());
    return side;
  }
  Status advance() {
    std::optional<IndexEntry> entry = TRY(entries_.next());
    if (entry && now && !less(*now, *entry)) return bad("not in order");
    now = std::move(entry);
    return {};
  }
  std::optional<IndexEntry> now;

 private:
  IndexEntries entries_;
};

bool hides_more(const IndexEntry* before, const IndexEntry& now) {
  return (now.assume_valid && !(before && before->assume_valid)) ||
         (now.skip_worktree && !(before && before->skip_worktree));
}

void add_meaning(Sha256& hash, const IndexEntry& entry) {
  hash.update(fmt::format(
      "{} {:o} {} {} {}{}{}\n", entry.path.size(), entry.mode,
      hex({reinterpret_cast<const unsigned char*>(entry.id.data()),
           entry.id.size()}),
      entry.stage, entry.assume_valid ? 'a' : '-',
      entry.skip_worktree ? 's' : '-', entry.intent_to_add ? 'i' : '-'));
  hash.update(entry.path);
}

}  // namespace

Result<IndexDelta> compare_indexes(const IndexText& before,
                                   const IndexText& after, ObjectFormat format,
                                   const EachDifference& each) {
  Side a = TRY(Side::open(before, format));
  Side b = TRY(Side::open(after, format));
  IndexDelta delta;
  Sha256 meaning;
  while (a.now || b.now) {
    bool only_a = a.now && (!b.now || less(*a.now, *b.now));
    bool only_b = b.now && (!a.now || less(*b.now, *a.now));
    delta.removed += only_a;
    delta.added += only_b;
    bool differs = only_a || only_b || *a.now != *b.now;
    if (!only_a && !only_b) delta.modified += differs;
    if (differs && each)
      each(only_b ? nullptr : &*a.now, only_a ? nullptr : &*b.now);
    if (!only_a && hides_more(only_b ? nullptr : &*a.now, *b.now))
      if (delta.hidden++ == 0) delta.first_hidden = b.now->path;
    if (!only_a) {
      add_meaning(meaning, *b.now);
      TRY(b.advance());
    }
    if (!only_b) TRY(a.advance());
  }
  delta.meaning = meaning.finish();
  return delta;
}

}  // namespace stoplog::diff
