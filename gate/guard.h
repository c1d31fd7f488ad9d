// SPDX-License-Identifier: Apache-2.0
// A regular file held still: while a Guard stands, nobody can open the file for
// writing, and nobody had it open when the guard was taken. It is a read lease
// (fcntl(2), F_SETLEASE): the kernel grants it only when there is no writer,
// and lets a later one wait in open(2) until it is given back.
//
//   Guard guard = TRY(Guard::take(disk, dir, name));
//   if (guard.busy()) ...           // somebody is writing to it now
//   ... rename it away ...
//   if (guard.is_wanted()) ...      // somebody waits to write: put it back
//
// is_wanted() and putting back before the guard ends is what makes a save that
// began in the middle of a switch land in the file that has the name. Where
// there are no leases (network file systems, files of others) holds() is false
// and the caller must look at the content afterwards.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_file.h"

namespace stoplog::gate {

class Disk;

class Guard {
 public:
  Guard() = default;
  enum class Wait { kNo, kYes };
  // Waits a moment for a writer to finish. Absent is ENOENT.
  static Result<Guard> take(const Disk& disk, int dir, const std::string& name,
                            Wait wait = Wait::kYes);
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) noexcept = default;

  bool holds() const { return state_ == State::kHeld; }
  bool busy() const { return state_ == State::kBusy; }
  // Somebody waits in open(2), or in truncate(2).
  bool is_wanted() const;
  const sys::Stat& stat() const { return stat_; }
  int fd() const { return fd_.get(); }

 private:
  enum class State { kNone, kHeld, kBusy };
  Fd fd_;  // closing it gives the lease back
  State state_ = State::kNone;
  sys::Stat stat_;
};

}  // namespace stoplog::gate
