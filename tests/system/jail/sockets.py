# SPDX-License-Identifier: Apache-2.0
# sockets.py families | connect PATH... : what can be opened or reached.
import errno
import glob
import socket
import sys

if sys.argv[1] == "families":
    for family, kind in (
        (17, 3), (38, 5), (40, 1), (44, 3), (31, 3), (29, 3), (21, 5), (30, 5),
        (43, 1), (15, 3), (9, 5),
    ):
        try:
            socket.socket(family, kind)
            print("OPEN", family)
        except OSError:
            pass
    for protocol in range(1, 23):
        try:
            socket.socket(16, 3, protocol)
            print("OPEN netlink", protocol)
        except OSError:
            pass
    socket.socket(16, 3, 0)
    # A kind alone names a protocol, or the family PACKET.
    for family in (2, 10):
        for kind in (4, 5, 6, 10):
            try:
                socket.socket(family, kind, 0)
                print("OPEN inet", family, kind)
            except OSError as error:
                if error.errno != errno.EPROTONOSUPPORT:
                    print("OPEN inet", family, kind, error)
    # What a stream of TCP can be turned into.
    try:
        socket.socket().setsockopt(6, 31, b"tls")
        print("OPEN tls")
    except PermissionError:
        pass
    # Families by another door: SMC, SCTP, DCCP, L2TP and UDP-Lite beneath INET.
    for family in (2, 10):
        for kind in (1, 2, 3, 5, 6):
            for protocol in (33, 115, 132, 136, 256):
                try:
                    socket.socket(family, kind, protocol)
                    print("OPEN inet", family, kind, protocol)
                except OSError as error:
                    if error.errno != errno.EPROTONOSUPPORT:
                        print("OPEN inet", protocol, error)
else:
    paths = [path.replace("@", "\0") for path in sys.argv[2:]]
    paths += ["/var/run/docker.sock", "/run/containerd/containerd.sock",
              "/run/systemd/private", "/run/dbus/system_bus_socket"]
    for pattern in ("/tmp/ssh-*/*", "/run/user/*/bus", "/tmp/.X11-unix/*"):
        paths += glob.glob(pattern)
    for path in paths:
        try:
            socket.socket(1).connect(path)
            print("CONNECTED", repr(path))
        except OSError:
            pass
