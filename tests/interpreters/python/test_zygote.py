# SPDX-License-Identifier: Apache-2.0
"""A zygote's children: fast, equal to a cold kernel, different from each other, and honest about stale packages."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from harness import DEADLINE_S, ENVIRONMENT, KERNEL, Context

# Forks a child for every pair of pipes that it is sent, as often as it is asked to.
SERVER = """
import os, socket, sys
sys.path.insert(0, os.path.dirname(sys.argv[2]))
import silt_kernel
silt_kernel.prepare(warm=True)
asked = socket.socket(fileno=int(sys.argv[1]))
asked.send(str(len(os.listdir('/proc/self/task'))).encode())
while True:
    data, fds, _, _ = socket.recv_fds(asked, 16, 2)
    if not data:
        os._exit(0)
    if os.fork() == 0:
        high = [os.dup2(fd, 64 + i) for i, fd in enumerate(fds)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)
        os.closerange(5, 80)
        silt_kernel.serve()
    for fd in fds:
        os.close(fd)
"""


class Child:
    """A context without its pipes: their bytes do not matter here."""

    def __init__(self, zygote, **init):
        requests, lines = os.pipe(), os.pipe()
        socket.send_fds(zygote, [b"fork"], [requests[0], lines[1]])
        os.close(requests[0])
        os.close(lines[1])
        self.requests, self.file = open(requests[1], "wb"), open(lines[0], "rb")
        self.send({"t": "init", "cwd": "/tmp", "env": ENVIRONMENT, "language": "python", **init})
        self.answer = self.receive()

    def send(self, message):
        self.requests.write(json.dumps(message).encode() + b"\n")
        self.requests.flush()

    def receive(self):
        return json.loads(self.file.readline() or b'{"t": "eof"}')

    def run(self, code):
        self.send({"t": "run", "id": 1, "code": code})
        seen = []
        while not seen or seen[-1]["t"] not in ("done", "eof"):
            seen.append(self.receive())
        return seen

    def text(self, code):
        return next((m["text"] for m in self.run(code) if m["t"] == "result"), None)

    def close(self):
        self.file.close()
        self.requests.close()


class Zygote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        cls.zygote.settimeout(DEADLINE_S)
        with open(os.devnull, "r+b") as nowhere:
            cls.process = subprocess.Popen([sys.executable, "-I", "-c", SERVER, str(theirs.fileno()), KERNEL], env=ENVIRONMENT,
                                           pass_fds=[theirs.fileno()], stdin=nowhere, stdout=nowhere)
        theirs.close()
        cls.threads = int(cls.zygote.recv(16))

    @classmethod
    def tearDownClass(cls):
        cls.zygote.close()
        cls.process.wait(DEADLINE_S)

    def child(self, **init):
        made = Child(self.zygote, **init)
        self.addCleanup(made.close)
        return made

    def test_it_has_one_thread(self):
        self.assertEqual(self.threads, 1)

    def test_children_carry_the_packages(self):
        child = self.child()
        self.assertEqual(child.answer["t"], "ready")
        self.assertEqual(child.text("import sys; [m in sys.modules for m in ('numpy', 'pandas', 'matplotlib.pyplot')]"), "[True, True, True]")

    def test_children_start_empty_and_at_one(self):
        child = self.child()
        self.assertEqual(child.run("dir()")[-1]["count"], 1)
        names = set(eval(child.text("[n for n in globals() if not n.startswith('_')]")))
        self.assertEqual(names, {"In", "Out", "exit", "quit", "get_ipython"})
        self.assertEqual(self.child().text("_, __, ___"), "('', '', '')")
        self.assertEqual(self.child().text("In, Out, '_1' in globals()"), "(['', \"In, Out, '_1' in globals()\"], {}, False)")

    def test_children_draw_different_random_numbers(self):
        for code in ("import numpy as np; np.random.rand()", "import random; random.random()", "import tempfile; tempfile.mktemp()",
                     "import uuid; uuid.uuid4()", "import numpy as np; np.random.default_rng().random()"):
            self.assertNotEqual(self.child().text(code), self.child().text(code), code)

    def test_a_child_that_is_awaited_runs_nothing_before(self):
        since = time.time()
        child = self.child(awaited=True)
        own = f"import linecache; sum(entry[1] > {since} for entry in linecache.cache.values() if len(entry) == 4 and entry[2] == ['1 + 1\\n'])"
        self.assertEqual(child.text(own), "0")

    def test_children_have_the_environment_of_init_only(self):
        child = self.child(env={"A": "1", "PATH": "/usr/bin:/bin"}, cwd="/usr")
        self.assertEqual(child.text("import os; sorted(os.environ), os.getcwd()"), "(['A', 'MPLBACKEND', 'PATH', 'PWD'], '/usr')")

    def test_children_show_errors_tables_and_figures(self):
        child = self.child()
        self.assertEqual(child.run("1/0")[0]["ename"], "ZeroDivisionError")
        self.assertIn("data", child.run("import pandas as pd; pd.DataFrame({'a': [1]})")[0])
        self.assertIn("chart", child.run("import matplotlib.pyplot as plt; plt.plot([1, 2]);")[0])

    def test_blas_threads_come_after_the_first_cell_with_numpy(self):
        child = self.child()
        count = "import os; len(os.listdir('/proc/self/task'))"
        self.assertEqual(child.text(count), "1")
        child.run("import numpy as np; a = np.ones((300, 300)); b = a @ a")
        self.assertEqual(child.text(count), str(len(os.sched_getaffinity(0))))

    def test_a_limit_of_threads_is_kept(self):
        child = self.child(env={**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"})
        child.run("import numpy as np; a = np.ones((300, 300)); b = a @ a")
        self.assertEqual(child.text("import os; len(os.listdir('/proc/self/task'))"), "1")

    def test_children_keep_no_foreign_descriptor(self):
        listed = self.child().text("import os; sorted(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists(f'/proc/self/fd/{n}'))")
        self.assertEqual((listed.count("pipe:"), listed.count("socket:")), (2, 0), listed)

    def make_directory(self, files):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for name, text in files.items():
            os.makedirs(os.path.dirname(f"{directory}/{name}"), exist_ok=True)
            with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        return directory

    def assert_stale(self, word, **init):
        child = self.child(**init)
        self.assertEqual(child.answer["t"], "stale", child.answer)
        self.assertIn(word, child.answer["why"])
        self.assertEqual(child.receive()["t"], "eof")

    def test_another_pandas_in_the_working_directory_is_stale(self):
        self.assert_stale("pandas", cwd=self.make_directory({"pandas.py": "x = 1"}))

    def test_another_numpy_in_the_module_path_is_stale(self):
        directory = self.make_directory({"numpy/__init__.py": "x = 1"})
        self.assert_stale("numpy", env={**ENVIRONMENT, "PYTHONPATH": directory})

    def test_another_pandas_of_the_user_is_stale(self):
        version = "python%d.%d" % sys.version_info[:2]
        home = self.make_directory({f".local/lib/{version}/site-packages/pandas/__init__.py": "x = 1"})
        self.assert_stale("pandas", env={**ENVIRONMENT, "HOME": home})

    def test_another_pandas_in_a_large_directory_is_stale(self):
        many = {f"file-{number}": "" for number in range(1200)}
        self.assert_stale("pandas", cwd=self.make_directory({**many, "pandas/__init__.py": "x = 1"}))
        self.assertEqual(self.child(cwd=self.make_directory(many)).answer["t"], "ready")

    def put(self, path, text):
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_new_pth_file_is_stale(self):
        import site

        path = f"{site.getsitepackages()[0]}/silt_test.pth"
        self.put(path, "/tmp\n")
        self.assert_stale(".pth")
        os.remove(path)
        self.assertEqual(self.child().answer["t"], "ready")

    def test_a_new_package_beside_the_others_is_not_stale(self):
        import site

        self.put(f"{site.getsitepackages()[0]}/silt_beside.py", "word = 6")
        self.assertEqual(self.child().text("import silt_beside; silt_beside.word"), "6")

    def test_another_python_that_comes_first_is_stale(self):
        self.put(f"{ENVIRONMENT['PATH'].split(os.pathsep)[0]}/python3", "#!/bin/sh")
        self.assert_stale("python3")

    def test_a_directory_of_that_name_without_a_package_is_not_stale(self):
        self.assertEqual(self.child(cwd=self.make_directory({"pandas/data.csv": "a"})).answer["t"], "ready")

    def test_packages_of_the_user_are_found(self):
        version = "python%d.%d" % sys.version_info[:2]
        home = self.make_directory({f".local/lib/{version}/site-packages/silt_mine.py": "word = 5"})
        self.assertEqual(self.child(env={**ENVIRONMENT, "HOME": home}).text("import silt_mine; silt_mine.word"), "5")

    def test_a_package_that_was_changed_is_stale(self):
        import pandas

        before = os.stat(pandas.__file__)
        os.utime(pandas.__file__, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
        try:
            self.assert_stale("pandas")
        finally:
            os.utime(pandas.__file__, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(self.child().answer["t"], "ready")

    def test_a_missing_directory_is_refused(self):
        self.assertEqual(self.child(cwd="/nowhere").answer["code"], "cwd")


# Imports of these packages fail as if they were not installed.
HIDE = """
import sys
class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split('.')[0] in {names!r}: raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)
sys.meta_path.insert(0, Hidden)
sys.path.insert(0, {directory!r})
import os
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[3]), 4)
os.closerange(5, 128)
"""


class Lacking(unittest.TestCase):
    """Images without the packages: the kernel works, and says what it cannot do without."""

    def without(self, names, start):
        program = HIDE.format(names=names, directory=os.path.dirname(KERNEL)) + start
        context = Context(cold_program=program)
        self.addCleanup(context.close)
        return context, context.until(lambda name, _: name in ("ready", "failed")).transcript[-1][1]

    def test_without_numpy_pandas_and_matplotlib(self):
        for warm in (False, True):
            start = f"import silt_kernel\nsilt_kernel.prepare(warm={warm})\nsilt_kernel.serve()"
            context, _ = self.without(["numpy", "pandas", "matplotlib", "PIL"], start)
            self.assertEqual(context.run("{'a': 1}").main["json"], {"a": 1})
            self.assertEqual(context.run("import pandas").error["ename"], "ModuleNotFoundError")
            self.assertEqual(context.run("%matplotlib inline\n2").text, "2")

    def test_without_ipython_it_says_so(self):
        _, failed = self.without(["IPython"], "from silt_kernel.__main__ import main\nmain()")
        self.assertEqual((failed["t"], failed["code"]), ("failed", "ipython"))
        self.assertIn("IPython", failed["why"])


if __name__ == "__main__":
    unittest.main()
