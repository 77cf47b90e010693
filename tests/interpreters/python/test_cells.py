# SPDX-License-Identifier: Apache-2.0
"""What IPython users expect of cells."""
import os
import tempfile
import unittest

from harness import Context, ContextCase


class Cells(ContextCase):
    def test_the_last_expression_is_the_main_result(self):
        self.assertEqual(self.good("a = 20\na + 1").main, {"t": "result", "id": self.context.next_id, "main": True, "text": "21"})

    def test_none_assignments_and_semicolons_give_no_result(self):
        for code in ("None", "x = 1", "1;", "", "   \n", "# nothing"):
            self.assertEqual(self.good(code).results, [], code)

    def test_variables_functions_and_imports_stay(self):
        self.good("import math\nradius = 2\ndef area(): return math.pi * radius ** 2")
        self.assertEqual(self.good("round(area(), 2)").text, "12.57")

    def test_runs_are_counted_whatever_becomes_of_them(self):
        first = self.run_cell("1").done["count"]
        counts = [self.run_cell(code).done["count"] for code in ("", "1/0", "def (", "%nope", "2")]
        self.assertEqual(counts, list(range(first + 1, first + 6)))

    def test_in_out_and_underscores_are_the_usual_ones(self):
        count = self.good("41 + 1").done["count"]
        self.assertEqual(self.good("_").text, "42")
        self.assertEqual(self.good(f"Out[{count}], _{count}, In[{count}]").text, "(42, 42, '41 + 1')")

    def test_display_gives_results_that_are_not_main(self):
        run = self.good("display('a', 1)\n2")
        self.assertEqual([(r["main"], r["text"]) for r in run.results], [(False, "'a'"), (False, "1"), (True, "2")])

    def test_cells_may_replace_functions_of_modules(self):
        self.good("import json; kept = dict(vars(json)); json.dumps = json.loads = json.JSONEncoder = None")
        self.assertEqual(self.good("{'a': '\\ud800'}").main["json"], {"a": "\ufffd"})
        self.good("vars(json).update(kept)")

    def test_cells_that_are_not_taken_apart_are_what_they_would_have_become(self):
        begins = ("", " ", "\n", ">>> ", "... ", "In [1]: ", "   ...: ", "%", "%%time\n", "!", "?", ",", ";", "/", "x = %", "if 1:\n  ", "\x0c", "\r")
        ends = ("1", "a = 1", "pip", "exit", "exit()", "macro", "cd /tmp", "print(1)\n  /a", "f(1,\n  2)", "a ?", "a;", '"""\n%x"""', "a\n\n",
                "a\u2028,b", "ls = 1\n!ls", "x\n>>> y", "x\n   ...: y", "# é\n")
        cells = [begin + end for begin in begins for end in ends]
        self.good("from IPython.core.interactiveshell import InteractiveShell\nfrom IPython.core.macro import Macro\nmacro = Macro('1')\n"
                  f"shell, cells = get_ipython(), {cells!r}\n"
                  "def differ(): return [c for c in cells if shell.transform_cell(c) != InteractiveShell.transform_cell(shell, c)]")
        self.assertEqual(self.good("differ()").text, "[]")
        self.good("shell.autocall = 2")
        self.assertEqual(self.good("(differ(), shell.transform_cell('print 1'))").text, r"([], 'print(1)\n')")
        self.good("shell.autocall = 0")

    def test_transformers_of_the_user_are_called(self):
        self.good("def answer(lines): return [line.replace('question', '42') for line in lines]\nget_ipython().input_transformers_post.append(answer)")
        self.assertEqual(self.good("question").text, "42")
        self.good("get_ipython().input_transformers_post.remove(answer)")
        self.assertEqual(self.run_cell("question").error["ename"], "NameError")

    def test_line_and_cell_magics_work(self):
        self.assertIn("Wall time", self.good("%time sum(range(10))").stdout)
        self.assertEqual(self.good("%%bash\necho from bash").stdout, "from bash\n")
        self.assertEqual(self.good("%%capture got\nprint('kept')").stdout, "")
        self.assertEqual(self.good("got.stdout").text, "'kept\\n'")
        self.assertEqual(self.good("%env SILT_X=1\nimport os; os.environ['SILT_X']").text, "'1'")
        self.good("%matplotlib inline\n%config InlineBackend.figure_format = 'png'")

    def test_commands_stream_and_leave_their_status(self):
        run = self.good("print('before')\n!echo $((1 + 1)); echo err >&2; exit 3\nprint('after')\n_exit_code")
        self.assertEqual((run.stdout, run.stderr, run.text), ("before\n2\nafter\n", "err\n", "3"))
        self.assertEqual(self.good("name = 'x'\n!echo {name} $name").stdout, "x x\n")
        self.assertEqual(self.good("lines = !printf 'a\\nb\\n'\nlist(lines)").main["json"], ["a", "b"])

    def test_the_output_of_commands_is_captured_with_the_cell(self):
        self.good("%%capture got\n!echo inside")
        self.assertEqual(self.good("got.stdout").text, "'inside\\n'")

    def test_top_level_await_works_beside_asyncio_run(self):
        self.assertEqual(self.good("import asyncio\nasync def five():\n    await asyncio.sleep(0)\n    return 5\nawait five()").text, "5")
        self.assertEqual(self.good("asyncio.run(five())").text, "5")
        self.assertEqual(self.good("await five() + 1").text, "6")

    def test_tasks_go_on_between_cells(self):
        fifo = tempfile.mktemp()
        os.mkfifo(fifo)
        self.addCleanup(os.unlink, fifo)
        self.good("import asyncio, os\ndone = []\nasync def later():\n    loop, fd = asyncio.get_running_loop(), os.open(" + repr(fifo) + ", os.O_RDONLY | os.O_NONBLOCK)\n"
                  "    written = loop.create_future()\n    loop.add_reader(fd, lambda: (loop.remove_reader(fd), written.set_result(1)))\n"
                  "    await written\n    done.append(1)\n    print('ticked')\ntask = asyncio.create_task(later())\nawait asyncio.sleep(0)")
        with open(fifo, "w", encoding="utf-8") as file:
            file.write("go")
        seen = self.context.until(lambda name, value: name == "stdout" and value.endswith(b"\n"))
        self.assertEqual(seen.stdout, "ticked\n")
        self.assertEqual(self.good("done").text, "[1]")

    def test_question_marks_and_help_print(self):
        self.assertIn("absolute value", self.good("abs?").stdout)
        self.assertIn("absolute value", self.good("help(abs)").stdout)

    def test_large_and_strange_code_runs(self):
        self.assertEqual(self.good("len('''" + "x" * 10_000_000 + "''')").text, "10000000")
        self.assertEqual(self.good("'\u00e4\U0001f600'").text, "'\u00e4\U0001f600'")
        self.assertIn(self.run_cell("1\0").error["ename"], ("SyntaxError", "ValueError"))
        self.assertIsNotNone(self.run_cell("'\ud800'").error)
        self.assertEqual(self.good("1 + 1").text, "2")

    def test_multiprocessing_and_threads_work(self):
        # Python 3.11.2 fails with a KeyError when the collector runs an import inside an import (gh-106176).
        self.good("import gc; gc.collect();")
        code = ("import multiprocessing\ndef square(x): return x * x\n"
                "with multiprocessing.get_context('fork').Pool(2) as pool:\n    squares = pool.map(square, [1, 2, 3])\nsquares")
        self.assertEqual(self.good(code).text, "[1, 4, 9]")
        self.assertEqual(self.good("import concurrent.futures as f\nlist(f.ThreadPoolExecutor(2).map(str, [1]))").text, "['1']")

    def test_nothing_of_the_kernel_is_in_the_way(self):
        self.assertEqual(self.good("__name__").text, "'__main__'")
        self.assertEqual(self.good("import sys; sys.path[0], [p for p in sys.path if 'interpreters' in p]").text, "('', [])")
        self.assertEqual(self.good("import os; os.path.exists(os.path.expanduser('~/.ipython'))").text, "False")


class WarmCells(Cells):
    warm = True


class Surroundings(unittest.TestCase):
    def answer(self, **init):
        context = Context(init=init)
        self.addCleanup(context.close)
        seen = context.until(lambda name, _: name in ("ready", "failed", "stale"))
        return context, seen.transcript[-1][1]

    def test_ready_tells_the_version(self):
        context, ready = self.answer()
        self.assertEqual(context.run("import platform; print(platform.python_version(), end='')").stdout, ready["version"])

    def test_the_next_file_is_descriptor_3_as_in_any_program(self):
        context, _ = self.answer()
        self.assertEqual(context.run("open('/dev/null').fileno()").text, "3")

    def test_cwd_and_environment_are_those_of_init_only(self):
        context, _ = self.answer(cwd="/usr", env={"PATH": "/usr/bin:/bin", "A": "\u00e4 b", "PYTHONPATH": "/nowhere/here", "TZ": "Asia/Tokyo"})
        self.assertEqual(context.run("import os, sys, time; os.getcwd(), os.environ['A'], 'HOME' in os.environ, sys.path[1], time.tzname[0]").text,
                         "('/usr', '\u00e4 b', False, '/nowhere/here', 'JST')")
        self.assertEqual(context.run("!echo $A $PWD").stdout, "\u00e4 b /usr\n")

    def test_a_missing_cwd_is_refused(self):
        _, failed = self.answer(cwd="/nowhere")
        self.assertEqual((failed["t"], failed["code"]), ("failed", "cwd"))
        self.assertIn("/nowhere", failed["why"])

    def test_a_bad_environment_is_refused(self):
        _, failed = self.answer(env={"A": "nul \0"})
        self.assertEqual((failed["t"], failed["code"]), ("failed", "env"))

    def test_files_in_the_working_directory_do_not_replace_what_the_kernel_needs(self):
        context, _ = self.answer()
        context.run("import os, tempfile; directory = tempfile.mkdtemp(); open(directory + '/json.py', 'w').write('raise SystemExit(9)')")
        directory = context.run("print(directory, end='')").stdout
        other, ready = self.answer(cwd=directory)
        self.assertEqual(ready["t"], "ready")
        self.assertEqual(other.run("{'a': 1}").main["json"], {"a": 1})

    def test_a_package_that_is_installed_while_the_context_runs_is_found(self):
        context, _ = self.answer(env={"PATH": "/usr/bin:/bin", "HOME": "/tmp/silt-home-of-test"})
        make = "!d=$(python3 -m site --user-site) && mkdir -p $d && echo 'word = 7' > $d/silt_installed.py && echo $d"
        context.run("try:\n    import silt_installed\nexcept ImportError: pass")
        self.assertIn("/tmp/silt-home-of-test/", context.run(make).stdout)
        self.assertEqual(context.run("import silt_installed; silt_installed.word").text, "7")
        context.run("!rm -r /tmp/silt-home-of-test")


if __name__ == "__main__":
    unittest.main()
