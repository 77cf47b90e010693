# SPDX-License-Identifier: Apache-2.0
"""The specification of an Altair chart as `chart`."""

MIME_PREFIX = "application/vnd.vegalite."

KINDS = {"line": "line", "area": "line", "trail": "line", "bar": "bar", "point": "scatter", "circle": "scatter",
         "square": "scatter", "tick": "scatter", "arc": "pie", "rect": "heatmap", "boxplot": "box_and_whisker"}
COMPOUND = ("concat", "hconcat", "vconcat", "facet", "repeat")


def chart(spec):
    if not isinstance(spec, dict):
        return None
    return {"type": kind(spec), "title": text_of(spec.get("title")), "elements": [], "library": "altair", "data": spec}


def kind(spec):
    if any(name in spec for name in COMPOUND):
        return "superchart"
    layers = [layer for layer in spec.get("layer") or [] if isinstance(layer, dict)]
    mark = (layers[0] if layers else spec).get("mark")
    name = mark.get("type") if isinstance(mark, dict) else mark
    if name == "bar" and binned(spec.get("encoding")):
        return "histogram"
    return KINDS.get(name, "unknown")


def binned(encoding):
    channels = encoding.values() if isinstance(encoding, dict) else []
    return any(isinstance(channel, dict) and channel.get("bin") for channel in channels)


def text_of(title):
    text = title.get("text") if isinstance(title, dict) else title
    return " ".join(map(str, text)) if isinstance(text, list) else text
