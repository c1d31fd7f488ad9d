// SPDX-License-Identifier: Apache-2.0
// A private directory with a state, a runtime and a workspace in it; removed at
// the end.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/dir.h"
#include "base/sys_file.h"
#include "catch_shim.h"
#include "draft/layout.h"
#include "draft/store.h"

struct Place {
  Place() {
    char name[] = "/tmp/stoplog-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    top = name;
    layout.state = top + "/state";
    layout.runtime = top + "/run";
    layout.config = top + "/config";
    make("ws");
  }
  ~Place() {
    auto tmp = stoplog::sys::openat(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY);
    (void)stoplog::remove_tree(tmp->get(), top.substr(5));
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string make(const std::string& name) {
    std::string path = top + "/" + name;
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    return path;
  }
  void write(const std::string& name, std::string_view text) {
    auto fd = stoplog::sys::openat(AT_FDCWD, top + "/" + name,
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd);
    REQUIRE(stoplog::sys::write_full(fd->get(), text));
  }
  std::string read(const std::string& name) {
    return stoplog::sys::read_file(AT_FDCWD, top + "/" + name, 1u << 20)
        .value();
  }
  stoplog::draft::Workspace workspace(const std::string& name = "ws") {
    return stoplog::draft::find_workspace(
               {.given = top + "/" + name, .cwd = top})
        .value();
  }
  stoplog::draft::Store store() {
    return stoplog::draft::Store::open(layout,
                                       stoplog::draft::Store::Create::kYes)
        .value();
  }

  std::string top;
  stoplog::draft::Layout layout;
};
