# SPDX-License-Identifier: Apache-2.0
"""Lines, dots and filled areas: elements {label, points}."""
from .axis import Plane

POINTS_MAX = 10_000  # of one series; longer ones are thinned evenly, and tell their length as `truncated`


def series(label, plane, xs, ys):
    count = min(len(xs), len(ys))
    step = max(1, -(-count // POINTS_MAX))
    points = zip(plane.x.values(xs[:count:step]), plane.y.values(ys[:count:step]))
    made = {"label": label, "points": [list(point) for point in points]}
    if step > 1:
        made["truncated"] = count
    return made


def label_or(artist, default):
    label = str(artist.get_label())
    return default if not label or label.startswith("_") else label


def line_series(lines, plane):
    names = legend_names(plane.ax)
    below = area_names(plane.ax, len(lines))
    return [series(label_or(line, names.get(look(line), below[i] or f"Line {i}")), plane, line.get_xdata(), line.get_ydata())
            for i, line in enumerate(lines)]


def area_names(ax, count):
    """Pandas draws an area as a line without a name, and fills what is below under its name."""
    names = [label_or(area, None) for area in ax.collections]
    return names if len(names) == count else [None] * count


def look(line):
    return str(line.get_color()), line.get_linestyle()


def legend_names(ax):
    """Seaborn gives its lines no names, but draws them in the legend: {look: name}."""
    legend = ax.get_legend()
    if legend is None:
        return {}
    return {look(line): text.get_text() for line, text in zip(legend.get_lines(), legend.get_texts())}


def dot_series(collections, plane):
    made = []
    for i, dots in enumerate(collections):
        offsets = dots.get_offsets()
        made.append(series(label_or(dots, f"Scatter {i}"), plane, offsets[:, 0], offsets[:, 1]))
    return made


def area_edges(area):
    """Both edges of fill_between's polygon, which goes along the first and comes back along the second; or None."""
    paths = area.get_paths()
    vertices = paths[0].vertices if len(paths) == 1 else ()
    count = (len(vertices) - 3) // 2
    if count < 2 or len(vertices) != 2 * count + 3:
        return None
    there, back = vertices[1:count + 1], vertices[count + 2:2 * count + 2][::-1]
    along = there[:, 0]
    return (there, back) if (along == back[:, 0]).all() and (along[1:] >= along[:-1]).all() else None


def area_series(areas, plane):
    """fill_between and stackplot: the edge that is farther from zero is the data."""
    made = []
    for i, area in enumerate(areas):
        edge = max(area_edges(area), key=lambda points: abs(points[:, 1]).mean())
        made.append(series(label_or(area, f"Area {i}"), plane, edge[:, 0], edge[:, 1]))
    return made


def fill_lines(ax, chart, lines, dots):
    plane = Plane(ax)
    plane.describe(chart, ticks=True)
    chart["elements"] = line_series(lines, plane)
    for element in dot_series(dots, plane):
        chart["elements"].append({**element, "type": "scatter"})


def fill_dots(ax, chart, dots):
    plane = Plane(ax)
    plane.describe(chart, ticks=True)
    chart["elements"] = dot_series(dots, plane)


def fill_areas(ax, chart, areas):
    plane = Plane(ax)
    plane.describe(chart, ticks=True)
    chart["elements"] = area_series(areas, plane)
