# SPDX-License-Identifier: Apache-2.0
"""The JSON of a Plotly figure as `chart`: its own data, layout and config, and what kind it is."""

MIME = "application/vnd.plotly.v1+json"

KINDS = {"bar": "bar", "pie": "pie", "histogram": "histogram", "heatmap": "heatmap",
         "box": "box_and_whisker", "imshow": "heatmap"}


def chart(figure):
    if not isinstance(figure, dict):
        return None
    traces = [trace for trace in figure.get("data") or [] if isinstance(trace, dict)]
    layout = figure.get("layout") or {}
    return {"type": kind(traces), "title": text_of(layout.get("title")), "elements": traces,
            "library": "plotly", "data": figure.get("data"), "layout": layout, "config": figure.get("config")}


def kind(traces):
    if not traces:
        return "unknown"
    name = traces[0].get("type") or "scatter"
    if name in ("scatter", "scattergl"):
        return "line" if "lines" in (traces[0].get("mode") or "lines") else "scatter"
    return KINDS.get(name, "unknown")


def text_of(title):
    return title.get("text") if isinstance(title, dict) else title
