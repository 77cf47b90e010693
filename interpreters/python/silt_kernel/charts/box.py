# SPDX-License-Identifier: Apache-2.0
"""Boxes with whiskers: elements {label, min, first_quartile, median, third_quartile, max, outliers}.

Matplotlib keeps no record of a boxplot: boxes, whiskers and medians are found by their shapes.
"""
from .axis import Plane, number, swap_labels

SLACK = 1e-6


CORNERS = [0, 1, 5, 6]  # of a notched outline, whose notches may reach beyond the quartiles


class Box:
    def __init__(self, points):
        points = points[CORNERS] if len(points) in (11, 12) else points
        self.low = points.min(axis=0)
        self.high = points.max(axis=0)
        self.center = (self.low + self.high) / 2


def outline_boxes(lines):
    """Line2D outlines: closed, of 5 points, or 11 when notched."""
    found = []
    for line in lines:
        xy = line.get_xydata()
        if len(xy) in (5, 11) and (xy[0] == xy[-1]).all() and (xy.max(axis=0) > xy.min(axis=0)).all() and squarish(xy):
            found.append(Box(xy))
    return found


def squarish(xy):
    """Every side of a box runs along an axis; those of a notch are the exception."""
    return len(xy) == 11 or all(a[0] == b[0] or a[1] == b[1] for a, b in zip(xy, xy[1:]))


def boxes_of(ax):
    from matplotlib.patches import PathPatch

    filled = [Box(p.get_path().vertices) for p in ax.patches
              if isinstance(p, PathPatch) and len(p.get_path().vertices) in (5, 6, 11, 12)]
    return filled or outline_boxes(ax.lines)


def is_vertical(ax, boxes):
    """The axis of the categories is the one on which each box stands at a tick of its own."""
    ticks = {round(float(t), 6) for t in ax.get_xticks()}
    return all(any(abs(box.center[0] - t) < SLACK for t in ticks) for box in boxes)


def fill_boxes(ax, chart, boxes):
    plane = Plane(ax)
    plane.describe(chart, ticks=False)
    category = 0 if is_vertical(ax, boxes) else 1
    if category == 1:
        swap_labels(chart)
    names = (plane.x if category == 0 else plane.y).label_at()
    for box in boxes:
        label = names.get(round(float(box.center[category]), 6), "")
        chart["elements"].append(element(label, box, ax.lines, category))


def element(label, box, lines, category):
    value = 1 - category
    low, high = number(box.low[value]), number(box.high[value])
    made = {"label": label, "min": low, "first_quartile": low, "median": None, "third_quartile": high, "max": high,
            "outliers": []}
    widest = 0
    for line in lines:
        xy = line.get_xydata()
        if not len(xy) or not belongs(xy[:, category], box, category):
            continue
        places, values = xy[:, category], xy[:, value]
        if is_median(made, places, values) and abs(places[1] - places[0]) >= widest - SLACK:
            # Caps that lie on the box look the same, but are not wider, and are drawn first.
            widest, made["median"] = abs(places[1] - places[0]), number(values[0])
        add_part(made, line, places, values)
    return made


def belongs(places, box, category):
    return places.min() >= box.low[category] - SLACK and places.max() <= box.high[category] + SLACK


def is_median(made, places, values):
    return len(values) == 2 and values[0] == values[1] and places[0] != places[1] \
        and made["first_quartile"] <= number(values[0]) <= made["third_quartile"]


def is_mean(mark):
    from matplotlib import rcParams

    return mark.get_marker() == rcParams["boxplot.meanprops.marker"]


def add_part(made, line, places, values):
    """Outliers are marks without a line, whiskers run along the axis of the values."""
    if line.get_linestyle() in ("None", "none", "", " "):
        if len(values) > 1 or not is_mean(line):
            made["outliers"] += [number(v) for v in values]
    elif len(values) == 2 and places[0] == places[1]:
        made["min"] = min(made["min"], number(values.min()))
        made["max"] = max(made["max"], number(values.max()))
