# SPDX-License-Identifier: Apache-2.0
"""The talk with siltd: one JSON object (UTF-8, no raw newline) per line, requests by one pipe and lines by another.

Only the process that opened them speaks: a child that user code forked loses the descriptors at once.
"""
import fcntl
import json
import os
import select
import threading

from .interrupts import Interrupts
from .plain import plain

REQUESTS_FD = 3
LINES_FD = 4
READ_SIZE = 1 << 16
# Out of the way of programs that close "all" descriptors, or expect the next file to be 3.
HIGH_FD = 200
# As they are now: user code may put others into the module, with other ways to be called.
read, write, close = os.read, os.write, os.close
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
    def __init__(self):
        self.fd = move_high(REQUESTS_FD)
        self.lines = move_high(LINES_FD)
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
        for fd in self.fd, self.lines:
            try:
                close(fd)
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
                self._write(memoryview(line + b"\n"))
            except OSError:
                os._exit(1)  # nobody listens any more: siltd is gone, or the cell closed our descriptor

    def _write(self, rest):
        """All of it, also when the cell made our end non-blocking."""
        while rest:
            try:
                rest = rest[write(self.lines, rest):]
            except BlockingIOError:
                select.select([], [self.lines], [])

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
        if not poll.poll(timeout):
            return True
        with self.interrupts.held():
            try:
                data = read(self.fd, READ_SIZE)
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
