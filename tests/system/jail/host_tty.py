# SPDX-License-Identifier: Apache-2.0
# host_tty.py CMD... : runs CMD with a controlling terminal, but with its three
# streams elsewhere, and prints what reached the terminal.
import os
import pty
import sys

streams = [os.dup(fd) for fd in (0, 1, 2)]
pid, terminal = pty.fork()
if pid == 0:
    # As a shell would have it open: the last close takes it from the session.
    os.dup2(0, 9)
    os.set_inheritable(9, True)
    for fd in range(3):
        os.dup2(streams[fd], fd)
        os.close(streams[fd])
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
os.waitpid(pid, 0)
