// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/sys_file.h"
#include "catch_shim.h"
#include "fs/journal.h"
#include "fs/random_history.h"
#include "snapshot/bundle_file.h"
#include "snapshot/frame_packer.h"

using namespace stoplog;
using namespace stoplog::snapshot;
using stoplog::test::RandomHistory;
using stoplog::test::TempDir;
using stoplog::test::TreeFixture;

namespace {

Fd memory_file(std::string_view bytes = "") {
  Fd fd(::memfd_create("bundle", MFD_CLOEXEC));
  REQUIRE(fd);
  REQUIRE(sys::write_full(fd.get(), bytes));
  return fd;
}

std::string all_of(int fd) { return *sys::read_all(fd, 1u << 30); }

// The first error of opening it and reading every section.
Status read_all_sections(int fd) {
  BundleReader in = TRY(BundleReader::open(fd));
  for (const Section& s : in.sections())
    TRY(in.read(s, [](auto) -> Status { return {}; }));
  return {};
}

const Progress kQuiet;

Fd export_of(TreeFixture& f) {
  Fd fd = memory_file();
  auto out = BundleWriter::create(fd.get(), 2);
  REQUIRE(out);
  fs::NeededRanges ranges;
  auto table =
      gather_base(f.draft.fd(), f.base.fd(), UINT64_MAX, kQuiet, &ranges);
  if (!table) FAIL(table.error().text());
  REQUIRE(out->add("base", encode(*table)));
  fs::RangeSet needed = ranges.take();
  auto done = export_tree(*out, {.prefix = "",
                                 .draft_dir = f.draft.fd(),
                                 .until = UINT64_MAX,
                                 .needed = needed,
                                 .progress = kQuiet});
  if (!done) FAIL(done.error().text());
  REQUIRE(out->finish());
  return fd;
}

Status import_over(int fd, int draft, int base) {
  BundleReader in = TRY(BundleReader::open(fd));
  BaseTable table = TRY(decode_base(TRY(in.text(*in.find("base"), 1u << 30))));
  Compared compared = TRY(compare_base(table, base));
  if (!compared.differences.empty())
    return fail(Code::kDrift, "{} {}", compared.differences[0].path.str(),
                compared.differences[0].what);
  return import_tree(in, {.prefix = "",
                          .draft_dir = draft,
                          .compared = compared,
                          .owners = {},
                          .progress = kQuiet});
}

// A bundle whose journal says what `records` say.
Fd crafted(const std::vector<fs::Record>& records, const BaseTable& table = {},
           std::string_view segment = "", std::string_view also = "") {
  TempDir draft;
  auto journal =
      fs::Journal::create(draft.fd(), {.draft = 7, .generation = 1}, 0);
  REQUIRE(journal);
  REQUIRE((*journal)->append(records, 0));
  REQUIRE((*journal)->publish());
  journal->reset();
  Fd fd = memory_file();
  auto out = BundleWriter::create(fd.get(), 0);
  REQUIRE(out);
  REQUIRE(out->add("base", encode(table)));
  REQUIRE(out->add("journal/00000001", draft.read("journal/00000001")));
  if (!segment.empty()) REQUIRE(out->add("segments/00000001", segment));
  if (!also.empty()) REQUIRE(out->add(std::string(also), ""));
  REQUIRE(out->finish());
  return fd;
}

Error failure(const Fd& fd) {
  TempDir draft, base;
  Status done = import_over(fd.get(), draft.fd(), base.fd());
  REQUIRE_FALSE(done);
  return done.error();
}
Code refusal(const Fd& fd) { return failure(fd).code(); }
bool leads_out(const Fd& fd) {
  Error error = failure(fd);
  return error.code() == Code::kCorrupt &&
         error.text().find("leads out") != std::string::npos;
}

}  // namespace

TEST_CASE("a bundle gives back what was put in") {
  Fd fd = memory_file();
  auto out = BundleWriter::create(fd.get(), 2);
  REQUIRE(out);
  std::string large(3000000, 'x');
  for (size_t i = 0; i < large.size(); i += 7) large[i] = char(i * i >> 3);
  REQUIRE(out->add("manifest", "{}"));
  REQUIRE(out->add("ledger", ""));
  REQUIRE(out->begin("segments/00000001", large.size()));
  for (size_t at = 0; at < large.size(); at += 1000)
    REQUIRE(out->write(std::as_bytes(std::span(large).subspan(at, 1000))));
  REQUIRE(out->end());
  REQUIRE(out->finish());
  auto in = BundleReader::open(fd.get());
  REQUIRE(in);
  CHECK(in->sections().size() == 3);
  CHECK(*in->text(*in->find("manifest"), 10) == "{}");
  CHECK(*in->text(*in->find("ledger"), 10) == "");
  CHECK(*in->text(*in->find("segments/00000001"), large.size()) == large);
  CHECK(in->text(*in->find("segments/00000001"), 10).error().code() ==
        Code::kCorrupt);
}

TEST_CASE("what is compressed in pieces by threads comes back in order") {
  constexpr size_t kPiece = FramePacker::kPiece;
  std::string text(7 * kPiece + 3, 'x');
  for (size_t i = 0; i < text.size(); i += 13) text[i] = char(i * i >> 7);
  for (int threads : {0, 1, 3}) {
    Fd fd = memory_file();
    auto out = BundleWriter::create(fd.get(), threads);
    std::vector<size_t> sizes = {0,          1, kPiece - 1, kPiece, kPiece + 1,
                                 2 * kPiece, 5, text.size()};
    for (size_t i = 0; i < sizes.size(); ++i)
      REQUIRE(out->add(fmt::format("segments/{:08x}", i + 1),
                       std::string_view(text).substr(0, sizes[i])));
    REQUIRE(out->finish());
    CHECK(out->written() == all_of(fd.get()).size());
    auto in = BundleReader::open(fd.get());
    REQUIRE(in);
    for (size_t i = 0; i < sizes.size(); ++i)
      CHECK(*in->text(in->sections()[i], text.size()) ==
            text.substr(0, sizes[i]));
  }
}

TEST_CASE("no bit of a bundle can be turned and no byte cut unseen") {
  Fd fd = memory_file();
  auto out = BundleWriter::create(fd.get(), 0);
  REQUIRE(out->add("manifest", "{\"version\":1}"));
  REQUIRE(out->add("ledger", std::string(500, 'l')));
  REQUIRE(out->finish());
  std::string good = all_of(fd.get());
  REQUIRE(read_all_sections(fd.get()));
  size_t believed = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = char(bad[at] ^ (1 << at % 8));
    if (read_all_sections(memory_file(bad).get())) ++believed;
    if (read_all_sections(memory_file(good.substr(0, at)).get())) ++believed;
  }
  CHECK(believed == 0);
  CHECK_FALSE(read_all_sections(memory_file(good + "x").get()));
  CHECK_FALSE(read_all_sections(memory_file(good + good).get()));
}

TEST_CASE("a bundle is refused that says it holds less than it does") {
  Fd fd = memory_file();
  auto out = BundleWriter::create(fd.get(), 0);
  REQUIRE(out->add("ledger", std::string(20 << 20, '\0')));
  REQUIRE(out->finish());
  // The index with another size, and its check made anew.
  std::string bytes = all_of(fd.get());
  size_t trailer = bytes.size() - 48;
  uint64_t index_size = 0;
  std::memcpy(&index_size, bytes.data() + trailer, 8);
  std::string index = bytes.substr(trailer - index_size, index_size);
  uint64_t small = 4096;
  std::memcpy(index.data() + 4 + 4 + 6 + 16, &small, 8);
  Sha256Digest digest = sha256(index);
  std::memcpy(bytes.data() + trailer - index_size, index.data(), index_size);
  std::memcpy(bytes.data() + trailer + 8, digest.data(), digest.size());
  Fd lying = memory_file(bytes);
  auto in = BundleReader::open(lying.get());
  REQUIRE(in);
  CHECK(in->sections()[0].size == 4096);
  uint64_t given = 0;
  auto done = in->read(in->sections()[0], [&](auto piece) -> Status {
    given += piece.size();
    return {};
  });
  REQUIRE_FALSE(done);
  CHECK(done.error().code() == Code::kCorrupt);
  CHECK(given <= 4096);
}

TEST_CASE("only names that an export writes are sections") {
  for (const char* name : {"manifest", "ledger", "base", "home/base",
                           "journal/00000001", "home/segments/0000000a"})
    CHECK(is_section_name(name));
  for (const char* name : {"", "../manifest", "journal/../../x", "journal/1",
                           "journal/0000000G", "objects/00", "home/home/base",
                           "/etc/passwd", "plan.json", "segments/00000001/x"})
    CHECK_FALSE(is_section_name(name));
}

TEST_CASE("a random history comes through a bundle with every mark") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    RandomHistory h(seed, true);
    h.run(120);
    Fd fd = export_of(h.f);
    TempDir base, draft;
    std::filesystem::copy(h.f.base.path(), base.path(),
                          std::filesystem::copy_options::recursive);
    auto done = import_over(fd.get(), draft.fd(), base.fd());
    if (!done) FAIL(done.error().text());
    for (const auto& [position, text] : h.marks) {
      INFO("mark " << position);
      CHECK(h.dump_over(draft.fd(), base.fd(), position) == text);
    }
    // And lives on.
    auto tree = fs::Tree::open({.draft_dir = draft.fd(),
                                .base = base.fd(),
                                .background = false,
                                .objects = h.f.options.objects});
    if (!tree) FAIL(tree.error().text());
    CHECK((*tree)->recovery_notes().empty());
    const auto& [first, shown] = *h.marks.begin();
    auto back = (*tree)->rollback(first);
    if (!back) FAIL(back.error().text());
    CHECK(h.dump_over(draft.fd(), base.fd(), back->position) == shown);
  }
}

TEST_CASE("a commit of a mode alone is known as one in a bundle") {
  TreeFixture f;
  f.base.write("tool", "#!");
  f.open();
  auto start = f.tree->mark(fs::MarkKind::kNamed, 0, "start");
  REQUIRE(start);
  REQUIRE(f.tree->setattr(f.at("tool"), {.set = fs::kSetMode, .mode = 0755},
                          f.caller));
  auto reviewed = f.tree->mark(fs::MarkKind::kNamed, 0, "reviewed");
  fs::BaseChange change{.path = *RelPath::parse("tool")};
  change.before = *sys::statat(f.base.fd(), "tool");
  std::filesystem::permissions(f.base / "tool", std::filesystem::perms{0755});
  change.now = *sys::statat(f.base.fd(), "tool");
  REQUIRE(f.tree->commit_base(reviewed->position, {{change}}));
  Fd fd = export_of(f);
  TempDir base, draft;
  std::filesystem::copy(f.base.path(), base.path(),
                        std::filesystem::copy_options::recursive);
  auto done = import_over(fd.get(), draft.fd(), base.fd());
  if (!done) FAIL(done.error().text());
  auto view = fs::open_view(
      {.draft_dir = draft.fd(), .base = base.fd(), .at = start->position});
  REQUIRE(view);
  auto state = (*view)->draft_state(*RelPath::parse("tool"));
  REQUIRE(state);
  CHECK((*state)->mode == 0644);
}

TEST_CASE("a bundle over another base names what differs") {
  TreeFixture f;
  f.base.write("edit", "one");
  f.base.write("gone", "two");
  f.base.mkdir("d");
  f.open();
  f.write("edit", "ONE");
  f.unlink("gone");
  f.create("d/new", "new");
  REQUIRE(f.tree->mark(fs::MarkKind::kNamed, 0, "m"));
  auto table = gather_base(f.draft.fd(), f.base.fd(), UINT64_MAX);
  REQUIRE(table);
  CHECK(table->drifted.empty());
  auto differ = [&](const std::function<void(TempDir&)>& change) {
    TempDir base;
    std::filesystem::copy(f.base.path(), base.path(),
                          std::filesystem::copy_options::recursive);
    change(base);
    auto compared = compare_base(*table, base.fd());
    REQUIRE(compared);
    std::string text;
    for (const auto& d : compared->differences)
      text += d.path.str() + " " + d.what + "\n";
    return text;
  };
  CHECK(differ([](TempDir&) {}) == "");
  CHECK(differ([](TempDir& b) { b.write("other", "x"); }) == "");
  CHECK(differ([](TempDir& b) { b.write("edit", "oNe"); }) ==
        "edit has other content here\n");
  CHECK(differ([](TempDir& b) { std::filesystem::remove(b / "gone"); }) ==
        "gone is missing here\n");
  CHECK(differ([](TempDir& b) { b.write("d/new", "x"); }) ==
        "d/new exists here\n");
  CHECK(differ([](TempDir& b) { std::filesystem::remove_all(b / "d"); }) ==
        "d is missing here\n");
  // Drift at home is named by the export; the bundle is for what was seen.
  f.base.write("edit", "edited by hand");
  auto after = gather_base(f.draft.fd(), f.base.fd(), UINT64_MAX);
  REQUIRE(after);
  CHECK(after->drifted == std::vector<std::string>{"edit"});
  TempDir seen;
  std::filesystem::copy(f.base.path(), seen.path(),
                        std::filesystem::copy_options::recursive);
  CHECK(compare_base(*after, seen.fd())->differences.size() == 1);
  seen.write("edit", "one");
  CHECK(compare_base(*after, seen.fd())->differences.empty());
}

TEST_CASE("a bundle that was made to harm is refused") {
  sys::Stat st;
  st.mode = S_IFREG | 0644;
  // Paths that lead out of the workspace.
  for (const char* path : {"../out", "/etc/passwd", "a/../../b"}) {
    CHECK(leads_out(crafted({fs::DeletedRecord{.path = path, .base = st}})));
    fs::NodeRecord node{.serial = 2, .mode = S_IFREG | 0644};
    node.base = st;
    node.lower_path = path;
    CHECK(leads_out(crafted({node})));
    fs::NodeRecord linked{.serial = 2, .mode = S_IFREG | 0644};
    linked.links.push_back(
        {.parent = 1, .name = "x", .from = 2, .origin = path});
    CHECK(leads_out(crafted({linked})));
  }
  std::string table(8, '\0');
  table += std::string("\1\0\0\0", 4) + std::string("\5\0\0\0", 4) + "../up";
  table += '\0';
  CHECK_FALSE(decode_base(table));
  // A table with more entries than any draft has paths, or out of order.
  std::string bomb(8, '\0');
  bomb += std::string("\0\0\0\1", 4);  // 16 million
  for (int i = 0; i < 100; ++i) bomb += std::string("\1\0\0\0x\0", 6);
  CHECK_FALSE(decode_base(bomb));
  std::string twice(8, '\0');
  twice += std::string("\2\0\0\0", 4);
  for (int i = 0; i < 2; ++i) twice += std::string("\1\0\0\0x\0", 6);
  CHECK_FALSE(decode_base(twice));
  // Numbers without room to count on.
  CHECK(failure(crafted({}, {}, "", "segments/ffffffff"))
            .text()
            .find("without a number") != std::string::npos);
  // Records that do not fit together.
  CHECK(refusal(crafted({fs::ExtentRecord{
            .serial = 99, .length = 5, .segment = 1}})) == Code::kCorrupt);
  // Content that is not there, or not where it is said to be.
  fs::CreateRecord file{
      .serial = 2, .parent = 1, .name = "f", .ino = 9, .mode = S_IFREG | 0644};
  fs::ExtentRecord extent{
      .serial = 2, .length = 5, .where = fs::Where::kSegment, .segment = 1};
  CHECK(refusal(crafted({file, extent})) == Code::kCorrupt);
  auto ranges = [](std::vector<uint64_t> numbers, std::string_view data) {
    std::string out(reinterpret_cast<const char*>(numbers.data()),
                    numbers.size() * 8);
    return out + std::string(data);
  };
  TempDir draft, base;
  REQUIRE(
      import_over(crafted({file, extent}, {}, ranges({1, 0, 5}, "12345")).get(),
                  draft.fd(), base.fd()));
  for (const std::string& segment :
       {ranges({1, 0, 4}, "1234"), ranges({1, 0, 5}, "1234"),
        ranges({1, 0, 5}, "123456"), ranges({2, 0, 5}, "12345"),
        ranges({UINT64_MAX}, ""), ranges({2, 3, 5, 0, 5}, "1234512345"),
        ranges({1, UINT64_MAX - 2, 5}, "12345"), ranges({1, 0, 0}, ""),
        std::string("abc")})
    CHECK(refusal(crafted({file, extent}, {}, segment)) == Code::kCorrupt);
  // An extent far beyond any file.
  extent.at = uint64_t{1} << 62;
  CHECK(refusal(crafted({file, extent}, {}, ranges({1, 0, 5}, "12345"))) ==
        Code::kCorrupt);
}

TEST_CASE("pages of zeros in a bundle take no space") {
  fs::CreateRecord file{
      .serial = 2, .parent = 1, .name = "f", .ino = 9, .mode = S_IFREG | 0644};
  constexpr uint64_t kSize = 64 << 20;
  fs::ExtentRecord extent{
      .serial = 2, .length = kSize, .where = fs::Where::kSegment, .segment = 1};
  std::string segment(24 + kSize, '\0');
  uint64_t head[3] = {1, 0, kSize};
  std::memcpy(segment.data(), head, sizeof head);
  TempDir draft, base;
  Fd fd = crafted({file, extent}, {}, segment);
  CHECK(sys::fstat(fd.get())->size < 100000);
  REQUIRE(import_over(fd.get(), draft.fd(), base.fd()));
  auto st = sys::statat(AT_FDCWD, (draft / "segments/00000001").string());
  REQUIRE(st);
  CHECK(st->size == kSize);
  CHECK(st->blocks == 0);
}
