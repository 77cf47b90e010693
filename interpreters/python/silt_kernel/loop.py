# SPDX-License-Identifier: Apache-2.0
"""The event loop of a context: made by the first cell that awaits, running between cells while it has tasks."""
import sys


class Loop:
    def __init__(self, control):
        self.control = control
        self.made = None

    def get(self):
        import asyncio

        if self.made is None or self.made.is_closed():
            self.made = asyncio.new_event_loop()
        asyncio.set_event_loop(self.made)
        return self.made

    def run(self, coroutine):
        """Top-level await. An interrupt cancels the cell's task instead of leaving it behind."""
        __tracebackhide__ = True  # for IPython: the frame tells the user nothing
        loop = self.get()
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            self._cancel(loop, task)
            raise

    def _cancel(self, loop, task):
        if task.done():
            return
        task.cancel()
        try:
            loop.run_until_complete(task)
        except BaseException:
            pass  # the interrupt is what is reported

    def has_tasks(self):
        asyncio = sys.modules.get("asyncio")
        return asyncio is not None and self.made is not None and not self.made.is_closed() \
            and bool(asyncio.all_tasks(self.made))

    def receive(self):
        """The next message; the user's tasks run until it comes."""
        if not self.has_tasks():
            return self.control.receive()
        while not self.control.has_line():
            if not self._run_until_readable():
                return None
        return self.control.receive()

    def _run_until_readable(self):
        loop = self.get()
        readable = loop.create_future()
        fd = self.control.fd

        def on_readable():
            loop.remove_reader(fd)
            readable.set_result(self.control.fill_now())

        loop.add_reader(fd, on_readable)
        return loop.run_until_complete(readable)
