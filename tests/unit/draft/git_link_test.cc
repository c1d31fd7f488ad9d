// SPDX-License-Identifier: Apache-2.0
#include "draft/git_link.h"

#include "catch_shim.h"

using namespace stoplog::draft;

TEST_CASE("a git configuration that holds a credential is known") {
  CHECK(tells_credential("[remote \"o\"]\n\turl = https://u:p@host/x\n"));
  CHECK(tells_credential("[remote \"o\"]\n\turl = https://ghp_x@host/x\n"));
  CHECK(tells_credential("[url \"https://tok@host/\"]\n\tinsteadOf = x\n"));
  CHECK(tells_credential("[http]\n\textraHeader = Authorization: x\n"));
  CHECK(tells_credential("[http \"https://h\"] ExtraHeader=x\n"));
  CHECK(tells_credential("[sendemail]\n\tsmtpPass = x\n"));
  CHECK(tells_credential("[remote \"o\"]\n\turl = https://u\\\n:p@host/x\n"));
  CHECK_FALSE(tells_credential("[remote \"o\"]\n\turl = ssh://git@host/x\n"));
  CHECK_FALSE(tells_credential("[remote \"o\"]\n\turl = git@host:x.git\n"));
  CHECK_FALSE(tells_credential("[branch \"token\"]\n\tremote = o\n"));
  CHECK_FALSE(tells_credential("[remote \"o\"]\n\turl = https://h/u@v\n"));
}

TEST_CASE("core.worktree is read as git writes it") {
  CHECK(core_worktree("[core]\n\tworktree = ../../../sub\n") == "../../../sub");
  CHECK(core_worktree("[Core]\n WorkTree = \"../a b\"\n") == "../a b");
  CHECK(core_worktree("[other]\n\tworktree = x\n").empty());
  CHECK(core_worktree("").empty());
}
