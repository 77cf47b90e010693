# SPDX-License-Identifier: Apache-2.0
"""DataFrames and Series as `data`: {column: [values]}, and a Series as html, too."""
from . import imports
from .bundle import Cut

CELLS_MAX = 200_000
COLUMNS_MAX = 2_000  # pandas takes a tenth of a millisecond for each
COLUMNS_SHOWN = 20  # as in a notebook


def install():
    imports.after_import("pandas.core.config_init", change_options)


def change_options(config_init):
    """Without a notebook's kernel pandas takes us for a terminal: it would leave out columns that do not fit
    in a line, and format each frame twice to find them."""
    if config_init.cf.get_option("display.max_columns") == 0:
        config_init.cf.set_option("display.max_columns", COLUMNS_SHOWN)


def frame_data(frame):
    rows, columns = frame.shape
    width = min(columns, COLUMNS_MAX)
    kept = min(rows, CELLS_MAX // max(1, width))
    made = {}
    for position, name in enumerate(unique_names(frame.columns[:width])):
        made[name] = column_values(frame.iloc[:kept, position])
    return Cut(made) if kept < rows or width < columns else made


def series_data(series):
    kept = min(len(series), CELLS_MAX)
    made = {str(0 if series.name is None else series.name): column_values(series.iloc[:kept])}
    return Cut(made) if kept < len(series) else made


def series_html(series):
    return series.to_frame(name=0 if series.name is None else series.name)._repr_html_()


def polars_data(frame):
    rows, columns = frame.shape
    kept = min(rows, CELLS_MAX // max(1, columns))
    made = frame.head(kept).to_dict(as_series=False)
    return Cut(made) if kept < rows else made


def unique_names(columns):
    """Columns may share a name; the second `a` becomes `a.1`, as pandas reads it from a CSV, unless there is one."""
    names = [str(column) for column in columns]
    taken, counts = set(names), {}
    for name in names:
        count = counts.get(name, 0)
        unique = name
        while count and unique in taken:
            unique = f"{name}.{count}"
            count += 1
        taken.add(unique)
        counts[name] = max(count, 1)
        yield unique


def column_values(series):
    """Python values; what JSON lacks (NaN, dates) is made plain later."""
    if series.dtype.kind in "mM" and not hasattr(series.dtype, "tz"):
        text = series.astype(str) if series.dtype.kind == "m" else series.map(lambda v: v.isoformat() if v == v else None)
        return [None if v == "NaT" else v for v in text.tolist()]
    return series.tolist()
