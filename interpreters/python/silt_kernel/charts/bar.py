# SPDX-License-Identifier: Apache-2.0
"""Bars and histograms: elements {label, group, value}; a histogram's also have `bin`: [from, to]."""
from .axis import Plane, number, swap_labels
from .line import label_or, line_series


class Bars:
    """One container: the bars of one group."""

    def __init__(self, container, horizontal):
        self.container = container
        self.horizontal = horizontal

    def spans(self):
        """[(from, to, value)] along the axis of the categories."""
        if self.horizontal:
            return [(r.get_y(), r.get_y() + r.get_height(), r.get_width()) for r in self.container]
        return [(r.get_x(), r.get_x() + r.get_width(), r.get_height()) for r in self.container]

    def name_of_first(self):
        """hist() names the first bar instead of the container; bar() with a list of names names all of them."""
        first, *others = [label_or(bar, None) for bar in self.container]
        return None if any(others) else first

    def touch(self):
        spans = self.spans()
        slack = 1e-6 * max(abs(to - start) for start, to, _ in spans)
        return len(spans) > 1 and all(abs(a[1] - b[0]) <= slack for a, b in zip(spans, spans[1:]))


def is_horizontal(container):
    return getattr(container, "orientation", None) == "horizontal"


def fill_bars(ax, chart, containers, lines):
    horizontal = is_horizontal(containers[0])
    groups = [Bars(container, horizontal) for container in containers]
    plane = Plane(ax)
    axis = plane.y if horizontal else plane.x
    plane.describe(chart, ticks=False)
    if horizontal:
        swap_labels(chart)
    if all(group.touch() for group in groups) and not axis.has_own_labels() and not axis.is_date:
        chart["type"] = "histogram"
    for i, group in enumerate(groups):
        name = label_or(group.container, group.name_of_first() or f"Group {i}")
        chart["elements"] += elements(group, name, axis, chart["type"] == "histogram")
    over = [line for line in lines if not is_whisker(line, horizontal)]
    if over:
        chart["lines"] = line_series(over, plane)


def is_whisker(line, horizontal):
    """The error of a bar, as seaborn draws it: two points, one above the other."""
    places = line.get_ydata() if horizontal else line.get_xdata()
    return len(places) == 2 and places[0] == places[1]


def elements(group, name, axis, histogram):
    spans = group.spans()
    if histogram:
        return [bin_element(name, start, to, value) for start, to, value in spans]
    labels = labels_of(spans, axis)
    return [{"label": label, "group": name, "value": number(value)} for label, (_, _, value) in zip(labels, spans)]


def bin_element(name, start, to, value):
    return {"label": f"{(start + to) / 2:g}", "group": name, "value": number(value), "bin": [number(start), number(to)]}


def labels_of(spans, axis):
    """The tick below each bar; grouped bars stand beside theirs, but in the same order."""
    at_tick = axis.label_at()
    centers = [(start + to) / 2 for start, to, _ in spans]
    named = axis.has_own_labels()
    names = [at_tick.get(round(float(center), 6)) for center in centers]
    if named and not all(names) and len(at_tick) == len(spans):
        return list(at_tick.values())
    return [text if text and (named or not axis.is_date) else label(center, axis) for text, center in zip(names, centers)]


def label(center, axis):
    value = axis.value(center)
    return value if isinstance(value, str) else f"{center:g}"


def step_bins(polygon):
    """hist(histtype="step"): the outline goes up and down at each edge of the bins. [(from, to, value)]"""
    xy = polygon.get_xy()
    if len(xy) < 4:
        return []
    found = []
    for i in range(1, len(xy) - 2, 2):
        (start, value), (to, same) = xy[i], xy[i + 1]
        if value != same or to <= start:
            break
        found.append((start, to, value))
    return found


def fill_steps(ax, chart, polygons):
    Plane(ax).describe(chart, ticks=False)
    for i, polygon in enumerate(polygons):
        name = label_or(polygon, f"Group {i}")
        chart["elements"] += [bin_element(name, *span) for span in step_bins(polygon)]
