// SPDX-License-Identifier: Apache-2.0
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "base/sys_file.h"
#include "jail/seccomp_policy.h"

namespace stoplog::jail {
namespace {

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

uint32_t action_code(CallAction action) {
  switch (action) {
    case CallAction::kAllow:
      return SCMP_ACT_ALLOW;
    case CallAction::kEperm:
      return SCMP_ACT_ERRNO(EPERM);
    case CallAction::kEnosys:
      return SCMP_ACT_ERRNO(ENOSYS);
    case CallAction::kEafnosupport:
      return SCMP_ACT_ERRNO(EAFNOSUPPORT);
    case CallAction::kEprotonosupport:
      return SCMP_ACT_ERRNO(EPROTONOSUPPORT);
    case CallAction::kIgnore:
      return SCMP_ACT_ERRNO(0);
  }
  return SCMP_ACT_KILL_PROCESS;
}

scmp_arg_cmp compare(const CallTest& test) {
  scmp_arg_cmp cmp{};
  cmp.arg = test.argument;
  cmp.datum_a = test.value;
  switch (test.op) {
    case CallTest::Op::kEqual:
      cmp.op = SCMP_CMP_EQ;
      break;
    case CallTest::Op::kNotEqual:
      cmp.op = SCMP_CMP_NE;
      break;
    case CallTest::Op::kGreater:
      cmp.op = SCMP_CMP_GT;
      break;
    case CallTest::Op::kMaskedEqual:
      cmp.op = SCMP_CMP_MASKED_EQ;
      cmp.datum_a = test.mask;
      cmp.datum_b = test.value;
      break;
  }
  return cmp;
}

Result<Context> new_filter(CallAction fallback) {
  Context context(seccomp_init(action_code(fallback)), &seccomp_release);
  if (!context) return fail(Code::kUnsupported, "cannot set libseccomp up");
  // libseccomp itself counts x32 as a foreign ABI on x86-64.
  int rc = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH,
                            SCMP_ACT_KILL_PROCESS);
  if (rc == 0)
    rc = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (rc < 0) return fail_errno(-rc, "cannot set libseccomp up");
  return context;
}

Status add_rule(scmp_filter_ctx context, const CallRule& rule) {
  const int number = seccomp_syscall_resolve_name(rule.call);
  // Negative: unknown to libseccomp or not of this architecture. Not allowing
  // it is safe: the default is ENOSYS.
  if (number < 0) return {};
  std::vector<scmp_arg_cmp> tests;
  for (const CallTest& test : rule.tests) tests.push_back(compare(test));
  int rc =
      seccomp_rule_add_array(context, action_code(rule.action), number,
                             static_cast<unsigned>(tests.size()), tests.data());
  if (rc < 0) return fail_errno(-rc, "cannot filter the call '{}'", rule.call);
  return {};
}

Result<std::vector<sock_filter>> export_program(scmp_filter_ctx context) {
  Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) return fail_errno(errno, "cannot make a memory file");
  int rc = seccomp_export_bpf(context, file.get());
  if (rc < 0) return fail_errno(-rc, "cannot compile the system call filter");
  const sys::Stat stat = TRY(sys::fstat(file.get()));
  std::vector<sock_filter> program(stat.size / sizeof(sock_filter));
  TRY(sys::pread_full(file.get(), std::as_writable_bytes(std::span(program)),
                      0));
  return program;
}

}  // namespace

Result<SeccompPrograms> compile_seccomp(std::span<const CallRule> policy) {
  Context numbers = TRY(new_filter(CallAction::kEnosys));
  Context arguments = TRY(new_filter(CallAction::kAllow));
  for (const CallRule& rule : policy) {
    // A rule that says what the filter's default says is refused as useless.
    if (!rule.tests.empty())
      TRY(add_rule(arguments.get(), rule));
    else if (rule.action != CallAction::kEnosys)
      TRY(add_rule(numbers.get(), rule));
  }
  SeccompPrograms programs;
  programs.numbers = TRY(export_program(numbers.get()));
  programs.arguments = TRY(export_program(arguments.get()));
  return programs;
}

}  // namespace stoplog::jail
