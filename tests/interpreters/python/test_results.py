# SPDX-License-Identifier: Apache-2.0
"""Results: all formats of one object in one message, valid JSON whatever the object holds, within the budget."""
import base64
import json
import pathlib
import tempfile
import unittest

from harness import ContextCase

REPRS = """
class Rich:
    def __repr__(self): return 'rich'
    def _repr_html_(self): return '<b>rich</b>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_jpeg_(self): return b'\\xff\\xd8'
    def _repr_svg_(self): return '<svg/>'
    def _repr_latex_(self): return '$x$'
    def _repr_markdown_(self): return '**x**'
    def _repr_javascript_(self): return 'alert(1)'
    def _repr_json_(self): return {'a': [1]}
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/plain': 'p', 'text/html': '<i>p</i>', 'application/x-unknown': {}, 'image/png': 'AA\\nAA'}
class Shows:
    def _ipython_display_(self): display('shown by itself')
"""


class Formats(ContextCase):
    def main(self, code):
        run = self.good(code)
        self.assertIsNotNone(run.main, run.transcript)
        return {k: v for k, v in run.main.items() if k not in ("t", "id", "main")}

    def test_every_repr_of_an_object_is_in_one_result(self):
        self.good(REPRS)
        self.assertEqual(self.main("Rich()"), {
            "text": "rich", "html": "<b>rich</b>", "png": base64.b64encode(b"\x89PNG").decode(),
            "jpeg": base64.b64encode(b"\xff\xd8").decode(), "svg": "<svg/>", "latex": "$x$", "markdown": "**x**",
            "javascript": "alert(1)", "json": {"a": [1]}})

    def test_mime_bundles_keep_what_the_contract_knows(self):
        self.good(REPRS)
        self.assertEqual(self.main("Bundle()"), {"text": "p", "html": "<i>p</i>", "png": "AAAA"})

    def test_an_object_that_displays_itself_is_the_main_result(self):
        self.good(REPRS)
        self.assertEqual(self.main("Shows()"), {"text": "'shown by itself'"})

    def test_display_objects_of_ipython_work(self):
        code = ("from IPython.display import *\ndisplay(HTML('<p>'), Markdown('*'), Latex('$'), SVG('<svg xmlns=\"x\"/>'), "
                "Javascript('1'), JSON({'a': 1}), Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(16) + b'\\x00' * 8, format='png'))")
        formats = [set(r) - {"t", "id", "main", "text"} for r in self.good(code).results]
        self.assertEqual(formats, [{"html"}, {"markdown"}, {"latex"}, {"svg"}, {"javascript"}, {"json"}, {"png"}])

    def test_pictures_are_png(self):
        png = base64.b64decode(self.main("from PIL import Image\nImage.new('RGB', (3, 2), 'red')")["png"])
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")

    def test_formulas_of_sympy_are_latex(self):
        made = self.main("import sympy\nsympy.init_printing()\nsympy.symbols('x') ** 2")
        self.assertIn("x^{2}", made["latex"])

    def test_dicts_and_lists_are_json_and_text(self):
        self.assertEqual(self.main("{'k': [1, 2.5, 'x', None, True]}"),
                         {"text": "{'k': [1, 2.5, 'x', None, True]}", "json": {"k": [1, 2.5, "x", None, True]}})
        self.assertEqual(self.main("[]"), {"text": "[]", "json": []})
        self.assertEqual(self.main("(1, 2)"), {"text": "(1, 2)"})

    def test_what_json_does_not_know_is_made_plain(self):
        code = ("import datetime, decimal, uuid, pathlib, enum, collections, numpy as np\n"
                "class Color(enum.Enum): RED = 'red'\n"
                "[float('nan'), float('inf'), {3, 1}, b'ab\\xff', datetime.date(2024, 1, 2), datetime.timedelta(seconds=1), decimal.Decimal('1.10'),"
                " 10 ** 30, {1: 2, None: 3, (1, 2): 4}, pathlib.Path('/a'), Color.RED, np.int64(5), np.float32('nan'), np.array([[1, 2]]),"
                " np.datetime64('2024-01-02'), collections.deque([1]), 1 + 2j, object]")
        self.assertEqual(self.main(code)["json"], [
            None, None, [1, 3], "ab\\xff", "2024-01-02", "0:00:01", "1.10", "1" + "0" * 30, {"1": 2, "null": 3, "(1, 2)": 4}, "/a", "red", 5,
            None, [[1, 2]], "2024-01-02", [1], "(1+2j)", "<class 'object'>"])

    def test_surrogates_become_valid_text(self):
        self.assertEqual(self.main(r"['\ud800', '\ud83d\ude00']")["json"], ["\ufffd", "\U0001f600"])
        self.assertEqual(self.good(r"print('\ud800', 'x')").stdout, "\\ud800 x\n")

    def test_a_list_of_objects_without_json_form_is_text_only(self):
        self.assertEqual(set(self.main("[object()]")), {"text"})

    def test_cycles_and_deep_values_are_told(self):
        self.assertEqual(self.main("a = []; a.append(a); a"), {"text": "[[...]]", "truncated": ["json"]})
        deep = self.main("d = {}\nfor _ in range(200): d = {'d': d}\nd")
        self.assertEqual(deep["truncated"], ["json"])

    def test_formatters_that_the_user_registers_are_asked(self):
        self.good("html = get_ipython().display_formatter.formatters['text/html']\nhtml.for_type(int, lambda n: f'<b>{n}</b>')")
        self.assertEqual(self.main("5"), {"text": "5", "html": "<b>5</b>"})
        self.good("html.pop(int)")
        self.assertEqual(self.main("5"), {"text": "5"})

    def test_a_repr_that_fails_is_the_error_of_the_cell(self):
        run = self.run_cell("class Bad:\n    def __repr__(self): raise ValueError('bad repr')\nBad()")
        self.assertEqual((run.error["ename"], run.error["evalue"], run.stderr), ("ValueError", "bad repr", ""))

    def test_a_rich_repr_that_fails_leaves_the_others(self):
        run = self.good("class Half:\n    def __repr__(self): return 'half'\n    def _repr_html_(self): raise ValueError('bad html')\nHalf()")
        self.assertEqual(run.text, "half")
        self.assertIn("bad html", run.stderr)

    def test_more_than_a_thousand_results_are_told_once(self):
        run = self.good("for i in range(1100): display(i)")
        self.assertEqual(len(run.results), 1001)
        self.assertEqual(run.results[-1]["truncated"], ["results"])
        self.assertEqual(len(self.good("display(1)").results), 1)


class Tables(ContextCase):
    def test_a_frame_is_text_html_and_data_in_one_result(self):
        run = self.good("import pandas as pd, numpy as np\n"
                        "pd.DataFrame({'a': [1, 2], 'f': [0.5, np.nan], 's': ['x', None], 'd': pd.to_datetime(['2024-01-02', None]),"
                        " 'z': pd.to_datetime(['2024-01-02', None]).tz_localize('UTC'), 't': pd.to_timedelta([1, None], unit='s'),"
                        " 'c': pd.Categorical(['u', 'v']), 'i': pd.array([1, None], dtype='Int64'), 'p': pd.period_range('2024-01', periods=2, freq='M')})")
        self.assertEqual(len(run.results), 1)
        self.assertIn("<table", run.main["html"])
        self.assertIn("0.5", run.main["text"])
        self.assertEqual(run.main["data"], {
            "a": [1, 2], "f": [0.5, None], "s": ["x", None], "d": ["2024-01-02T00:00:00", None], "z": ["2024-01-02T00:00:00+00:00", None],
            "t": ["0 days 00:00:01", None], "c": ["u", "v"], "i": [1, None], "p": ["2024-01", "2024-02"]})

    def test_a_series_is_text_html_and_data(self):
        main = self.good("import pandas as pd\npd.Series([1, 2], name='n', index=['a', 'b'])").main
        self.assertEqual(main["data"], {"n": [1, 2]})
        self.assertIn("<table", main["html"])
        self.assertEqual(self.good("pd.Series([1])").main["data"], {"0": [1]})

    def test_columns_may_share_names_and_have_many(self):
        self.assertEqual(self.good("import pandas as pd\npd.DataFrame([[1, 2]], columns=['a', 'a'])").main["data"], {"a": [1], "a.1": [2]})
        self.assertEqual(self.good("pd.DataFrame([range(6)], columns=['a', 'a', 'a.1', 'a', 'a', 'b'])").main["data"],
                         {"a": [0], "a.2": [1], "a.1": [2], "a.3": [3], "a.4": [4], "b": [5]})
        self.assertEqual(self.good("pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([('a', 'b')]))").main["data"], {"('a', 'b')": [1]})
        self.assertEqual(self.good("pd.DataFrame()").main["data"], {})

    def test_wide_frames_show_as_in_a_notebook(self):
        """Not as in a terminal, where pandas leaves out what does not fit in 80 characters."""
        names = [f"a_long_name_{i}" for i in range(15)]
        main = self.good(f"import pandas as pd\npd.DataFrame([range(15)], columns={names})").main
        for name in names:
            self.assertIn(name, main["text"])
            self.assertIn(name, main["html"])
        self.assertIn("...", self.good("pd.DataFrame([range(21)])").main["text"])
        self.assertNotIn("a_long_name_7", self.good("pd.set_option('display.max_columns', 4)\n"
                                                    f"pd.DataFrame([range(15)], columns={names})").main["text"])

    def test_long_frames_are_cut_and_told(self):
        main = self.good("import pandas as pd\npd.DataFrame({'a': range(300_000)})").main
        self.assertEqual(len(main["data"]["a"]), 200_000)
        self.assertEqual(main["truncated"], ["data"])

    def test_very_wide_frames_are_cut_and_told(self):
        main = self.good("import pandas as pd, numpy as np\npd.DataFrame(np.ones((3, 300_000)))").main
        self.assertEqual((len(main["data"]), main["data"]["1999"], main["truncated"]), (2_000, [1, 1, 1], ["data"]))

    def test_styled_frames_are_html(self):
        self.assertIn("<table", self.good("import pandas as pd\npd.DataFrame({'a': [1]}).style").main["html"])


class Budget(ContextCase):
    init = {"budget": {"result": 10_000, "output": 1 << 20}}

    def test_long_text_is_cut_with_a_note(self):
        main = self.good("class Long:\n    def __repr__(self): return 'x' * 100_000_000\nLong()").main
        self.assertEqual(main["truncated"], ["text"])
        self.assertIn("100000000 characters in all", main["text"])
        self.assertLess(len(main["text"]), 10_000)

    def test_the_budget_counts_encoded_bytes(self):
        for character in ("\\x00", "\\u4e2d", "\\U0001f600"):
            main = self.good(f"class Long:\n    def __repr__(self): return '{character}' * 9_900\nLong()").main
            self.assertLessEqual(len(json.dumps(main["text"], ensure_ascii=False).encode()), 10_000)
            self.assertEqual(main["truncated"], ["text"])

    def test_other_formats_over_budget_are_left_out_and_told(self):
        code = ("class Large:\n    def __repr__(self): return 'large'\n    def _repr_html_(self): return 'h' * 20_000\n"
                "    def _repr_png_(self): return bytes(20_000)\nLarge()")
        main = self.good(code).main
        self.assertEqual((main["text"], sorted(main["truncated"]), "html" in main, "png" in main), ("large", ["html", "png"], False, False))

    def test_values_over_budget_are_left_out_and_told(self):
        main = self.good("list(range(100_000))").main
        self.assertEqual((main["truncated"], "json" in main), (["json"], False))
        self.assertEqual(self.good("import pandas as pd\npd.DataFrame({'a': range(50_000)})").main["truncated"], ["data"])


# As much of Plotly as the kernel touches.
PLOTLY = {
    "__init__.py": "",
    "basedatatypes.py": """
class BaseFigure:
    def to_json(self): return '{"data": [{"type": "pie", "values": [1]}], "layout": {}}'
    def to_html(self, full_html, include_plotlyjs): return '<div>plot</div>'
    def _ipython_display_(self): raise ValueError('needs nbformat')
    def _repr_mimebundle_(self, *a, **k): raise ValueError('needs nbformat')
    def show(self, *a, **k):
        import plotly.io
        return plotly.io.show(self, *a, **k)
""",
    "io/__init__.py": "from ._renderers import show",
    "io/_renderers.py": "def show(figure, renderer=None): print('own way', renderer)",
}


class Installed(ContextCase):
    """Plotly and Altair are no part of the image: what they hand to IPython, and where we reach into them, is."""

    def test_plotly_figures_are_shown_without_its_renderers(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in PLOTLY.items():
                path = pathlib.Path(directory, "plotly", name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            self.good(f"import sys; sys.path.insert(0, {directory!r}); import plotly.basedatatypes; figure = plotly.basedatatypes.BaseFigure()")
            for code in ("figure", "figure.show()", "import plotly.io; plotly.io.show(figure)"):
                result, = self.good(code).results
                self.assertEqual((result["html"], result["chart"]["type"], result["main"]), ("<div>plot</div>", "pie", code == "figure"))
            self.assertEqual(self.good("figure.show(renderer='svg')").stdout, "own way svg\n")

    def test_a_plotly_bundle_is_a_chart(self):
        code = ("display({'application/vnd.plotly.v1+json': {'data': [{'type': 'bar', 'x': ['a'], 'y': [1]}],"
                " 'layout': {'title': {'text': 'T'}}}, 'text/html': '<div>'}, raw=True)")
        result, = self.good(code).results
        self.assertEqual({k: result["chart"][k] for k in ("type", "title", "library")}, {"type": "bar", "title": "T", "library": "plotly"})
        self.assertEqual(result["chart"]["data"], [{"type": "bar", "x": ["a"], "y": [1]}])
        self.assertEqual(result["html"], "<div>")

    def test_an_altair_bundle_is_a_chart(self):
        code = ("display({'application/vnd.vegalite.v5+json': {'mark': {'type': 'point'}, 'title': 'T', 'encoding': {}}, 'text/plain': 'c'}, raw=True)")
        result, = self.good(code).results
        self.assertEqual((result["chart"]["type"], result["chart"]["library"], result["chart"]["data"]["title"]), ("scatter", "altair", "T"))


if __name__ == "__main__":
    unittest.main()
