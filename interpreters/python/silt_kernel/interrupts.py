# SPDX-License-Identifier: Apache-2.0
"""SIGINT: KeyboardInterrupt in the cell that runs, nothing while the context is idle.

A signal may come just before its run begins, and is lost then: who wants to stop a run repeats it until
the run is done. The other way round, an interrupt that comes too late never hits the next run.

What must not stop half-way (a line to siltd) is done inside `with interrupts.held():`; an
interrupt that comes meanwhile is raised at its end.
"""
import os
import threading
from _signal import SIGINT, signal  # without the enums of the module above it

HERE = os.path.dirname(__file__) + os.sep


class Again(BaseException):
    """Instead of KeyboardInterrupt while a traceback is made: IPython would catch that one, and print it."""


Again.__name__ = Again.__qualname__ = "KeyboardInterrupt"


class Interrupts:
    kind = KeyboardInterrupt

    def __init__(self):
        self.running = False
        self.pending = False
        self.came = False  # at least one, in this run
        self.depth = 0
        self.main = threading.get_ident()

    def install(self):
        """Again before and after each run: the cell may have set a handler of its own."""
        signal(SIGINT, self._on_sigint)

    def _on_sigint(self, *_):
        __tracebackhide__ = True  # for IPython: the frame tells the user nothing
        if not self.running:
            return
        self.came = True
        if self.depth:
            self.pending = True
        else:
            raise self.kind

    def leave_traceback(self, exc):
        """It is raised where the cell was, and not in here. (IPython hides no last frame.)"""
        theirs, tb = None, exc.__traceback__
        while tb is not None:
            if not tb.tb_frame.f_code.co_filename.startswith(HERE):
                theirs = tb
            tb = tb.tb_next
        if theirs is not None:
            theirs.tb_next = None

    def begin(self):
        self.kind = KeyboardInterrupt
        self.pending = self.came = False
        self.running = True

    def end(self):
        self.running = False

    def held(self):
        return self

    # Signals are handled by the main thread only: the other threads have nothing to hold.
    def __enter__(self):
        if threading.get_ident() == self.main:
            self.depth += 1

    def __exit__(self, *_):
        __tracebackhide__ = True
        if threading.get_ident() != self.main:
            return
        self.depth -= 1
        if self.pending and self.running and not self.depth:
            self.pending = False
            raise self.kind
