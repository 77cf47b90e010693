# SPDX-License-Identifier: Apache-2.0
"""The control socket: one JSON object (UTF-8, no raw newline) per line in both directions.

Only the process that opened it speaks: a child that user code forked loses the descriptor at once.
"""
import fcntl
import json
import os
import select
import threading
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_STREAM, socket  # without the enums of the module above it

from .interrupts import Interrupts
from .plain import plain

READ_SIZE = 1 << 16
# Out of the way of programs that close "all" descriptors, or expect the next file to be 3.
HIGH_FD = 200
# As they are now: user code may put others into the module, with other ways to be called.
to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
from_json = json.loads


def encode(value):
    """One line without its end. Whatever the value holds, the bytes are JSON and UTF-8."""
    try:
        text = to_json(value)
    except (TypeError, ValueError, RecursionError):
        text = to_json(plain(value))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Read again: two names that differed in surrogates only are one now.
        return to_json(from_json(without_surrogates(text))).encode("utf-8")


def without_surrogates(text):
    """Pairs become the character they mean, single ones U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def move_high(fd):
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:  # the limit of descriptors is lower
        os.set_inheritable(fd, False)
        return fd
    os.close(fd)
    return high


class Control:
    def __init__(self, fd):
        self.fd = move_high(fd)
        self.socket = socket(AF_UNIX, SOCK_STREAM, 0, self.fd)
        self.socket.setblocking(True)
        self.owner = os.getpid()
        self.interrupts = Interrupts()
        self.lock = threading.Lock()
        self.buffer = bytearray()
        self.searched = 0  # no newline before this offset
        os.register_at_fork(after_in_child=self.disown)

    def disown(self):
        """In a child that user code forked."""
        self.lock = threading.Lock()
        self.owner = None
        try:
            self.socket.close()
        except OSError:
            pass

    @property
    def ours(self):
        return self.owner == os.getpid()

    def send(self, message):
        self.send_line(encode(message))

    def send_line(self, line):
        with self.interrupts.held(), self.lock:
            if not self.ours:
                return
            try:
                self.socket.sendall(line + b"\n")
            except OSError:
                os._exit(1)  # nobody listens any more: silt-init is gone, or the cell closed our descriptor

    def receive(self):
        """The next message, or None at the end."""
        while True:
            line = self._take_line()
            if line is not None:
                message = decode(line)
                if message is not None:
                    return message
            elif not self._fill():
                return None

    def fill_now(self):
        """For an event loop that saw the descriptor readable. False at the end."""
        return self._fill(0)

    def has_line(self):
        return b"\n" in self.buffer

    def _take_line(self):
        end = self.buffer.find(b"\n", self.searched)
        if end < 0:
            self.searched = len(self.buffer)
            return None
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        self.searched = 0
        return line

    def _fill(self, timeout=None):
        """Waits (interruptible), then reads (not: bytes that were read must reach the buffer)."""
        if not self.ours:
            return False
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        poll.poll(timeout)
        with self.interrupts.held():
            try:
                data = self.socket.recv(READ_SIZE, MSG_DONTWAIT)
            except BlockingIOError:
                return True
            except OSError:
                return False
            self.buffer += data
            return bool(data)


def decode(line):
    try:
        message = from_json(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
