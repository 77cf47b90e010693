# SPDX-License-Identifier: Apache-2.0
"""Matplotlib figures: a PNG that decodes and a `chart` that tells type, axes and elements."""
import base64
import struct
import unittest
import zlib

from harness import ContextCase

SETUP = """
import datetime, warnings
import matplotlib.pyplot as plt, numpy as np, pandas as pd
warnings.filterwarnings('ignore')
days = [datetime.date(2024, 1, d) for d in (1, 2, 3)]
"""


def size_of_png(data):
    """Decodes it: the checksums of all chunks, and as many bytes as its size asks for."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, pixels, header = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        header = body if kind == b"IHDR" else header
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, color = struct.unpack(">IIBB", header[:10])
    assert (depth, color) in ((8, 2), (8, 6)), (depth, color)
    assert len(zlib.decompress(pixels)) == height * (1 + (3 if color == 2 else 4) * width)
    return width, height


class FigureCase(ContextCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run = cls.context.run(SETUP)
        assert run.error is None, run.error

    def chart(self, code):
        """Of a cell that draws one figure and leaves it open."""
        run = self.good(code + "\nNone")
        self.assertEqual(len(run.results), 1, run.transcript)
        width, height = size_of_png(base64.b64decode(run.results[0]["png"]))
        self.assertGreater(min(width, height), 50)
        chart = run.results[0]["chart"]
        self.assertEqual(chart["library"], "matplotlib")
        self.assertEqual(chart["data"], chart["elements"])
        return chart

    def points(self, chart):
        return {element["label"]: element["points"] for element in chart["elements"]}

    def bars(self, chart):
        return [(e["group"], e["label"], e["value"]) for e in chart["elements"]]


class Lines(FigureCase):
    def test_line(self):
        chart = self.chart("plt.plot([1, 2, 3], [4, 5, float('nan')], label='temp'); plt.title('T'); plt.xlabel('time (s)'); plt.ylabel('heat [C]')")
        self.assertEqual((chart["type"], chart["title"]), ("line", "T"))
        self.assertEqual([chart[k] for k in ("x_label", "x_unit", "y_label", "y_unit")], ["time (s)", "s", "heat [C]", "C"])
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("linear", "linear"))
        self.assertEqual(len(chart["x_ticks"]), len(chart["x_tick_labels"]))
        self.assertEqual(self.points(chart), {"temp": [[1, 4.0], [2, 5.0], [3, None]]})

    def test_lines_without_names_and_labels(self):
        chart = self.chart("plt.plot([1, 2]); plt.plot([3, 4])")
        self.assertEqual(list(self.points(chart)), ["Line 0", "Line 1"])
        self.assertEqual([chart[k] for k in ("title", "x_label", "x_unit")], [None, None, None])

    def test_dates(self):
        chart = self.chart("plt.plot(days, [1, 2, 3], label='d')")
        self.assertEqual((chart["type"], chart["x_scale"]), ("line", "datetime"))
        self.assertEqual(self.points(chart)["d"][0], ["2024-01-01", 1])
        self.assertTrue(chart["x_ticks"][0].startswith("202"))

    def test_dates_of_pandas(self):
        chart = self.chart("pd.DataFrame({'v': [1.5, 2.5]}, index=pd.date_range('2024-01-01', periods=2)).plot()")
        self.assertEqual((chart["type"], chart["x_scale"]), ("line", "datetime"))
        self.assertEqual(self.points(chart), {"v": [["2024-01-01T00:00:00", 1.5], ["2024-01-02T00:00:00", 2.5]]})

    def test_numpy_dates(self):
        chart = self.chart("plt.plot(np.array(['2024-01-01', '2024-01-02'], dtype='datetime64[D]'), [1, 2], label='n')")
        self.assertEqual(self.points(chart)["n"][1], ["2024-01-02T00:00:00", 2])

    def test_categories(self):
        chart = self.chart("plt.plot(['a', 'b'], [1, 2], label='c')")
        self.assertEqual((chart["x_scale"], self.points(chart)), ("categorical", {"c": [["a", 1], ["b", 2]]}))
        self.assertEqual(chart["x_tick_labels"], ["a", "b"])

    def test_log_and_symlog_axes(self):
        self.assertEqual(self.chart("plt.loglog([1, 10], [1, 100])")["x_scale"], "log")
        self.assertEqual(self.chart("plt.plot([1, 2]); plt.yscale('symlog')")["y_scale"], "symlog")
        self.assertEqual(self.chart("plt.plot([0.1, 0.2]); plt.yscale('logit')")["y_scale"], "logit")

    def test_steps_stems_and_error_bars_are_lines(self):
        self.assertEqual(self.chart("plt.step([1, 2], [3, 4], label='s')")["type"], "line")
        self.assertEqual(len(self.chart("plt.stem([1, 2], [3, 4])")["elements"]), 1)
        chart = self.chart("plt.errorbar([1, 2], [3, 4], yerr=0.5, capsize=3, label='e')")
        self.assertEqual((chart["type"], len(chart["elements"])), ("line", 1))

    def test_rules_are_no_series(self):
        self.assertEqual(len(self.chart("plt.plot([1, 2]); plt.axhline(1.5); plt.axvline(0.5)")["elements"]), 1)

    def test_filled_and_stacked_areas_are_lines(self):
        chart = self.chart("plt.fill_between([1, 2, 3], [4, 5, 6], label='f')")
        self.assertEqual((chart["type"], self.points(chart)), ("line", {"f": [[1, 4], [2, 5], [3, 6]]}))
        chart = self.chart("plt.stackplot([1, 2, 3], [1, 1, 1], [2, 2, 2], labels=['a', 'b'])")
        self.assertEqual(self.points(chart), {"a": [[1, 1], [2, 1], [3, 1]], "b": [[1, 3], [2, 3], [3, 3]]})

        chart = self.chart("pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).plot.area()")
        self.assertEqual(self.points(chart), {"a": [[0, 1], [1, 2]], "b": [[0, 4], [1, 6]]})

    def test_polar_lines(self):
        self.assertEqual(self.chart("plt.polar([0, 1], [1, 2])")["type"], "line")

    def test_long_series_are_thinned_and_told(self):
        element, = self.chart("plt.plot(np.arange(25_000))")["elements"]
        self.assertEqual((element["truncated"], len(element["points"])), (25_000, 8334))

    def test_frames_plot_a_line_per_column(self):
        self.assertEqual(list(self.points(self.chart("pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).plot()"))), ["a", "b"])


class Dots(FigureCase):
    def test_scatter(self):
        chart = self.chart("plt.scatter([1, 2], [3, 4], label='one'); plt.scatter([5], [6])")
        self.assertEqual((chart["type"], self.points(chart)), ("scatter", {"one": [[1, 3], [2, 4]], "Scatter 1": [[5, 6]]}))

    def test_scatter_with_colours_and_a_colour_bar(self):
        chart = self.chart("s = plt.scatter([1, 2], [3, 4], c=[5, 6]); plt.colorbar(s)")
        self.assertEqual((chart["type"], len(chart["elements"])), ("scatter", 1))

    def test_scatter_of_dates_and_categories(self):
        self.assertEqual(self.chart("plt.scatter(days, [1, 2, 3])")["elements"][0]["points"][0], ["2024-01-01T00:00:00", 1])
        self.assertEqual(self.chart("plt.scatter(['a', 'b'], [1, 2])")["elements"][0]["points"], [["a", 1], ["b", 2]])

    def test_scatter_with_a_line_has_both(self):
        chart = self.chart("plt.scatter([1, 2], [3, 4], label='dots'); plt.plot([1, 2], [3, 4], label='fit')")
        self.assertEqual((chart["type"], list(self.points(chart))), ("line", ["fit", "dots"]))

    def test_frames_scatter(self):
        self.assertEqual(self.chart("pd.DataFrame({'a': [1, 2], 'b': [3, 4]}).plot.scatter('a', 'b')")["type"], "scatter")


class Bars(FigureCase):
    def test_bar(self):
        chart = self.chart("plt.bar(['a', 'b'], [1, 2], label='n'); plt.xlabel('kind'); plt.ylabel('count')")
        self.assertEqual((chart["type"], chart["x_label"], chart["y_label"]), ("bar", "kind", "count"))
        self.assertEqual(self.bars(chart), [("n", "a", 1), ("n", "b", 2)])

    def test_bars_at_numbers_and_dates(self):
        self.assertEqual(self.bars(self.chart("plt.bar([1, 5], [1, 2])")), [("Group 0", "1", 1), ("Group 0", "5", 2)])
        self.assertEqual(self.bars(self.chart("plt.bar(days, [1, 2, 3])"))[0], ("Group 0", "2024-01-01T00:00:00", 1))

    def test_horizontal_bars_swap_the_labels(self):
        chart = self.chart("plt.barh(['a', 'b'], [2, 2]); plt.xlabel('count'); plt.ylabel('kind')")
        self.assertEqual((chart["type"], chart["x_label"], self.bars(chart)), ("bar", "kind", [("Group 0", "a", 2), ("Group 0", "b", 2)]))

    def test_grouped_bars(self):
        chart = self.chart("x = np.arange(2)\nplt.bar(x - 0.2, [1, 2], 0.4, label='p'); plt.bar(x + 0.2, [3, 4], 0.4, label='q'); plt.xticks(x, ['a', 'b'])")
        self.assertEqual((chart["type"], self.bars(chart)), ("bar", [("p", "a", 1), ("p", "b", 2), ("q", "a", 3), ("q", "b", 4)]))

    def test_stacked_bars(self):
        chart = self.chart("plt.bar(['a', 'b'], [1, 2], label='p'); plt.bar(['a', 'b'], [3, 4], bottom=[1, 2], label='q')")
        self.assertEqual(self.bars(chart), [("p", "a", 1), ("p", "b", 2), ("q", "a", 3), ("q", "b", 4)])

    def test_bars_with_errors_and_with_a_line(self):
        self.assertEqual(len(self.chart("plt.bar(['a', 'b'], [1, 2], yerr=0.1, capsize=2)")["elements"]), 2)
        chart = self.chart("plt.bar(['a', 'b'], [1, 2]); plt.plot(['a', 'b'], [1, 3], label='sum')")
        self.assertEqual((chart["type"], chart["lines"][0]["label"]), ("bar", "sum"))

    def test_frames_as_bars(self):
        frame = "pd.DataFrame({'p': [1, 2], 'q': [3, 4]}, index=['a', 'b'])"
        expected = [("p", "a", 1), ("p", "b", 2), ("q", "a", 3), ("q", "b", 4)]
        for method in ("bar()", "barh()", "bar(stacked=True)"):
            self.assertEqual(self.bars(self.chart(f"{frame}.plot.{method}")), expected, method)

    def test_histogram(self):
        chart = self.chart("plt.hist([1, 1, 2, 3], bins=2, label='h')")
        self.assertEqual((chart["type"], {e["group"] for e in chart["elements"]}), ("histogram", {"h"}))
        stacked = self.chart("plt.hist([[1, 1], [2, 3]], bins=2, stacked=True, label=['h', 'i'])")
        self.assertEqual([e["group"] for e in stacked["elements"]], ["h", "h", "i", "i"])
        self.assertEqual([(e["bin"], e["value"]) for e in chart["elements"]], [([1, 2], 2), ([2, 3], 2)])

    def test_histograms_lying_stepped_and_of_frames(self):
        lying = self.chart("plt.hist([1, 1, 2, 3], bins=2, orientation='horizontal')")
        self.assertEqual((lying["type"], [e["value"] for e in lying["elements"]]), ("histogram", [2, 2]))
        stepped = self.chart("plt.hist([1, 1, 1, 2, 3], bins=2, histtype='step')")
        self.assertEqual((stepped["type"], [(e["bin"], e["value"]) for e in stepped["elements"]]), ("histogram", [([1, 2], 3), ([2, 3], 2)]))
        filled = self.chart("plt.hist([1, 1, 1, 2, 3], bins=2, histtype='stepfilled')")
        self.assertEqual((filled["type"], [e["value"] for e in filled["elements"]]), ("histogram", [3, 2]))
        self.assertEqual(self.chart("pd.Series([1, 2, 3]).plot.hist(bins=3)")["type"], "histogram")


class Shapes(FigureCase):
    def test_pie(self):
        chart = self.chart("plt.pie([1, 3], labels=['a', 'b'], autopct='%1.0f%%'); plt.title('P')")
        self.assertEqual((chart["type"], chart["title"]), ("pie", "P"))
        self.assertEqual(chart["elements"], [{"label": "a", "angle": 90.0, "radius": 1.0}, {"label": "b", "angle": 270.0, "radius": 1.0}])

    def test_ring_and_pie_of_a_series(self):
        self.assertEqual(self.chart("plt.pie([1, 1], wedgeprops={'width': 0.3})")["type"], "pie")
        self.assertEqual([e["label"] for e in self.chart("pd.Series([1, 2], index=['x', 'y']).plot.pie()")["elements"]], ["x", "y"])

    DATA = "[[1, 2, 3, 4, 5, 20], [2, 3, 4]]"
    FIRST = {"label": "a", "min": 1.0, "first_quartile": 2.25, "median": 3.5, "third_quartile": 4.75, "max": 5.0, "outliers": [20.0]}

    def boxes(self, code):
        chart = self.chart(code)
        self.assertEqual(chart["type"], "box_and_whisker", code)
        self.assertEqual(chart["elements"][0], self.FIRST, code)
        self.assertEqual(chart["elements"][1]["median"], 3.0)
        self.assertEqual(len(chart["elements"]), 2)

    def test_boxes(self):
        for more in ("", ", vert=False", ", patch_artist=True", ", notch=True", ", showmeans=True"):
            self.boxes(f"plt.boxplot({self.DATA}, labels=['a', 'b']{more})")

    def test_caps_on_the_box_are_no_medians(self):
        element, = self.chart("plt.boxplot([[1, 1, 5, 5]])")["elements"]
        self.assertEqual([element[k] for k in ("min", "first_quartile", "median", "third_quartile", "max")], [1, 1, 3, 5, 5])

    def test_boxes_of_frames(self):
        self.boxes("pd.DataFrame({'a': [1, 2, 3, 4, 5, 20], 'b': [2, 3, 4, None, None, None]}).plot.box()")
        self.boxes("pd.DataFrame({'a': [1, 2, 3, 4, 5, 20], 'b': [2, 3, 4, None, None, None]}).boxplot()")

    def test_heatmaps(self):
        for code in ("plt.imshow([[1, 2], [3, 4]])", "plt.pcolormesh([[1, 2], [3, 4]])", "plt.matshow([[1, 2], [3, 4]])",
                     "plt.imshow([[1, 2], [3, 4]]); plt.colorbar()", "plt.pcolormesh([1, 2], [1, 2], [[1, 2], [3, 4]], shading='gouraud')"):
            chart = self.chart(code)
            self.assertEqual((chart["type"], chart["elements"][0]["values"]), ("heatmap", [[1, 2], [3, 4]]), code)

    def test_named_heatmap(self):
        chart = self.chart("plt.imshow([[1, 2]]); plt.xticks([0, 1], ['a', 'b']); plt.yticks([0], ['r'])")
        self.assertEqual((chart["x_tick_labels"], chart["x_scale"], chart["y_tick_labels"]), (["a", "b"], "categorical", ["r"]))

    def test_two_dimensional_histogram_is_a_heatmap(self):
        self.assertEqual(self.chart("plt.hist2d([1, 2, 3], [1, 2, 3], bins=2)")["type"], "heatmap")

    def test_large_heatmaps_are_cut_and_told(self):
        element, = self.chart("plt.imshow(np.zeros((600, 20)))")["elements"]
        self.assertEqual((element["truncated"], len(element["values"])), ([600, 20], 500))

    def test_what_has_no_kind_is_unknown(self):
        for code in ("plt.imshow(np.zeros((2, 2, 3)))", "plt.violinplot([[1, 2, 3]])", "plt.contourf([[1, 2], [3, 4]])", "plt.quiver([1], [1], [1], [1])",
                     "plt.hexbin([1, 2, 3], [1, 2, 3], gridsize=3)", "plt.figure().add_subplot(projection='3d').scatter([1], [2], [3])",
                     "plt.axis('off'); plt.text(0.5, 0.5, 'words')", "plt.gca().table([['1']])"):
            chart = self.chart(code)
            self.assertEqual((chart["type"], chart["elements"]), ("unknown", []), code)

    def test_subplots_are_a_superchart(self):
        chart = self.chart("fig, axes = plt.subplots(1, 3); axes[0].plot([1, 2]); axes[1].bar(['a'], [1]); axes[1].set_title('B'); fig.suptitle('S')")
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "S"))
        self.assertEqual([(c["type"], c["title"]) for c in chart["elements"]], [("line", None), ("bar", "B")])

    def test_twin_axes_are_a_superchart(self):
        chart = self.chart("fig, ax = plt.subplots(); ax.plot([1, 2], label='l'); other = ax.twinx(); other.plot([3, 4], label='r'); other.set_ylabel('right')")
        self.assertEqual([c["elements"][0]["label"] for c in chart["elements"]], ["l", "r"])


class Showing(FigureCase):
    def shown(self, code):
        return [(r["main"], "png" in r and "chart" in r) for r in self.good(code).results]

    def test_a_figure_that_is_left_open_is_shown_and_closed(self):
        self.assertEqual(self.shown("plt.plot([1]);"), [(False, True)])
        self.assertEqual(self.good("plt.get_fignums()").main["json"], [])

    def test_show_in_the_middle_keeps_the_order(self):
        run = self.good("plt.plot([1]); plt.show(); print('between'); plt.bar(['a'], [1]); plt.show()")
        self.assertEqual([r["chart"]["type"] for r in run.results], ["line", "bar"])
        self.assertEqual(run.stderr, "")

    def test_a_figure_is_shown_once(self):
        self.assertEqual(self.shown("fig, ax = plt.subplots(); ax.plot([1, 2]); fig"), [(True, True)])
        self.assertEqual(self.shown("fig, ax = plt.subplots(); ax.plot([1, 2]); display(fig)"), [(False, True)])
        self.assertEqual(self.shown("fig, ax = plt.subplots(); ax.plot([1, 2]); fig.show()"), [(False, True)])
        self.assertEqual(self.shown("plt.plot([1]); plt.show(); plt.show()"), [(False, True)])

    def test_a_closed_figure_can_be_shown_again(self):
        self.good("kept, ax = plt.subplots(); ax.plot([1, 2]);")
        self.assertEqual(self.shown("kept"), [(True, True)])

    def test_figures_without_pyplot_are_shown(self):
        self.assertEqual(self.shown("from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1, 2]); f"), [(True, True)])

    def test_several_figures_come_in_order(self):
        run = self.good("for i in range(3):\n    plt.figure(); plt.plot([i]); plt.title(str(i))\nNone")
        self.assertEqual([r["chart"]["title"] for r in run.results], ["0", "1", "2"])

    def test_empty_figures_are_not_shown(self):
        self.assertEqual(self.shown("plt.figure();"), [])

    def test_figures_of_a_cell_that_fails_are_shown(self):
        run = self.run_cell("plt.plot([1]); 1/0")
        self.assertEqual((len(run.results), run.error["ename"]), (1, "ZeroDivisionError"))
        self.assertEqual(self.good("plt.get_fignums()").main["json"], [])

    def test_a_backend_that_was_chosen_by_hand_shows_as_well(self):
        run = self.good("import matplotlib; matplotlib.use('Agg')\nplt.plot([1]); plt.show(); print('x')")
        self.assertEqual((len(run.results), run.stderr), (1, ""))
        self.assertEqual(self.shown("%matplotlib inline\nplt.plot([1]); plt.show()"), [(False, True)])

    def test_a_figure_that_cannot_be_drawn_does_not_stay_open(self):
        run = self.run_cell("plt.title('$\\\\nope{$')\nNone")
        self.assertIn("nope", run.stderr + str(run.error))
        self.assertEqual(self.good("plt.get_fignums()").main["json"], [])

    def test_pause_lets_the_figure_grow(self):
        self.assertEqual(self.shown("for i in range(3): plt.plot([i, 2]); plt.pause(0.001)\nNone"), [(False, True)])

    def test_formats_can_be_chosen_as_in_notebooks(self):
        result, = self.good("%config InlineBackend.figure_format = 'svg'\nplt.plot([1])\nNone").results
        self.assertIn("<svg", result["svg"])
        self.assertNotIn("png", result)
        result, = self.good("%config InlineBackend.figure_format = 'retina'\nplt.plot([1])\nNone").results
        large, _ = size_of_png(base64.b64decode(result["png"]))
        result, = self.good("%config InlineBackend.figure_format = 'png'\nplt.plot([1])\nNone").results
        small, _ = size_of_png(base64.b64decode(result["png"]))
        self.assertGreater(large, 1.8 * small)

    def test_the_edges_are_cut_as_notebooks_cut_them(self):
        """The picture is as large as that of savefig(bbox_inches="tight"), which draws twice, and nothing of the figure has changed."""
        for code in ("plt.plot([1, 2], label='l'); plt.title('t'); plt.xlabel('x'); plt.ylabel('y'); plt.legend()",
                     "plt.imshow([[1, 2], [3, 4]]); plt.colorbar()", "plt.pie([1, 2], labels=['a', 'b'])", "plt.subplot(projection='polar').plot([1, 2])",
                     "a = plt.gca(); a.plot([1]); a.twinx().plot([2]); a.inset_axes([0.2, 0.2, 0.3, 0.3]).plot([3])",
                     "f, axes = plt.subplots(2, 2); axes[0][0].plot([1]); axes[1][1].set_visible(False); axes[0][1].set_in_layout(False); f.suptitle('s')",
                     "a, b = plt.figure().subfigures(1, 2); a.subplots().plot([1]); b.subplots(2); b.suptitle('s')",
                     "plt.figure(layout='constrained').subplots(2)[1].plot([1])", "plt.figure().add_subplot(projection='3d').scatter([1], [2], [3])",
                     "plt.axes([0, 0, 1, 1]).plot([1]); plt.figtext(0.99, 0.5, 'beyond the edge')"):
            run = self.good(f"import io\n{code}\nout, kept = io.BytesIO(), plt.gcf()\nkept.savefig(out, bbox_inches='tight')\n"
                            "before = [a.get_in_layout() for a in kept.axes]")
            drawn = size_of_png(base64.b64decode(run.results[0]["png"]))
            asked = size_of_png(base64.b64decode(self.good("import base64; base64.b64encode(out.getvalue()).decode()").main["text"].strip("'")))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(drawn, asked)), 1, code)
            self.assertEqual(self.good("before == [a.get_in_layout() for a in kept.axes]").text, "True", code)

    def test_a_png_has_all_pixels(self):
        run = self.good("import io, silt_kernel.png as png\nfrom PIL import Image\n"
                        "def told(pixels):\n    read = Image.open(io.BytesIO(png.encode(pixels, 100)))\n"
                        "    return read.mode, round(read.info['dpi'][0]), bool((np.asarray(read.convert('RGBA')) == pixels).all())\n"
                        "clear = np.random.randint(0, 256, (7, 5, 4), dtype=np.uint8)\nopaque = clear | np.array([0, 0, 0, 255], np.uint8)\n"
                        "[told(pixels) for pixels in (clear, opaque, opaque[:1, :1], opaque[::2, 1:4])]")
        self.assertEqual(run.main["json"], [["RGBA", 100, True], *[["RGB", 100, True]] * 3])

    def test_programs_that_a_cell_starts_find_a_backend(self):
        run = self.good("!python3 -c 'import matplotlib.pyplot as plt; plt.plot([1]); print(plt.get_backend().lower())'")
        self.assertEqual((run.stdout, run.stderr), ("agg\n", ""))


class WarmShowing(Showing):
    warm = True


if __name__ == "__main__":
    unittest.main()
