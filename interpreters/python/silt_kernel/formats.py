# SPDX-License-Identifier: Apache-2.0
"""What IPython's formatters do not know: `json` of dicts and lists, `data` of tables, `chart` of figures."""
import functools

from IPython.core import formatters as known
from IPython.core.formatters import BaseFormatter
from traitlets import ObjectName, Unicode

from . import figures, table
from .bundle import CHART, DATA

PANDAS = ("pandas.core.frame", "DataFrame"), ("pandas.core.series", "Series")
FIGURE = ("matplotlib.figure", "Figure")


# Types of which IPython knows one or two formats: asking all fourteen formatters takes half of a short cell's time.
TEXT_ONLY = frozenset(("text/plain",))
TEXT_AND_JSON = frozenset(("text/plain", "application/json"))
FEW = {**dict.fromkeys((int, float, str, bool, complex, bytes, tuple, set, frozenset, range), TEXT_ONLY),
       **dict.fromkeys((dict, list), TEXT_AND_JSON)}


class ChartFormatter(BaseFormatter):
    format_type = Unicode(CHART)
    print_method = ObjectName("_repr_silt_chart_")
    _return_type = (dict,)


class DataFormatter(BaseFormatter):
    format_type = Unicode(DATA)
    print_method = ObjectName("_repr_silt_data_")
    _return_type = (dict,)


def formats_of(display_formatter, value):
    """The only formats that a value of this type has, or None: all are to be asked."""
    few = FEW.get(type(value))
    if few is None or any(type(value) in formatter.type_printers
                          for mime, formatter in display_formatter.formatters.items() if mime not in few):
        return None
    return few


def undress(kind):
    """IPython's decorator looks at the signature of a formatter each time that it is called. The same without that."""
    guard = getattr(known.catch_format_error, "__wrapped__", None)
    method = getattr(vars(kind).get("__call__"), "__wrapped__", None)
    if guard is None or method is None:
        return

    @functools.wraps(method)
    def call(self, *values, **options):
        __tracebackhide__ = True  # for IPython: this frame tells the user nothing
        return guard(method, self, *values, **options)

    kind.__call__ = call


def install(display_formatter, drawer):
    for kind in (known.BaseFormatter, known.PlainTextFormatter, known.IPythonDisplayFormatter, known.MimeBundleFormatter):
        undress(kind)
    formatters = display_formatter.formatters
    for kind in (ChartFormatter, DataFormatter):
        made = kind(parent=display_formatter)
        formatters[made.format_type] = made
    # The values themselves: they are made plain within the budget, when the result is.
    formatters["application/json"].for_type(dict, lambda value: value)
    formatters["application/json"].for_type(list, lambda value: value)
    install_tables(formatters)
    install_figures(formatters, drawer)


def install_tables(formatters):
    table.install()
    frame, series = PANDAS
    formatters[DATA].for_type_by_name(*frame, table.frame_data)
    formatters[DATA].for_type_by_name(*series, table.series_data)
    formatters["text/html"].for_type_by_name(*series, table.series_html)
    formatters[DATA].for_type_by_name("polars.dataframe.frame", "DataFrame", table.polars_data)


def install_figures(formatters, drawer):
    for mime, draw in (("image/png", drawer.png), ("image/svg+xml", drawer.svg), ("image/jpeg", drawer.jpeg)):
        formatters[mime].for_type_by_name(*FIGURE, draw)
    formatters[CHART].for_type_by_name(*FIGURE, figures.chart)
