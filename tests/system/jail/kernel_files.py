# SPDX-License-Identifier: Apache-2.0
# Opens for writing, without truncating, what would steer the host's kernel,
# and reads what would tell about it.
import os

for path in (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register",
    "/sys/kernel/uevent_helper",
    "/proc/irq/0/smp_affinity",
    "/sys/fs/cgroup/memory/release_agent",
):
    try:
        os.open(path, os.O_WRONLY)
        print("OPEN", path)
    except OSError:
        pass
for path in (
    "/proc/keys",
    "/proc/kallsyms",
    "/proc/modules",
    "/proc/cmdline",
    "/proc/timer_list",
):
    try:
        if open(path).read():
            print("TELLS", path)
    except OSError:
        pass
