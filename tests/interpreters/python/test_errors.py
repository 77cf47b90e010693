# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a cell: typed, readable, and never the end of the context, unless it asked for that."""
import os
import signal
import unittest

from harness import Context, ContextCase


class Errors(ContextCase):
    def failing(self, code):
        run = self.run_cell(code)
        self.assertIsNotNone(run.error, run.transcript)
        self.assertEqual(run.transcript[-1][0], "done")
        return run.error

    def test_an_exception_has_name_value_traceback_and_line(self):
        error = self.failing("x = 1\nx / 0")
        self.assertEqual((error["ename"], error["evalue"], error["line"]), ("ZeroDivisionError", "division by zero", 2))
        self.assertEqual(error["traceback"][-1], "ZeroDivisionError: division by zero")
        self.assertTrue(any("x / 0" in line for line in error["traceback"]))

    def test_tracebacks_are_plain_lines_and_name_no_frame_of_ours(self):
        error = self.failing("def f():\n    raise KeyError('k')\nf()")
        for line in error["traceback"]:
            self.assertNotIn("\n", line)
            self.assertNotIn("\x1b", line)
            self.assertNotIn("silt_kernel", line)
        self.assertEqual(error["line"], 2)

    def test_syntax_errors_are_errors(self):
        for code, name, line in (("def f(:", "SyntaxError", 1), ("a = 1\n  b = 2", "IndentationError", 2), ("x = (1", "SyntaxError", 1),
                                 ("'abc", "SyntaxError", 1), ("for", "SyntaxError", 1)):
            error = self.failing(code)
            self.assertEqual((error["ename"], error["line"]), (name, line), code)
            self.assertTrue(error["traceback"])

    def test_output_and_results_before_an_error_are_kept(self):
        run = self.run_cell("print('before')\ndisplay(1)\n1/0\nprint('never')")
        self.assertEqual(run.kinds, ["stdout", "result", "error", "done"])

    def test_chained_and_grouped_exceptions_are_told(self):
        error = self.failing("try:\n    1/0\nexcept Exception as e:\n    raise RuntimeError('outer') from e")
        self.assertEqual(error["ename"], "RuntimeError")
        self.assertTrue(any("ZeroDivisionError" in line for line in error["traceback"]))
        error = self.failing("e = ExceptionGroup('all', [ValueError('one'), ExceptionGroup('some', [TypeError('two')])]); e.add_note('a hint'); raise e")
        self.assertEqual((error["ename"], error["evalue"]), ("ExceptionGroup", "all (2 sub-exceptions)"))
        for words in ("ValueError: one", "TypeError: two", "a hint"):
            self.assertEqual(sum(line.endswith(words) for line in error["traceback"]), 1, error)
        self.assertLess(len(self.failing("raise ExceptionGroup('many', [ValueError(i) for i in range(5000)])")["traceback"]), 402)

    def test_unknown_magics_and_names_are_errors(self):
        self.assertEqual(self.failing("%nope")["ename"], "UsageError")
        self.assertEqual(self.failing("nope")["ename"], "NameError")

    def test_deep_recursion_is_an_error_with_a_short_traceback(self):
        error = self.failing("def f(): return f()\nf()")
        self.assertEqual(error["ename"], "RecursionError")
        self.assertLess(len(error["traceback"]), 402)

    def test_exceptions_with_bad_or_huge_texts_are_told(self):
        self.assertEqual(self.failing("class E(Exception):\n    def __str__(self): raise ValueError\nraise E")["ename"], "E")
        error = self.failing("raise ValueError('x' * 10_000_000)")
        self.assertLess(len(error["evalue"]), 100_000)
        self.assertLess(sum(map(len, error["traceback"])), 2_000_000)
        self.assertEqual(self.failing(r"raise ValueError('\ud800')")["evalue"], "\ufffd")

    def test_memory_errors_are_errors(self):
        self.assertEqual(self.failing("bytearray(1 << 62)")["ename"], "MemoryError")

    def test_exceptions_outside_of_exception_are_errors(self):
        self.assertEqual(self.failing("raise GeneratorExit")["ename"], "GeneratorExit")
        self.assertEqual(self.failing("class E(BaseException): pass\nraise E('x')")["ename"], "E")
        self.assertEqual(self.failing("import asyncio\nasync def f(): raise asyncio.CancelledError()\nawait f()")["ename"], "CancelledError")

    def test_exceptions_in_threads_are_on_stderr(self):
        run = self.good("import threading\nt = threading.Thread(target=lambda: 1/0); t.start(); t.join()")
        self.assertIn("ZeroDivisionError", run.stderr)

    def test_showing_an_old_traceback_is_no_error(self):
        self.failing("1/0")
        run = self.good("%tb")
        self.assertIn("ZeroDivisionError", run.stderr)

    def test_the_state_before_an_error_stays(self):
        self.failing("kept = 5\n1/0")
        self.assertEqual(self.good("kept").text, "5")


class Ends(unittest.TestCase):
    def context(self, warm=False):
        context = Context(warm=warm)
        self.addCleanup(context.close)
        context.until(lambda name, _: name == "ready")
        return context

    def leaves(self, code, status, warm=False):
        context = self.context(warm)
        run = context.run(code)
        self.assertEqual(run.exit, {"t": "exit", "id": 1, "status": status}, code)
        seen = context.until(lambda name, _: name == "eof")
        self.assertEqual(context.process.wait(60), status)
        return run, seen

    def test_exit_ends_the_context_with_its_status(self):
        for code, status in (("exit()", 0), ("quit", 0), ("exit(4)", 4), ("import sys; sys.exit(3)", 3), ("raise SystemExit", 0)):
            self.leaves(code, status)

    def test_a_word_for_an_exit_goes_to_stderr(self):
        run, _ = self.leaves("print('last words', flush=False); import sys; sys.exit('why')", 1)
        self.assertEqual((run.stdout, run.stderr), ("last words\n", "why\n"))

    def test_the_rest_of_the_cell_does_not_run(self):
        run, _ = self.leaves("print('a'); exit(); print('b')", 0)
        self.assertEqual(run.stdout, "a\n")

    def test_exit_handlers_run(self):
        run, seen = self.leaves("import atexit; atexit.register(print, 'bye'); exit()", 0, warm=True)
        self.assertEqual(run.stdout + seen.stdout, "bye\n")

    def test_files_that_were_not_closed_are_written(self):
        self.leaves("f = open('/tmp/silt-unclosed', 'w'); f.write('all'); g = open('/tmp/silt-cycle', 'w'); g.write('all'); h = [g]; h.append(h); exit()", 0)
        for name in ("/tmp/silt-unclosed", "/tmp/silt-cycle"):
            with open(name, encoding="utf-8") as file:
                self.assertEqual(file.read(), "all")
            os.unlink(name)

    def test_quit_and_the_end_of_requests_end_the_kernel(self):
        context = self.context()
        context.run("import atexit; atexit.register(print, 'bye')")
        context.send({"t": "quit"})
        self.assertEqual(context.until(lambda name, _: name == "eof").stdout, "bye\n")
        self.assertEqual(context.process.wait(60), 0)
        context = self.context()
        context.requests.close()
        self.assertEqual(context.process.wait(60), 0)

    def test_crashes_end_the_process(self):
        context = self.context()
        context.start("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        seen = context.until(lambda name, _: name == "eof")
        self.assertIn("Segmentation fault", seen.stderr)
        self.assertEqual(context.process.wait(60), -signal.SIGSEGV)


if __name__ == "__main__":
    unittest.main()
