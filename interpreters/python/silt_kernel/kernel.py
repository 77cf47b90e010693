# SPDX-License-Identifier: Apache-2.0
"""The context itself: takes init, runs cells one after another, tells what became of each."""
import atexit
import collections
import faulthandler
import gc
import os
import platform
import select
import sys
import threading
import time
from _signal import SIG_IGN, SIGPIPE, signal

from . import blas, bundle, failure, figures, stamps, surroundings, user, zygote
from .loop import Loop
from .questions import Questions
from .surroundings import Refused
from .wire import Control

RESULTS_MAX = 1000
RESULT_BUDGET = 8 << 20
VERSION = platform.python_version()


class Kernel:
    def __init__(self, prepared, control):
        self.shell = prepared.shell
        self.streams = prepared.streams
        self.warm = prepared.warm
        self.control = control
        self.interrupts = control.interrupts
        self.later = collections.deque()  # messages that came while a question waited
        self.run_id = None  # of the cell that runs
        self.results = 0
        self.count = 0
        self.used = 0  # when the last run ended, in milliseconds
        self.error = None  # the message about the exception that ended the cell
        self.status = 1  # of SystemExit
        self.budget = RESULT_BUDGET
        self.blas_done = not prepared.warm
        self.loop = Loop(control)
        self.installed = False
        self.awaited = False  # by code that comes at once

    # ---- before the first cell ----

    def start(self, init):
        if init.get("t") != "init":
            raise Refused("init", "the first message must be init")
        budget = init.get("budget")
        size = budget.get("result") if isinstance(budget, dict) else None
        if isinstance(size, int) and size > 0:
            self.budget = size
        self.awaited = init.get("awaited") is True
        if self.warm and init.get("user"):
            self.refuse_stale(user.become(init["user"], zygote.is_inside()))
        surroundings.enter(init)
        if self.warm:
            self.refuse_stale(stamps.stale())
            zygote.renew()
        self._install()
        self.control.send({"t": "ready", "version": VERSION})

    def refuse_stale(self, why):
        """A process that was started would be another: then one is."""
        if why:
            self.control.send({"t": "stale", "why": why})
            os._exit(0)

    def await_context(self):
        """Forked before anybody asked for it: what a first cell would copy is copied while it waits."""
        if self.warm and not self.is_awaited():
            self._install()
            self.touch()

    def is_awaited(self):
        return self.control.has_line() or bool(select.select([self.control.fd], [], [], 0)[0])

    def _install(self):
        if self.installed:
            return
        self.installed = True
        self.streams.install()
        self.streams.save()
        self.shell.sink = self.publish
        self.shell.interrupts = self.interrupts
        self.shell.loop_runner = self.loop.run
        Questions(self).install()
        if not faulthandler.is_enabled():
            faulthandler.enable(2)  # where it crashed, on stderr; the signal still ends the process

    def touch(self):
        """A cell for nobody, while nobody waits: the pages that a first cell copies are copied now."""
        if not self.warm or self.awaited or self.is_awaited():
            return
        shell, hook = self.shell, self.shell.displayhook
        known = dict(shell.user_ns)
        shell.sink = None
        shell.run_cell("1 + 1", store_history=False)
        shell.sink = self.publish
        shell.user_ns["_oh"].clear()
        hook._ = hook.__ = hook.___ = ""
        for name in list(shell.user_ns):
            if name not in known:
                del shell.user_ns[name]
        shell.user_ns.update(known)

    # ---- cells ----

    def serve(self):
        while True:
            message = self.later.popleft() if self.later else self.loop.receive()
            if message is None or message.get("t") == "quit":
                leave(0)
            if message.get("t") == "ping":
                self.control.send({"t": "pong", "id": message.get("id"), "count": self.count, "used": self.used})
            if message.get("t") == "run" and isinstance(message.get("code"), str):
                self.run_whole(message)

    def run_whole(self, message):
        """Whatever a cell left behind (sys without stdout, a module of ours changed), the run has an end."""
        count = self.count
        try:
            self.run(message)
        except Exception as e:
            self.interrupts.end()
            self.run_id = None
            self.control.send(failure.message(e, message.get("id"), None, None))
            self.control.send({"t": "done", "id": message.get("id"), "count": count + 1})

    def run(self, message):
        self.run_id, self.results = message.get("id"), 0
        self.count += 1
        self.shell.execution_count = self.count
        self.shell.main_depth = 0
        self.streams.repair()
        surroundings.forget_missing_directories()
        failed = self.execute(message["code"])
        if not self.control.ours:
            os._exit(0)  # a child that the cell forked came back with it
        self.tell(failed)
        run, self.run_id = self.run_id, None
        self.used = time.time_ns() // 1000000
        self.streams.repair()
        self.control.send({"t": "done", "id": run, "count": self.count})
        if not self.blas_done:
            self.blas_done = blas.lift(self.shell.user_ns)

    def execute(self, code):
        """The exception that ended the cell, or None. Interrupts are raised in here only."""
        failed = None
        try:
            self.interrupts.install()
            self.interrupts.begin()
            failed = self.run_cell(code)
            self.prepare_error(failed)
            self.streams.flush()
        except BaseException as e:  # mostly an interrupt that came between the cell and us
            failed = failed or e
        finally:
            self.interrupts.running = False  # no call: one could be interrupted before it begins
            self.interrupts.install()
        return failed

    def run_cell(self, code):
        self.error = None
        outcome = self.shell.run_cell(code, store_history=True)
        failed = outcome.error_before_exec or outcome.error_in_exec
        if isinstance(failed, (KeyboardInterrupt, SystemExit)):
            figures.close_open()  # drawing may be what took so long
        else:
            figures.show_open()
        return failed

    def prepare_error(self, failed):
        """Calls methods of the exception, which may never return: so it happens while interrupts are raised."""
        lines = self.shell.take_traceback(failed)
        if isinstance(failed, SystemExit):
            self.status = exit_status(failed)
        elif self.interrupts.came and failed is not None and not isinstance(failed, KeyboardInterrupt):
            self.error = failure.brief(failed, self.run_id, lines)  # its text may be what had to be stopped
        elif failed is not None:
            self.error = failure.message(failed, self.run_id, lines, self.shell.compile.cell_name)

    def tell(self, failed):
        if isinstance(failed, SystemExit):
            self.end(self.status)
        if failed is not None:
            self.control.send(self.error or failure.brief(failed, self.run_id))
        self.error = None

    def end(self, status):
        self.streams.flush()
        self.control.send({"t": "exit", "id": self.run_id, "status": status})
        leave(status)

    def publish(self, data, main):
        """One object, from display() or the last expression."""
        if self.run_id is None or not self.control.ours:
            return  # a thread that outlived its cell: the answer to the cell is complete
        if self.results >= RESULTS_MAX:
            return self._refuse_result()
        line = bundle.result_line(data, self.run_id, main, self.budget)
        if line is not None:
            self.results += 1
            self.streams.flush()
            self.control.send_line(line)

    def _refuse_result(self):
        if self.results == RESULTS_MAX:
            self.results += 1
            self.control.send({"t": "result", "id": self.run_id, "main": False, "truncated": ["results"],
                               "text": f"[more than {RESULTS_MAX} results: the rest is left out]"})


def exit_status(exc):
    if exc.code is None:
        return 0
    if isinstance(exc.code, int):
        return exc.code & 0xFF
    print(exc.code, file=sys.stderr)
    return 1


def leave(status):
    """As a script ends, but without taking the interpreter apart: with numpy loaded that is slow."""
    for step in (threading._shutdown, atexit._run_exitfuncs, drop_variables):
        try:
            step()
        except BaseException:
            pass
    zygote.ready.streams.flush()
    os._exit(status)


def drop_variables():
    """Files that were not closed are written when nobody holds them any more."""
    os.chdir("/")  # IPython asks for the working directory, which may be gone
    zygote.ready.shell.reset(new_session=False)
    gc.collect()


def serve():
    control = Control()
    control.interrupts.install()
    signal(SIGPIPE, SIG_IGN)
    kernel = Kernel(zygote.ready, control)
    kernel.await_context()
    init = control.receive()
    if init is None:
        os._exit(0)
    try:
        kernel.start(init)
    except Refused as e:
        control.send({"t": "failed", "code": e.code, "why": str(e)})
        os._exit(1)
    kernel.touch()
    kernel.serve()
