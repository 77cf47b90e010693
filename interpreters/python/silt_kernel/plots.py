# SPDX-License-Identifier: Apache-2.0
"""Plotly and Altair without a browser: a figure that is shown becomes a result with html and chart.

Plotly's own way asks for nbformat, which hardly anybody has installed.
"""
import json

from . import imports
from .bundle import CHART
from .charts import plotly, vega

FIGURE = ("plotly.basedatatypes", "BaseFigure")
ALTAIR = [(f"altair.vegalite.v{version}.api", "TopLevelMixin") for version in (4, 5, 6)]


def install(display_formatter):
    formatters = display_formatter.formatters
    formatters["text/html"].for_type_by_name(*FIGURE, html)
    formatters[CHART].for_type_by_name(*FIGURE, chart)
    formatters["text/plain"].for_type_by_name(*FIGURE, lambda figure, p, _: p.text(type(figure).__name__))
    for name in ALTAIR:
        formatters[CHART].for_type_by_name(*name, altair_chart)
    display_formatter.mimebundle_formatter.for_type_by_name(*FIGURE, lambda *_, **__: None)
    imports.after_import("plotly.basedatatypes", change_figures)
    imports.after_import("plotly.io._renderers", change_renderers)


def html(figure):
    return figure.to_html(full_html=False, include_plotlyjs="cdn")


def chart(figure):
    return plotly.chart(json.loads(figure.to_json()))


def altair_chart(made):
    try:
        return vega.chart(made.to_dict())
    except Exception:  # a chart that Altair refuses to show, too, and says why
        return None


def change_figures(basedatatypes):
    """Without a way of its own to be displayed, a figure takes that of all objects."""
    if hasattr(basedatatypes.BaseFigure, "_ipython_display_"):
        del basedatatypes.BaseFigure._ipython_display_


def change_renderers(renderers):
    """Both plotly.io.show and figure.show end here; a renderer that was asked for by name is used."""
    original = renderers.show

    def show(figure, renderer=None, *rest, **more):
        from IPython.core.display_functions import display

        if renderer is not None:
            return original(figure, renderer, *rest, **more)
        return display(figure)

    renderers.show = show
