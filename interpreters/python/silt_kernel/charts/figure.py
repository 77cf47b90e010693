# SPDX-License-Identifier: Apache-2.0
"""A matplotlib figure as `chart`: looks at what was drawn and picks the kind that tells it best.

Keys: type, title, elements (and `data`, the same list under its other name), library; with two axes also
x_label, y_label, x_unit, y_unit; lines, dots and grids add x_ticks, x_tick_labels, x_scale and y's.
"""
from .bar import fill_bars, fill_steps, step_bins
from .box import boxes_of, fill_boxes
from .heat import fill_grid, grid_of
from .line import area_edges, fill_areas, fill_dots, fill_lines
from .pie import fill_pie

COLORBAR = "<colorbar>"


def chart_of(figure):
    """None for a figure without plots."""
    plots = [ax for ax in figure.axes if ax.get_label() != COLORBAR and not hasattr(ax, "_colorbar")]
    drawn = [ax for ax in plots if ax.has_data()] or plots
    if not drawn:
        return None
    chart = plot_chart(drawn[0]) if len(drawn) == 1 else superchart(figure, drawn)
    if chart["title"] is None:
        chart["title"] = suptitle(figure)
    chart["library"] = "matplotlib"
    chart["data"] = chart["elements"]
    return chart


def superchart(figure, plots):
    return {"type": "superchart", "title": suptitle(figure), "elements": [plot_chart(ax) for ax in plots]}


def suptitle(figure):
    title = getattr(figure, "_suptitle", None)
    return (title.get_text() or None) if title is not None else None


def plot_chart(ax):
    chart = {"type": "unknown", "title": title_of(ax), "elements": []}
    if getattr(ax, "name", "") == "3d":
        return chart
    try:
        Plot(ax).fill(chart)
    except Exception:  # an artist that is not what it looks like; the picture still tells
        return {"type": "unknown", "title": chart["title"], "elements": []}
    return chart


def title_of(ax):
    return ax.get_title() or ax.get_title(loc="left") or ax.get_title(loc="right") or None


class Plot:
    """What one axes holds, sorted by what it can mean."""

    def __init__(self, ax):
        from matplotlib.collections import PathCollection, PolyCollection
        from matplotlib.container import BarContainer
        from matplotlib.patches import Polygon, Wedge

        self.ax = ax
        self.bars = [c for c in ax.containers if isinstance(c, BarContainer) and is_drawn(c)]
        self.wedges = [p for p in ax.patches if isinstance(p, Wedge)]
        self.dots = [c for c in ax.collections if isinstance(c, PathCollection) and is_placed(c, ax)]
        self.grids = [g for g in map(grid_of, [*ax.images, *meshes(ax)]) if g is not None]
        self.areas = [c for c in ax.collections if type(c) is PolyCollection or "FillBetween" in type(c).__name__]
        self.steps = [p for p in ax.patches if isinstance(p, Polygon) and step_bins(p)]
        self.lines = [line for line in ax.lines if is_series(line, parts_of_containers(ax))]

    def fill(self, chart):
        kind = self._fill_shapes(chart) or self._fill_marks(chart)
        chart["type"] = chart["type"] if chart["type"] != "unknown" else kind or "unknown"

    def _fill_shapes(self, chart):
        if self.wedges and not self.bars:
            fill_pie(self.ax, chart, self.wedges)
            return "pie"
        if self.bars:
            fill_bars(self.ax, chart, self.bars, self.lines)
            return "bar"
        boxes = boxes_of(self.ax)
        if boxes:
            fill_boxes(self.ax, chart, boxes)
            return "box_and_whisker"
        return None

    def _fill_marks(self, chart):
        if self.grids:
            fill_grid(self.ax, chart, self.grids[0])
            return "heatmap"
        if self.steps and not self.lines:
            fill_steps(self.ax, chart, self.steps)
            return "histogram"
        lines = self.lines or ([] if self.dots or self.areas else plain_lines(self.ax))
        if self.dots and not lines:
            fill_dots(self.ax, chart, self.dots)
            return "scatter"
        if lines:
            fill_lines(self.ax, chart, lines, self.dots)
            return "line"
        return self._fill_areas(chart)

    def _fill_areas(self, chart):
        areas = [area for area in self.areas if area_edges(area)]
        if not areas:
            return None
        fill_areas(self.ax, chart, areas)
        return "line"


def is_drawn(bars):
    """Seaborn tries its bars out with one that has no place."""
    return any(bar.get_x() == bar.get_x() and bar.get_height() == bar.get_height() for bar in bars)


def is_placed(dots, ax):
    """Marks stand at places of the plane; the areas of a contour plot are of the same type, but stand nowhere."""
    return len(dots.get_offsets()) > 0 and dots.get_offset_transform().contains_branch(ax.transData)


def meshes(ax):
    return [c for c in ax.collections if "QuadMesh" in type(c).__name__]


def parts_of_containers(ax):
    """Caps of error bars and base lines of stems are lines, too, but no series."""
    from matplotlib.container import ErrorbarContainer, StemContainer

    parts = set()
    for container in ax.containers:
        bars = getattr(container, "errorbar", None) or (container if isinstance(container, ErrorbarContainer) else None)
        if bars is not None:
            parts.update(map(id, bars.lines[1]))
        if isinstance(container, StemContainer):
            parts.add(id(container.baseline))
    return parts


def is_series(line, parts):
    return id(line) not in parts and len(line.get_xdata()) > 0 and not is_rule(line)


def is_rule(line):
    """axhline and axvline: two points, in part in the coordinates of the axes."""
    return len(line.get_xdata()) == 2 and line.get_transform() != line.axes.transData


def plain_lines(ax):
    return [line for line in ax.lines if len(line.get_xdata())]
