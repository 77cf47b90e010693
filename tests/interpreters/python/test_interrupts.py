# SPDX-License-Identifier: Apache-2.0
"""SIGINT stops what runs, and only that: variables stay, and the next cell works."""
import os
import signal
import unittest

from harness import ContextCase, Run

SAY = "print('started', flush=True)\n"


class Interrupts(ContextCase):
    def interrupted(self, code, name="KeyboardInterrupt", say=SAY):
        self.good("mark = 1")
        self.context.start(say + code)
        run = self.context.until(lambda kind, value: kind == "stdout" and b"started" in value)
        run = self.context.interrupt_until_done(run)
        self.assertIsNotNone(run.done, run.transcript)
        if name:
            self.assertEqual(run.error and run.error["ename"], name, run.transcript)
        self.assertEqual(self.good("mark + 1").text, "2")
        return run

    def test_sleep(self):
        self.interrupted("import time; time.sleep(1000)")

    def test_loops(self):
        self.assertNotIn("silt_kernel", "".join(self.interrupted("while True: pass").error["traceback"]))
        self.interrupted("while True:\n    try: 1 / 0\n    except Exception: pass")

    def test_subprocesses(self):
        self.interrupted("import subprocess; subprocess.run(['sleep', '1000'])")
        self.interrupted("import os; os.waitpid(os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '1000'), 0)")

    def test_commands(self):
        self.interrupted("!sleep 1000")
        self.interrupted("x = !sleep 1000", name=None)
        self.interrupted("!trap '' INT; sleep 0.1; true; sleep 1000 & wait; sleep 1000")

    def test_await(self):
        for code in ("await asyncio.sleep(1000)", "await asyncio.gather(asyncio.sleep(1000), asyncio.sleep(1000))"):
            run = self.interrupted(f"import asyncio; {code}")
            self.assertEqual(run.stderr, "")
            self.assertNotIn("silt_kernel", "".join(run.error["traceback"]))
        self.interrupted("import asyncio; asyncio.run(asyncio.sleep(1000))")

    def test_a_traceback_that_could_not_be_made_shows_nothing_of_ours(self):
        self.good("import asyncio; get_ipython().showtraceback = lambda *_, **__: None")
        run = self.interrupted("asyncio.get_running_loop().call_later(0.1, print, 'started')\nawait asyncio.sleep(1000)", say="")
        self.good("del get_ipython().showtraceback")
        self.assertIn("run_until_complete", "".join(run.error["traceback"]))
        self.assertNotIn("silt_kernel", "".join(run.error["traceback"]))

    def test_threads_sockets_and_regular_expressions(self):
        self.interrupted("import threading; threading.Event().wait()")
        self.interrupted("import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()")
        self.interrupted("import re; re.match('(a+)+$', 'a' * 60 + 'b')")

    def test_loops_over_numpy(self):
        self.interrupted("import numpy as np\na = np.ones((200, 200))\nwhile True: a = a @ a / 200")

    def test_pools(self):
        self.interrupted("import multiprocessing, time\nwith multiprocessing.get_context('fork').Pool(2) as pool: pool.map(time.sleep, [1000, 1000])")

    def test_reprs_that_never_end(self):
        self.interrupted("class Loop:\n    def __repr__(self):\n        while True: pass\nLoop()")
        self.interrupted("class Loop:\n    def _repr_html_(self):\n        while True: pass\ndisplay(Loop())")

    def test_errors_whose_text_never_ends(self):
        run = self.interrupted("class Loop(Exception):\n    def __str__(self):\n        while True: pass\nraise Loop", name=None)
        self.assertIn(run.error["ename"], ("Loop", "KeyboardInterrupt"))

    def test_endless_output(self):
        self.context.start("while True: print('x' * 100)")
        run = self.context.until(lambda kind, _: kind == "stdout")
        run = self.context.interrupt_until_done(run)
        self.assertEqual(run.error["ename"], "KeyboardInterrupt")
        self.assertEqual(self.good("1 + 1").text, "2")

    def test_a_handler_of_the_user_holds_for_its_cell_only(self):
        self.good("import signal; before = signal.signal(signal.SIGINT, signal.SIG_IGN)")
        self.interrupted("while True: pass")

    def test_code_may_catch_the_interrupt(self):
        run = self.interrupted("import time\ntry:\n    print('started')\n    time.sleep(1000)\nexcept KeyboardInterrupt: print('caught')", name=None, say="")
        self.assertIsNone(run.error)
        self.assertIn("caught", run.stdout)

    def test_idle_contexts_ignore_it(self):
        for _ in range(20):
            self.context.interrupt()
        self.assertEqual(self.good("1 + 1").text, "2")

    def test_an_interrupt_that_is_repeated_stops_a_run_from_its_beginning(self):
        for _ in range(5):
            self.context.start("import time; time.sleep(1000)")
            run = self.context.interrupt_until_done(Run(), again_s=0.05)
            self.assertEqual(run.error["ename"], "KeyboardInterrupt")

    def test_an_interrupt_that_comes_too_late_spares_the_next_run(self):
        pid = self.context.kernel_pid()
        for _ in range(5):
            os.kill(pid, signal.SIGSTOP)  # so that signal and run are both there when it looks
            os.kill(pid, signal.SIGINT)
            self.context.start("3")
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(self.context.finish().text, "3")

    def test_many_interrupts_break_nothing(self):
        for _ in range(10):
            self.context.start(SAY + "while True:\n    display({'a': list(range(100))})\n    print('y')")
            run = self.context.until(lambda kind, value: kind == "stdout" and b"started" in value)
            for _ in range(3):
                self.context.interrupt()
            run = self.context.interrupt_until_done(run)
            self.assertEqual(run.error["ename"], "KeyboardInterrupt")
        self.assertEqual(self.good("1 + 1").text, "2")


class Questions(ContextCase):
    def ask(self, code, answer):
        self.context.start(code)
        run = self.context.until(lambda kind, _: kind == "input")
        question = run.transcript[-1][1]
        self.context.send({"t": "input", "id": self.context.next_id, **answer})
        return question, self.context.until(lambda kind, _: kind in ("done", "input"), run)

    def test_input_asks_and_is_answered(self):
        question, run = self.ask("print('q')\nname = input('name? ')\nname.upper()", {"text": "ada"})
        self.assertEqual(question, {"t": "input", "id": self.context.next_id, "prompt": "name? ", "password": False})
        self.assertEqual((run.text, run.stdout), ("'ADA'", "q\n"))

    def test_getpass_says_so(self):
        question, run = self.ask("from getpass import getpass\ngetpass('pw: ')", {"text": "s\u00e4cret\n"})
        self.assertEqual((question["prompt"], question["password"], run.text), ("pw: ", True, "'s\u00e4cret'"))

    def test_no_answer_is_an_eof_error(self):
        _, run = self.ask("input()", {"eof": True})
        self.assertEqual(run.error["ename"], "EOFError")

    def test_several_questions(self):
        _, run = self.ask("a = input('1'); b = input('2')\na + b", {"text": "x"})
        self.context.send({"t": "input", "id": self.context.next_id, "text": "y"})
        self.assertEqual(self.context.finish().text, "'xy'")

    def test_a_question_can_be_interrupted_and_its_late_answer_is_dropped(self):
        self.context.start("input('wait')")
        self.context.until(lambda kind, _: kind == "input")
        self.assertEqual(self.context.interrupt_until_done(Run()).error["ename"], "KeyboardInterrupt")
        self.context.send({"t": "input", "id": self.context.next_id, "text": "late"})
        self.assertEqual(self.good("2").text, "2")
        _, run = self.ask("input()", {"text": "mine"})
        self.assertEqual(run.text, "'mine'")

    def test_programs_that_read_stdin_find_its_end(self):
        self.assertEqual(self.good("import sys; sys.stdin.read()").text, "''")
        self.assertEqual(self.good("!cat; echo $?").stdout, "0\n")


if __name__ == "__main__":
    unittest.main()
