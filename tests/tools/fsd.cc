// SPDX-License-Identifier: Apache-2.0
// fsd: a tree mounted for tests, without draft, jail and command line.
//
//   fsd --base DIR --draft DIR --mount DIR [--way privileged|fusermount|userns]
//       [--jail UID:GID --owner UID:GID] [--no-watch] [--most-watches N]
//       [--hide GLOB] [--mask GLOB] [--read-only GLOB] [--deny GLOB]
//       [--default-masks] [--quota BYTES] [--allow-other] [--no-background]
//       [--no-rings] [--no-poll] [--answer-opens] [--readers N]
//
// Prints "ready" once it serves, then answers one line of stdout for each line
// of stdin: counts, total, way, watch, stats, drain, mark NAME, rollback N,
// fsync, checkpoint, settle, drift, denials, quit. Ends at end of file.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <mutex>
#include <sstream>

#include "base/sys_file.h"
#include "fs/mount.h"
#include "fs/rules.h"

using namespace stoplog;
using namespace stoplog::fs;

namespace {

struct Arguments {
  std::string base;
  std::string draft;
  MountSpec spec{.path = {}, .allow_other = true};
  RulesSpec rules{.default_masks = false};
  ServeOptions serve;
  Quota quota;
  Owner owner{};
  std::optional<Owner> jail;
  bool background = true;
};

struct Heard : Observer {
  void invalidate(std::span<const Invalidation>) override {}
  void drift(const DriftNote& note) override {
    std::lock_guard lock(mutex);
    drifts.push_back(note.path.str() + ": " + note.what);
  }
  void denied(const Denial& denial) override {
    std::lock_guard lock(mutex);
    denials.push_back(fmt::format("{} {}", denial.operation, denial.path));
  }
  std::mutex mutex;
  std::vector<std::string> drifts;
  std::vector<std::string> denials;
};

Result<Owner> identity(const std::string& text) {
  Owner out;
  char colon = 0;
  std::istringstream in(text);
  if (!(in >> out.uid >> colon >> out.gid) || colon != ':')
    return fail(Code::kUsage, "'{}' is not UID:GID", text);
  return out;
}

Result<Way> way(const std::string& text) {
  if (text == "privileged") return Way::kPrivileged;
  if (text == "fusermount") return Way::kFusermount;
  if (text == "userns") return Way::kUserNamespace;
  return fail(Code::kUsage, "unknown way '{}'", text);
}

Status parse_value(Arguments& out, const std::string& key,
                   const std::string& value) {
  if (key == "--base")
    out.base = value;
  else if (key == "--draft")
    out.draft = value;
  else if (key == "--mount")
    out.spec.path = value;
  else if (key == "--way")
    out.spec.way = TRY(way(value));
  else if (key == "--jail")
    out.jail = TRY(identity(value));
  else if (key == "--owner")
    out.owner = TRY(identity(value));
  else if (key == "--hide")
    out.rules.hide.push_back(value);
  else if (key == "--mask")
    out.rules.mask.push_back(value);
  else if (key == "--read-only")
    out.rules.read_only.push_back(value);
  else if (key == "--deny")
    out.rules.deny.push_back(value);
  else if (key == "--quota")
    out.quota.bytes = std::stoull(value);
  else if (key == "--readers")
    out.serve.least_readers = std::stoi(value);
  else if (key == "--most-watches")
    out.serve.most_watches = std::stoull(value);
  else
    return fail(Code::kUsage, "unknown option '{}'", key);
  return {};
}

Result<Arguments> parse(std::vector<std::string> words) {
  Arguments out;
  bool allow_other = false;
  if (const char* rings = ::getenv("FSD_RINGS"))
    out.serve.rings = std::string_view(rings) != "no";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--no-watch")
      out.serve.watch = false;
    else if (words[i] == "--no-rings")
      out.serve.rings = false;
    else if (words[i] == "--no-poll")
      out.serve.polls = false;
    else if (words[i] == "--answer-opens")
      out.serve.refuses_opens = false;
    else if (words[i] == "--allow-other")
      allow_other = true;
    else if (words[i] == "--default-masks")
      out.rules.default_masks = true;
    else if (words[i] == "--no-background")
      out.background = false;
    else if (i + 1 == words.size())
      return fail(Code::kUsage, "'{}' needs a value", words[i]);
    else {
      TRY(parse_value(out, words[i], words[i + 1]));
      ++i;
    }
  }
  out.spec.uid = ::getuid();
  out.spec.gid = ::getgid();
  out.spec.allow_other = allow_other || out.spec.way != Way::kFusermount;
  if (out.jail) out.serve.ids = IdMap::swap(out.owner, *out.jail);
  return out;
}

// A user namespace with the caller as its only id, and a mount namespace.
Status enter_namespace() {
  uid_t uid = ::getuid();
  gid_t gid = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
    return fail_errno(errno, "cannot make a user namespace");
  auto put = [](const char* path, const std::string& text) -> Status {
    Fd fd = TRY(sys::openat(AT_FDCWD, path, O_WRONLY));
    return sys::write_full(fd.get(), text);
  };
  TRY(put("/proc/self/setgroups", "deny"));
  TRY(put("/proc/self/uid_map", fmt::format("{} {} 1", uid, uid)));
  TRY(put("/proc/self/gid_map", fmt::format("{} {} 1", gid, gid)));
  return {};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += (out.empty() ? "" : " | ") + line;
  return out;
}

class Session {
 public:
  Session(Tree& tree, MountServer& server, Heard& heard)
      : tree_(tree), server_(server), heard_(heard) {}

  Result<std::string> answer(const std::string& line) {
    std::istringstream in(line);
    std::string word;
    std::string rest;
    in >> word;
    std::getline(in >> std::ws, rest);
    if (word == "counts") return counts();
    if (word == "total") return std::to_string(server_.total_requests());
    if (word == "watch") return watch();
    if (word == "way")
      return std::string(server_.over_rings() ? "rings" : "device");
    if (word == "stats") return stats();
    if (word == "drain") return std::string(server_.drain() ? "ok" : "late");
    if (word == "drift") return joined(heard_.drifts);
    if (word == "denials") return joined(heard_.denials);
    if (word == "fsync") return done(tree_.fsync());
    if (word == "checkpoint") return done(tree_.checkpoint());
    if (word == "settle") return done(tree_.settle());
    if (word == "rollback") {
      TRY(tree_.rollback(std::stoull(rest)));
      return std::string(server_.drain() ? "ok" : "late");
    }
    if (word == "mark") {
      Mark mark = TRY(tree_.mark(MarkKind::kNamed, 0, rest));
      return std::to_string(mark.position);
    }
    return fail(Code::kUsage, "unknown word '{}'", word);
  }

 private:
  static Result<std::string> done(Status status) {
    TRY(std::move(status));
    return std::string("ok");
  }
  std::string counts() {
    std::string out;
    for (const auto& [name, count] : server_.request_counts())
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, count);
    return out;
  }
  std::string watch() {
    auto s = server_.watch_stats();
    return fmt::format("watches={} refused={} events={} overflows={}",
                       s.watches, s.refused, s.events, s.overflows);
  }
  std::string stats() {
    auto s = tree_.stats();
    return fmt::format(
        "nodes={} touched={} held={} dead={} journal={} memory={} fds={}",
        s.live_nodes, s.touched_nodes, s.held_bytes, s.dead_bytes,
        s.journal_bytes, s.node_memory, s.open_fds);
  }
  Tree& tree_;
  MountServer& server_;
  Heard& heard_;
};

Status serve(Arguments args) {
  if (args.spec.way == Way::kUserNamespace) {
    TRY(enter_namespace());
    std::vector<IdRange> uids{{::getuid(), 1}};
    std::vector<IdRange> gids{{::getgid(), 1}};
    args.serve.ids = IdMap::restricted(uids, gids, {::getuid(), ::getgid()});
  }
  Fd base = TRY_CTX(sys::openat(AT_FDCWD, args.base, O_RDONLY | O_DIRECTORY),
                    args.base);
  Fd draft = TRY_CTX(sys::openat(AT_FDCWD, args.draft, O_RDONLY | O_DIRECTORY),
                     args.draft);
  auto rules = TRY(RuleSet::create(std::move(args.rules)));
  Heard heard;
  auto tree = TRY(Tree::open({.draft_dir = draft.get(),
                              .base = base.get(),
                              .rules = rules.get(),
                              .quota = args.quota,
                              .background = args.background}));
  for (const auto& note : tree->recovery_notes())
    fmt::print(stderr, "fsd: {}\n", note);
  args.serve.base = base.get();
  args.serve.observer = &heard;
  TRY(clear_dead_mount(args.spec.path));
  auto server =
      TRY(MountServer::create(*tree, args.spec, std::move(args.serve)));
  TRY(server->start());
  std::cout << "ready" << std::endl;
  Session session(*tree, *server, heard);
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    auto said = session.answer(line);
    std::cout << (said ? *said : "error: " + said.error().text()) << std::endl;
  }
  server->stop();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto args = parse({argv + 1, argv + argc});
  Status status =
      args ? serve(std::move(*args)) : Status(std::unexpected(args.error()));
  if (!status) fmt::print(stderr, "fsd: {}\n", status.error().text());
  return status ? 0 : 1;
}
