# SPDX-License-Identifier: Apache-2.0
"""One axis of a plot: its label and unit, scale, ticks, and what its numbers stand for."""
import functools
import math
import re

UNIT = re.compile(r"(?:\s\(([^()]+)\)|\[([^\[\]]+)\])\s*$")
PRECISION = 12  # digits: hides the noise of coordinates that were computed


def unit_of(label):
    found = UNIT.search(label or "")
    return (found.group(1) or found.group(2)) if found else None


def number(value):
    """A JSON number, or None for what is none."""
    value = float(value)
    if not math.isfinite(value):
        return None
    return float(f"{value:.{PRECISION}g}")


def converter_name(axis):
    get = getattr(axis, "get_converter", None)  # matplotlib 3.10 and later
    return type(get() if get else getattr(axis, "converter", None)).__name__


class Axis:
    def __init__(self, axis):
        self.axis = axis
        self.name = converter_name(axis)
        self.is_period = "Period" in self.name  # pandas' own
        self.is_date = "Date" in self.name or self.is_period
        self.categories = self._categories()

    def _categories(self):
        mapping = getattr(self.axis.units, "_mapping", None) if "Category" in self.name else None
        return {index: str(label) for label, index in mapping.items()} if mapping else {}

    def value(self, v):
        """What a coordinate stands for: an ISO date, a category, a number."""
        if v is None or isinstance(v, str):
            return v
        if hasattr(v, "start_time"):
            return v.start_time.isoformat()
        if hasattr(v, "isoformat"):
            return v.isoformat() if v == v else None
        if type(v).__name__ == "datetime64":
            return str(v.astype("datetime64[s]")) if v == v else None
        return self._of_number(v)

    def _of_number(self, v):
        try:
            made = number(v)
        except (TypeError, ValueError):
            return str(v)
        if made is None:
            return None
        if self.categories:
            return self.categories.get(round(made), made)
        if self.is_date:
            return self._date(made)
        return int(v) if isinstance(v, int) and not isinstance(v, bool) else made

    def _date(self, v):
        if self.is_period:
            import pandas

            frequency = getattr(self.axis.axes, "freq", None)
            return v if frequency is None else pandas.Period(ordinal=int(v), freq=frequency).start_time.isoformat()
        from matplotlib.dates import num2date

        return num2date(v).replace(tzinfo=None).isoformat()

    def values(self, data):
        """Many at once; plain numbers, the usual case, without a call for each."""
        import numpy

        array = numpy.ma.filled(data, numpy.nan) if isinstance(data, numpy.ma.MaskedArray) else numpy.asarray(data)
        if array.dtype.kind in "iu" and not (self.categories or self.is_date):
            return array.tolist()
        if array.dtype.kind == "f" and not (self.categories or self.is_date):
            return [v if math.isfinite(v) else None for v in array.tolist()]
        return [self.value(v) for v in array]

    def ticks(self):
        return [self.value(t) for t in self.axis.get_majorticklocs()]

    def tick_labels(self):
        return [label.get_text() for label in self.axis.get_ticklabels()]

    def label_at(self):
        """{coordinate: text} of the ticks that have a text."""
        labels = zip(self.axis.get_majorticklocs(), self.tick_labels())
        return {round(float(at), 6): text for at, text in labels if text}

    def has_own_labels(self):
        """Somebody wrote the labels: they are names, not numbers."""
        from matplotlib.ticker import FixedFormatter, FuncFormatter

        formatter = self.axis.get_major_formatter()
        listed = isinstance(formatter, FuncFormatter) and isinstance(formatter.func, functools.partial)  # set_ticklabels
        return bool(self.categories) or listed or isinstance(formatter, FixedFormatter)

    def scale(self):
        if self.is_date:
            return "datetime"
        if self.categories or (self.axis.get_scale() == "linear" and self._counts_names()):
            return "categorical"
        return self.axis.get_scale()

    def _counts_names(self):
        """set_xticks(range(n), names) is a categorical axis in disguise; seaborn's begin at 0.5, boxes at 1."""
        places = [float(t) for t in self.axis.get_majorticklocs()]
        return bool(places) and self.has_own_labels() and 0 <= places[0] <= 1 \
            and all(b - a == 1 for a, b in zip(places, places[1:]))


class Plane:
    """The two axes of one plot."""

    def __init__(self, ax):
        self.ax = ax
        self.x = Axis(ax.xaxis)
        self.y = Axis(ax.yaxis)

    def describe(self, chart, ticks):
        for key, axis, label in (("x", self.x, self.ax.get_xlabel()), ("y", self.y, self.ax.get_ylabel())):
            chart[key + "_label"] = label or None
            chart[key + "_unit"] = unit_of(label)
            if ticks:
                chart[key + "_ticks"] = axis.ticks()
                chart[key + "_tick_labels"] = axis.tick_labels()
                chart[key + "_scale"] = axis.scale()


def swap_labels(chart):
    """Horizontal bars and boxes: the categories are x for a reader, though they stand on the y axis."""
    for name in ("label", "unit"):
        chart["x_" + name], chart["y_" + name] = chart["y_" + name], chart["x_" + name]
