# SPDX-License-Identifier: Apache-2.0
"""Output: raw, at once, in order, and back to normal whatever a cell did to it."""
import unittest

from harness import ContextCase

LIBC = "import ctypes, os, subprocess, sys\nlibc = ctypes.CDLL(None)\n"


class Streams(ContextCase):
    def test_a_dot_without_a_newline_comes_at_once(self):
        self.context.start("print('.', end='')\ninput()")
        seen = self.context.until(lambda name, _: name == "input")
        self.assertEqual(seen.stdout, ".")
        self.context.send({"t": "input", "id": self.context.next_id, "eof": True})
        self.context.finish()

    def test_output_of_python_c_and_children_is_in_order(self):
        run = self.good(LIBC + "for i in range(3):\n    print('py', i)\n    libc.printf(b'c %d\\n', i)\n    os.system(f'echo sh {i}')\n"
                        "    subprocess.run(['echo', 'sub', str(i)])\n    os.write(1, b'raw\\n')")
        self.assertEqual(run.stdout, "".join(f"py {i}\nc {i}\nsh {i}\nsub {i}\nraw\n" for i in range(3)))

    def test_output_comes_before_the_result_that_follows_it(self):
        run = self.good("print('a')\ndisplay(1)\nprint('b')\n2")
        before = {}
        for i, (name, value) in enumerate(run.transcript):
            if name == "result":
                before[value["text"]] = b"".join(v for k, v in run.transcript[:i] if k == "stdout")
        self.assertTrue(before["1"].startswith(b"a\n"))
        self.assertEqual(before["2"], b"a\nb\n")

    def test_warnings_and_logging_go_to_stderr(self):
        run = self.good("import warnings, logging\nwarnings.warn('careful')\nlogging.warning('logged')")
        self.assertIn("careful", run.stderr)
        self.assertIn("logged", run.stderr)
        self.assertEqual(run.stdout, "")

    def test_threads_print_after_their_cell(self):
        self.good("import threading\ngo = threading.Event()\nthreading.Thread(target=lambda: (go.wait(60), print('late'))).start()")
        run = self.good("go.set()\nimport time\nwhile threading.active_count() > 1: time.sleep(0.001)")
        self.assertEqual(run.stdout, "late\n")

    def test_much_output_is_whole(self):
        self.assertEqual(len(self.good("print('x' * 20_000_000)").stdout), 20_000_001)
        self.assertEqual(self.good("for i in range(20_000): print(i)").stdout, "".join(f"{i}\n" for i in range(20_000)))

    def test_bytes_that_are_no_text_pass(self):
        run = self.good("import sys; n = sys.stdout.buffer.write(b'\\xff\\x00'); sys.stdout.flush()")
        self.assertEqual(b"".join(v for k, v in run.transcript if k == "stdout"), b"\xff\x00")

    def still_prints(self):
        run = self.good("print('out'); import sys; print('err', file=sys.stderr); 7")
        self.assertEqual((run.stdout, run.stderr, run.text), ("out\n", "err\n", "7"))

    def test_closed_descriptors_are_back_in_the_next_cell(self):
        self.run_cell("import os; os.close(1); os.close(2)")
        self.still_prints()
        self.run_cell("os.close(1); leaked = open('/tmp/silt-leaked', 'w'); print('into the file')")
        self.still_prints()

    def test_redirected_descriptors_are_back_in_the_next_cell(self):
        self.run_cell("import os; fd = os.open('/dev/null', os.O_WRONLY); os.dup2(fd, 1); os.dup2(fd, 2); print('gone')")
        self.still_prints()

    def test_closed_deleted_and_detached_streams_are_back(self):
        for code in ("sys.stdout.close(); sys.stderr.close()", "del sys.stdout", "sys.stdout = None", "sys.stdout.detach(); sys.stderr.detach()",
                     "f = open('/dev/null', 'w'); sys.stdout = f; f.close()", "sys.stdout = sys.stderr = object()"):
            self.run_cell("import sys\n" + code)
            self.still_prints()

    def test_a_stream_that_the_user_put_there_stays(self):
        self.good("import io, sys; sys.stdout = io.StringIO()")
        self.assertEqual(self.good("print('kept')").stdout, "")
        self.assertEqual(self.good("text = sys.stdout.getvalue(); sys.stdout = sys.__stdout__; text").text, "'kept\\n'")
        self.still_prints()

    def test_redirect_stdout_works(self):
        self.assertEqual(self.good("import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('x')\nf.getvalue()").text, "'x\\n'")

    def test_a_pipe_that_a_child_made_non_blocking_loses_nothing(self):
        run = self.good("import os\nos.set_blocking(1, False)\nprint('x' * 3_000_000)\nos.get_blocking(1)")
        self.assertEqual((len(run.stdout), run.text), (3_000_001, "True"))

    def test_a_forked_child_does_not_speak_for_the_context(self):
        run = self.good("import os\npid = os.fork()\nif pid: _, status = os.waitpid(pid, 0)\nelse: display('from the child')\nprint('parent' if pid else 'child')\npid and 9")
        self.assertEqual((run.stdout, run.text), ("child\nparent\n", "9"))
        self.assertEqual(len(run.results), 1)
        self.assertEqual(self.good("status").text, "0")

    def test_a_forked_child_may_not_ask(self):
        run = self.good("import os, sys\npid = os.fork()\nif not pid:\n    try: input()\n    except EOFError: os._exit(5)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
        self.assertEqual(run.text, "5")

    def test_children_inherit_no_descriptor_of_ours(self):
        self.assertEqual(self.good("import os\nlisted = !ls /proc/self/fd\nlen(listed)").text, "4")
        self.assertEqual(self.good("import subprocess\nsubprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True).stdout.split()").main["json"],
                         ["0", "1", "2", "3"])


class WarmStreams(Streams):
    warm = True


if __name__ == "__main__":
    unittest.main()
