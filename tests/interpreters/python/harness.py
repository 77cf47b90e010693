# SPDX-License-Identifier: Apache-2.0
"""A real kernel, driven as siltd drives it: raw pipes, a deadline on every wait."""
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import unittest

KERNEL = os.environ.get("SILT_KERNEL") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "../../../interpreters/python/kernel"))
DEADLINE_S = 60
PIPE_BYTES = 1 << 20  # the most that a pipe can be made to hold
READ_BYTES = 1 << 16
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.environ.get("HOME", "/root"), "LANG": "C.UTF-8"}

# Puts requests and lines where a kernel expects them, then becomes the kernel.
COLD = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[3]), 4); os.closerange(5, 128); os.execv(sys.executable, [sys.executable, '-I', sys.argv[2]])"

# What a zygote does, without namespaces: prepare once, fork, serve in the child.
WARM = """
import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[2]))
import silt_kernel
silt_kernel.prepare(warm=True)
if len(os.listdir('/proc/self/task')) != 1:
    sys.exit('a zygote must have one thread')
child = os.fork()
if child == 0:
    os.dup2(int(sys.argv[1]), 3)
    os.dup2(int(sys.argv[3]), 4)
    os.closerange(5, 128)
    silt_kernel.serve()
os.close(int(sys.argv[1]))
os.close(int(sys.argv[3]))
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xff)
"""


class Run:
    """What one run gave. transcript: everything in order of arrival, output and messages alike."""

    def __init__(self):
        self.transcript = []
        self.results = []
        self.error = None
        self.done = None
        self.exit = None

    def add(self, name, value):
        self.transcript.append((name, value))
        if name == "result":
            self.results.append(value)
        elif name in ("error", "done", "exit"):
            setattr(self, name, value)

    def _output(self, name):
        return b"".join(value for kind, value in self.transcript if kind == name).decode()

    @property
    def stdout(self):
        return self._output("stdout")

    @property
    def stderr(self):
        return self._output("stderr")

    @property
    def kinds(self):
        """The names of what came, output that came in pieces once."""
        names = [name for name, _ in self.transcript]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    @property
    def main(self):
        """The result of the last expression."""
        found = [result for result in self.results if result["main"]]
        return found[-1] if found else None

    @property
    def text(self):
        return self.main["text"] if self.main else None


def high_pipe():
    """Out of the way of the numbers that a kernel's descriptors get."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 64) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Context:
    def __init__(self, warm=False, init=None, cold_program=COLD, python=None):
        requests, lines, out, err = (high_pipe() for _ in range(4))
        program = WARM if warm else cold_program
        self.process = subprocess.Popen(
            [python or sys.executable, "-I", "-c", program, str(requests[0]), KERNEL, str(lines[1])], pass_fds=[requests[0], lines[1]],
            stdin=subprocess.DEVNULL, stdout=out[1], stderr=err[1], env=ENVIRONMENT, start_new_session=True)
        for theirs in requests[0], lines[1], out[1], err[1]:
            os.close(theirs)
        self.requests = open(requests[1], "wb", buffering=0)
        self.lines = lines[0]
        self.pipes = {"stdout": out[0], "stderr": err[0]}
        self.buffer = b""
        self.next_id = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.lines, selectors.EVENT_READ, "lines")
        for name, fd in self.pipes.items():
            os.set_blocking(fd, False)
            self.selector.register(fd, selectors.EVENT_READ, name)
        self.send({"t": "init", "cwd": "/tmp", "env": ENVIRONMENT, "language": "python", **(init or {})})

    def close(self):
        self.selector.close()
        self.requests.close()
        for fd in self.lines, *self.pipes.values():
            os.close(fd)
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def send(self, message):
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            rest = rest[self.requests.write(rest):]

    def start(self, code):
        self.next_id += 1
        self.send({"t": "run", "id": self.next_id, "code": code})

    def run(self, code):
        self.start(code)
        return self.finish()

    def finish(self):
        """Everything up to the end of the run."""
        return self.until(lambda name, _: name in ("done", "exit"))

    def until(self, wanted, run=None):
        """Reads until wanted(name, value) is true."""
        run = run or Run()
        deadline = time.monotonic() + DEADLINE_S
        while True:
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not come before the deadline: {run.transcript[-3:]}")
            for name, value in self.read(deadline):
                run.add(name, value)
                if wanted(name, value):
                    return run
                if name == "eof":
                    raise AssertionError(f"the kernel is gone: {run.transcript}")

    def read_for(self, seconds):
        """What comes within this time, if anything does."""
        if b"\n" in self.buffer or self.selector.select(seconds):
            yield from self.read(time.monotonic() + seconds)

    def read(self, deadline):
        """One message, and the output that came before it."""
        if b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            ready = {key.data for key, _ in self.selector.select(max(0, left))}
            if not ready:
                raise AssertionError("nothing came before the deadline")
            if "lines" in ready:
                self._read_lines()
        for name in self.pipes:
            yield from self._read_pipe(name)
        if b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            message = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
            yield message["t"], message

    def _read_lines(self):
        data = os.read(self.lines, 1 << 20)
        if not data:
            self.selector.unregister(self.lines)
            self.buffer += b'{"t":"eof"}\n'
        self.buffer += data

    def _read_pipe(self, name):
        """What is in it: who writes without end is not followed without end."""
        for _ in range(PIPE_BYTES // READ_BYTES):
            try:
                data = os.read(self.pipes[name], READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                if self.pipes[name] in self.selector.get_map():
                    self.selector.unregister(self.pipes[name])
                return
            yield name, data

    def kernel_pid(self):
        return int(self.run("import os; os.getpid()").text)

    def interrupt(self):
        """To the group, as silt-init does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def interrupt_until_done(self, run, again_s=1):
        """A signal just before a call that waits is noticed when that call returns: so it is repeated."""
        deadline = time.monotonic() + DEADLINE_S
        while run.done is None and run.exit is None:
            self.interrupt()
            again = time.monotonic() + again_s
            while time.monotonic() < again and run.done is None and run.exit is None:
                for name, value in self.read_for(again_s / 10):
                    run.add(name, value)
            if time.monotonic() > deadline:
                raise AssertionError(f"the run does not end: {run.transcript[-3:]}")
        return run


def refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")


class ContextCase(unittest.TestCase):
    """One context for all tests of a class, as users have it: state stays."""

    warm = False
    init = None

    @classmethod
    def setUpClass(cls):
        cls.context = Context(warm=cls.warm, init=cls.init)
        cls.context.until(lambda name, _: name == "ready")

    @classmethod
    def tearDownClass(cls):
        cls.context.close()

    def run_cell(self, code):
        return self.context.run(code)

    def good(self, code):
        """A cell that must not fail."""
        run = self.context.run(code)
        self.assertIsNone(run.error, run.error)
        return run
