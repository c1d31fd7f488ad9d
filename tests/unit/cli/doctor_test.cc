// SPDX-License-Identifier: Apache-2.0
// Each bad verdict of `doctor` beside the jail's, with what follows from it and
// what to do, whatever this machine is like.
#include <cerrno>

#include "catch_shim.h"
#include "cli/doctor_judge.h"

using namespace stoplog;
using namespace stoplog::cli;
using jail::Check;
using jail::Verdict;

namespace {

void says(const Check& check, Verdict verdict, const char* follows,
          const char* fix) {
  INFO(check.name << ": " << check.detail << " | " << check.hint);
  CHECK(check.verdict == verdict);
  CHECK(check.detail.find(follows) != std::string::npos);
  CHECK(check.hint.find(fix) != std::string::npos);
}
void is_well(const Check& check) {
  INFO(check.name << ": " << check.detail);
  CHECK(check.verdict == Verdict::kOk);
  CHECK_FALSE(check.detail.empty());
  CHECK(check.hint.empty());
}

}  // namespace

TEST_CASE("an old kernel lacks what the jail is made of") {
  is_well(judge_kernel(sys::kOldestKernel));
  is_well(judge_kernel({7, 0}));
  says(judge_kernel({5, 18}), Verdict::kFail,
       "Linux 5.18: too old, it lacks what the jail is made of",
       "boot Linux 5.19 or newer");
}

TEST_CASE("without the device or fusermount3 nothing can be mounted") {
  is_well(judge_fuse({}));
  says(judge_fuse({.error = ENOENT}), Verdict::kFail,
       "cannot open /dev/fuse: No such file or directory; without it a draft "
       "cannot be shown",
       "modprobe fuse");
  says(judge_fuse({.error = EACCES}), Verdict::kFail, "Permission denied",
       "chmod 666 /dev/fuse");
  says(judge_fuse({.error = EPERM}), Verdict::kFail, "not permitted",
       "allow the device");
  is_well(judge_fusermount({.root = true}));
  says(judge_fusermount({.root = true, .root_error = EPERM}), Verdict::kFail,
       "root cannot mount here: Operation not permitted", "CAP_SYS_ADMIN");
  is_well(judge_fusermount({.there = true, .setuid = true}));
  says(judge_fusermount({}), Verdict::kFail, "an ordinary user cannot mount",
       "fuse3 package");
  says(judge_fusermount({.there = true}), Verdict::kFail, "not setuid root",
       "chmod u+s");
}

TEST_CASE("few watches or instances: edits show late") {
  is_well(judge_watches({.watches = 65536, .instances = 128}));
  says(judge_watches({.watches = 8192, .instances = 128}), Verdict::kWarn,
       "edits of the real files show after a second",
       "fs.inotify.max_user_watches=");
  says(judge_watches({.watches = 65536, .instances = 8}), Verdict::kWarn,
       "8 instances a user, one for each draft at work",
       "fs.inotify.max_user_instances=");
  says(judge_watches({}), Verdict::kWarn, "0 watches", "sysctl");
}

TEST_CASE("io_uring is told with what turns it on and is no reason to worry") {
  is_well(judge_rings({.there = true, .on = true, .can_abort = true}));
  says(judge_rings({.there = true, .on = false, .can_abort = true}),
       Verdict::kOk, "off for FUSE", "enable_uring");
  says(judge_rings({.there = true, .on = true, .can_abort = false}),
       Verdict::kOk, "not used", "fusectl");
  CHECK(judge_rings({}).verdict == Verdict::kOk);
}

TEST_CASE("reflink is told, never a reason to worry") {
  is_well(judge_reflink(true));
  says(judge_reflink(false), Verdict::kOk, "copied in the background", "XFS");
}

TEST_CASE("room: enough, little, none, not known") {
  SpaceFacts facts{
      .place = "/s\n", .bytes = uint64_t{5} << 30, .files = 100000};
  is_well(judge_space(facts));
  facts.files.reset();  // Btrfs has no such bound
  is_well(judge_space(facts));
  facts.bytes = 100 << 20;
  says(judge_space(facts), Verdict::kWarn, "gets ENOSPC", "stoplog gc");
  CHECK(judge_space(facts).detail.find('\n') == std::string::npos);
  facts.bytes = 4096;
  says(judge_space(facts), Verdict::kFail, "a draft cannot be written",
       "stoplog gc");
  facts.bytes = uint64_t{5} << 30;
  facts.files = 9000;
  says(judge_space(facts), Verdict::kWarn, "9000 files can still be made",
       "stoplog rm");
  facts.files = 0;
  says(judge_space(facts), Verdict::kFail, "no file can be made", "stoplog gc");
  facts.error = EIO;
  says(judge_space(facts), Verdict::kWarn, "cannot tell the room",
       "XDG_STATE_HOME");
}

TEST_CASE("state: unusable, damaged, left by what was killed") {
  StateFacts facts;
  facts.place = "/s";
  facts.drafts = 2;
  is_well(judge_state(facts));
  facts.unfinished = 1;
  says(judge_state(facts), Verdict::kWarn, "1 draft that was being made",
       "stoplog gc");
  facts.dead_mounts = {"/run/u/stoplog/abcdefgh/mount"};
  says(judge_state(facts), Verdict::kWarn,
       "/run/u/stoplog/abcdefgh/mount answers nobody", "stoplog run");
  facts.damaged = {"abcdefgh"};
  says(judge_state(facts), Verdict::kWarn, "1 without a readable draft.json",
       "/s/drafts/abcdefgh");
  facts.error = "cannot write in '/s': Read-only file system";
  says(judge_state(facts), Verdict::kFail,
       "Read-only file system; no draft can be used", "XDG_STATE_HOME");
  facts.hint = "sudo -H";
  says(judge_state(facts), Verdict::kFail, "no draft", "sudo -H");
}

TEST_CASE("a workspace on NFS: what shows late and what is refused") {
  WorkspaceFacts ext4{.path = "/w", .magic = 0xEF53};
  is_well(judge_workspace(ext4));
  CHECK(workspace_note(ext4).empty());
  struct Row {
    uint64_t magic;
    const char* name;
    bool network;
  };
  for (const Row& row :
       {Row{0x6969, "NFS", true}, Row{0xfe534d42, "SMB", true},
        Row{0x01021997, "9P", true}, Row{0x65735546, "FUSE", false},
        Row{0x12345, "type 0x12345", false}}) {
    WorkspaceFacts facts{.path = "/w\x1b", .magic = row.magic};
    Check check = judge_workspace(facts);
    says(check, Verdict::kWarn, "edits of the real files show after a second",
         "export --patch");
    CHECK(check.detail.find(fmt::format("is on {}:", row.name)) !=
          std::string::npos);
    CHECK(row.network ==
          (check.detail.find("`commit` refuses") != std::string::npos));
    CHECK(check.detail.find('\x1b') == std::string::npos);
    // `run` says the same once, when it starts a draft.
    CHECK(workspace_note(facts) == check.detail + "; " + check.hint);
  }
  WorkspaceFacts closed{.path = "/w", .error = EACCES};
  says(judge_workspace(closed), Verdict::kFail, "nothing can run over it",
       "may read");
  CHECK(workspace_note(closed).empty());
}
