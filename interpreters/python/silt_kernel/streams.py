# SPDX-License-Identifier: Apache-2.0
"""stdout and stderr: every write reaches its pipe at once, whatever earlier cells did to them."""
import ctypes
import fcntl
import io
import os
import sys

from .wire import HIGH_FD

UNBUFFERED = 2  # _IONBF


class Text(io.TextIOWrapper):
    """Write-through, but over a buffer: a signal may cut a write, and the buffer keeps the rest. The file
    below it must be io's own, in which no handler runs between writing and counting what was written."""

    def write(self, text):
        __tracebackhide__ = True  # for IPython, when an interrupt comes here
        fd = self.fileno()
        if not os.get_blocking(fd):  # a child did that to the pipe, which it shares with us
            os.set_blocking(fd, True)
        count = super().write(text)
        self.flush()
        return count

    def close(self):
        """Cells that close sys.stdout would silence all later ones."""
        self.flush()


def open_text(fd, name):
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = name
    return Text(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", newline="\n")


class Streams:
    def __init__(self):
        self.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)
        self.texts = {1: open_text(1, "<stdout>"), 2: open_text(2, "<stderr>")}
        self.saved = {}
        self.marks = {}
        self.c_streams = unbuffer_c()

    def install(self):
        sys.stdin = sys.__stdin__ = self.stdin
        sys.stdout = sys.__stdout__ = self.texts[1]
        sys.stderr = sys.__stderr__ = self.texts[2]

    def save(self):
        """In the process that serves: copies of 1 and 2 that a cell will hardly find."""
        for fd in (1, 2):
            try:
                self.saved[fd] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
            except OSError:
                self.saved[fd] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            self.marks[fd] = identity(fd)
        os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        for fd in self.saved.values():
            try:
                os.close(fd)
            except OSError:
                pass
        self.saved = {}

    def repair(self):
        """Before and after each run: 1 and 2 are the pipes, and sys.stdout can be written to."""
        for fd, copy in self.saved.items():
            if identity(fd) != self.marks[fd]:
                os.dup2(copy, fd)
        if not usable(getattr(sys, "stdout", None)):
            sys.stdout = sys.__stdout__ = self._reopened(1, "<stdout>")
        if not usable(getattr(sys, "stderr", None)):
            sys.stderr = sys.__stderr__ = self._reopened(2, "<stderr>")

    def _reopened(self, fd, name):
        if not usable(self.texts[fd]):  # detached
            self.texts[fd] = open_text(fd, name)
        return self.texts[fd]

    def flush(self):
        for name in ("stdout", "stderr"):
            try:
                getattr(sys, name).flush()
            except Exception:  # the user's own object, a closed one, or none
                pass
        for stream in self.c_streams:
            self.libc.fflush(stream)

    @property
    def libc(self):
        return LIBC


LIBC = ctypes.CDLL(None)


def unbuffer_c():
    """C's printf beside Python's print: in order only if neither keeps anything back."""
    try:
        streams = [ctypes.c_void_p.in_dll(LIBC, name) for name in ("stdout", "stderr")]
    except ValueError:
        return []
    for stream in streams:
        LIBC.setvbuf(stream, None, UNBUFFERED, ctypes.c_size_t(0))
    return streams


def identity(fd):
    try:
        s = os.fstat(fd)
    except OSError:
        return None
    return s.st_dev, s.st_ino


def usable(stream):
    try:
        return not stream.closed and stream.writable()
    except AttributeError:
        return hasattr(stream, "write")  # an object of the user's that is not quite a file
    except ValueError:
        return False
