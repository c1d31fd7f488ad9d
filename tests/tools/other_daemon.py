# SPDX-License-Identifier: Apache-2.0
# A daemon of another version of stoplog, as far as others can tell: it holds
# the draft's lock, listens at its socket, refuses every hello (or request) for
# its protocol, and leaves when it is told to.
#
#   python3 other_daemon.py DRAFT_DIR RUN_DIR idle|busy
#
# Busy, it leaves only by force. Prints "ready" once it listens and "left" when
# it was told to go.
import fcntl
import os
import socket
import struct
import sys

HEAD = struct.Struct("<IHHIIB")
MAGIC, OTHER = 0x474F4C53, 999
HELLO, SHUTDOWN, ERROR, REPLY = 1, 2, 3, 4
ERRNO_CODE, UNSUPPORTED, EBUSY = 0, 5, 16


def packet(op, serial, payload):
    return HEAD.pack(MAGIC, OTHER, op, serial, len(payload), 0) + payload


def error(serial, code, err, text):
    words = struct.pack("<iiI", code, err, len(text)) + text
    return packet(ERROR, serial, words + struct.pack("<I", 0))


def answer(data, busy):
    """What is sent back, and whether to leave."""
    _, _, op, serial, _, _ = HEAD.unpack(data[: HEAD.size])
    if op != SHUTDOWN:
        return error(serial, UNSUPPORTED, 0, b"of another protocol"), False
    if busy and data[HEAD.size] == 0:
        return error(serial, ERRNO_CODE, EBUSY, b"at work"), False
    return packet(REPLY, serial, b""), True


def serve(client, busy):
    """Until the client has gone; whether it told us to leave."""
    try:
        data = client.recv(65536)
        while data:
            reply, leave = answer(data, busy)
            client.send(reply)
            if leave:
                return True
            data = client.recv(65536)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it sent more than it waited for
    return False


def main():
    draft, run, how = sys.argv[1:]
    lock = os.open(draft + "/lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path = run + "/control"
    os.makedirs(run, 0o700, exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        with client:
            if serve(client, how == "busy"):
                print("left", flush=True)
                os.unlink(path)
                return


main()
