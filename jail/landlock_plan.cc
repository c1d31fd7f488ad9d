// SPDX-License-Identifier: Apache-2.0
#include "jail/landlock_plan.h"

namespace stoplog::jail {
namespace {

using namespace sys;

constexpr uint64_t kRead =
    kLandlockExecute | kLandlockReadFile | kLandlockReadDir;
// A device that is there may be written and given ioctls; none can be made.
constexpr uint64_t kUse =
    kRead | kLandlockWriteFile | kLandlockTruncate | kLandlockIoctlDev;
constexpr uint64_t kWrite = kUse | kLandlockRemoveDir | kLandlockRemoveFile |
                            kLandlockMakeDir | kLandlockMakeReg |
                            kLandlockMakeSock | kLandlockMakeFifo |
                            kLandlockMakeSym | kLandlockRefer;
constexpr uint64_t kAll = kWrite | kLandlockMakeChar | kLandlockMakeBlock;

uint64_t known_rights(int abi) {
  uint64_t rights = kAll;
  if (abi < 3) rights &= ~uint64_t{kLandlockTruncate};
  if (abi < 5) rights &= ~uint64_t{kLandlockIoctlDev};
  return rights;
}

}  // namespace

Result<LandlockPlan> plan_landlock(const JailSpec& spec, int abi) {
  if (abi < 2)
    return std::unexpected(
        Error(Code::kUnsupported,
              abi == 0 ? "this kernel has no Landlock, or it is not enabled"
                       : "this kernel's Landlock is too old (ABI 1)")
            .with_hint("boot Linux 5.19 or newer with 'landlock' among the "
                       "lsm= modules"));
  if (spec.net == Net::kHost && abi < 6)
    return std::unexpected(
        Error(Code::kUnsupported,
              fmt::format("with the host's network, abstract sockets of the "
                          "host would be in reach: Landlock ABI {} cannot "
                          "stop that, ABI 6 can",
                          abi))
            .with_hint("use --net none, or Linux 6.12 or newer"));
  LandlockPlan plan;
  const uint64_t known = known_rights(abi);
  plan.handled.fs = known;
  if (abi >= 6)
    plan.handled.scoped = kLandlockScopeAbstractUnix | kLandlockScopeSignal;
  auto allow = [&](std::string path, uint64_t rights, bool per_command) {
    plan.rules.push_back({.path = std::move(path),
                          .rights = rights & known,
                          .per_command = per_command});
  };
  allow("/", kRead, false);
  allow("/dev", kUse, false);
  for (const char* path : {"/dev/shm", "/tmp", "/var/tmp", "/run"})
    allow(path, kWrite, false);
  allow(spec.home, kWrite, false);
  allow(spec.workspace, kWrite, false);
  allow("/proc", kRead | kLandlockWriteFile | kLandlockTruncate, true);
  return plan;
}

std::string describe(const LandlockRule& rule) {
  const char* level = "read";
  if ((rule.rights & kLandlockMakeReg) != 0)
    level = "write";
  else if ((rule.rights & kLandlockWriteFile) != 0)
    level = "use";
  return fmt::format("landlock {} {}", level, rule.path);
}

}  // namespace stoplog::jail
