# SPDX-License-Identifier: Apache-2.0
# Sends every deadly signal to pid 1 and then to everyone. Refuses to act
# outside of a jail, where that would end the machine's processes.
import os
import signal
import sys

if os.environ.get("STOPLOG") != "1" or os.getpid() > 100:
    sys.exit("not in a jail")
for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
    try:
        os.kill(1, number)
    except OSError:
        pass
print("RAN", flush=True)
for target in (os.getppid(), -1):
    try:
        os.kill(target, signal.SIGKILL)
    except OSError:
        pass
