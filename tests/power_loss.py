#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a disk has after its power went away.

    power_loss.py count LOG FROM
    power_loss.py make LOG SIZE IMAGE CUT SEED

LOG is one of tests/tools/logdisk.cc. `count` prints how many entries lie before
its byte FROM, and how many in all. `make` writes IMAGE, a disk of SIZE bytes
that lost its power after CUT entries: everything up to the last flush before
that is there, and of the later writes all (SEED 0) or some, each whole or, one
in four, torn at a sector.
"""

import random
import struct
import sys

HEAD = struct.Struct("=QQ")
FLUSH = 2**64 - 1
SECTOR = 512


def entries(path):
    with open(path, "rb") as log:
        at = 0
        while len(head := log.read(HEAD.size)) == HEAD.size:
            offset, length = HEAD.unpack(head)
            yield at, offset, log.read(length)
            at += HEAD.size + length


def count(path, start):
    before = total = 0
    for at, _, _ in entries(path):
        total += 1
        before += at < start
    print(before, total)


def make(path, size, image, cut, seed):
    log = [entry[1:] for _, entry in zip(range(cut), entries(path))]
    sure = max((i for i, e in enumerate(log) if e[0] == FLUSH), default=-1)
    dice = random.Random(seed)
    with open(image, "wb") as disk:
        disk.truncate(size)
        for i, (offset, data) in enumerate(log):
            if offset == FLUSH:
                continue
            if i > sure and seed:
                if dice.random() < 0.5:
                    continue
                if dice.random() < 0.25:
                    data = data[: dice.randrange(len(data) // SECTOR + 1) * SECTOR]
            disk.seek(offset)
            disk.write(data)


def main():
    if sys.argv[1] == "count":
        count(sys.argv[2], int(sys.argv[3]))
    else:
        make(sys.argv[2], *map(lambda a: int(a) if a.isdigit() else a, sys.argv[3:]))


main()
