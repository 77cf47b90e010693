# SPDX-License-Identifier: Apache-2.0
"""SIGINT: KeyboardInterrupt in the cell that runs, nothing while the context is idle.

What must not stop half-way (a line on the control socket) is done inside `with interrupts.held():`; an
interrupt that comes meanwhile is raised at its end.
"""
import select
import signal
import threading


class Interrupts:
    def __init__(self, control_fd):
        self.control_fd = control_fd
        self.running = False
        self.pending = False
        self.depth = 0
        self.main = threading.get_ident()

    def install(self):
        """Again before and after each run: the cell may have set a handler of its own."""
        signal.signal(signal.SIGINT, self._on_sigint)

    def _on_sigint(self, *_):
        if not self.running:
            self.pending = self._request_waits()
        elif self.depth:
            self.pending = True
        else:
            raise KeyboardInterrupt

    def _request_waits(self):
        """A run that was sent, but not read yet, is what the sender wants to interrupt."""
        try:
            return bool(select.select([self.control_fd], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def begin(self):
        self.running = True
        self._raise_pending()

    def end(self):
        self.running = False
        self.pending = False

    def _raise_pending(self):
        if self.pending and self.running:
            self.pending = False
            raise KeyboardInterrupt

    def held(self):
        return self

    # Signals are handled by the main thread only: the other threads have nothing to hold.
    def __enter__(self):
        if threading.get_ident() == self.main:
            self.depth += 1

    def __exit__(self, *_):
        if threading.get_ident() == self.main:
            self.depth -= 1
            if not self.depth:
                self._raise_pending()
