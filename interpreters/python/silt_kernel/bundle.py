# SPDX-License-Identifier: Apache-2.0
"""From what IPython made of one object (a dict of MIME types) to the fields of one result."""
import base64

from .charts import plotly, vega
from .plain import TooLarge, document, plain
from .wire import encode

CHART = "application/vnd.silt.chart"
DATA = "application/vnd.silt.data"

TEXTS = {
    "text/plain": "text",
    "text/html": "html",
    "image/svg+xml": "svg",
    "text/latex": "latex",
    "text/markdown": "markdown",
    "application/javascript": "javascript",
}
IMAGES = {"image/png": "png", "image/jpeg": "jpeg"}
VALUES = {"application/json": "json", CHART: "chart", DATA: "data"}
ORDER = ("text", "html", "png", "jpeg", "svg", "latex", "markdown", "javascript", "json", "chart", "data")

# Mention what was cut, and let the text with its note stay within the budget.
NOTE = "\n[... cut: {} characters in all]"
NOTE_ROOM = 80


class Cut(dict):
    """A `data` that holds less than the object: told like everything that is missing."""


class Fields:
    """The encoded fields of one result, each within the budget, and the names of those that are not whole."""

    def __init__(self, budget):
        self.budget = budget
        self.encoded = {}
        self.truncated = []

    def add(self, mime, value):
        if mime in TEXTS:
            self._add_text(TEXTS[mime], as_text(value))
        elif mime in IMAGES:
            self._add(IMAGES[mime], as_base64(value))
        elif mime in VALUES:
            self._add_value(VALUES[mime], value)
        elif mime == plotly.MIME:
            self._add_value("chart", plotly.chart(value))
        elif mime.startswith(vega.MIME_PREFIX):
            self._add_value("chart", vega.chart(value))

    def _add(self, name, value):
        line = encode(value)
        if len(line) > self.budget:
            self.truncated.append(name)
        else:
            self.encoded[name] = line

    def _add_text(self, name, text):
        if name == "text" and len(text) > self.budget - NOTE_ROOM:
            return self._add_cut(text)
        self._add(name, text)
        if name == "text" and name in self.truncated:  # escapes made it too long
            self.truncated.remove(name)
            self._add_cut(text)

    def _add_cut(self, text):
        room = max(0, self.budget - NOTE_ROOM)
        kept = text[:room]
        while kept and len(encode(kept)) > room:
            kept = kept[: max(0, int(len(kept) * room / len(encode(kept)) * 0.98) - 1)]
        self.encoded["text"] = encode(kept + NOTE.format(len(text)))
        self.truncated.append("text")

    def _add_value(self, name, value):
        if value is None:
            return
        try:
            made = document(value, self.budget) if name == "json" else plain(value, self.budget)
        except (TooLarge, RecursionError):
            self.truncated.append(name)
            return
        if made is not None or name != "json":
            self._add(name, made)
        if isinstance(value, Cut) and name not in self.truncated:
            self.truncated.append(name)

    def line(self, run, main):
        """The whole message, or None when there is nothing to show."""
        if not self.encoded and not self.truncated:
            return None
        parts = [b'{"t":"result","id":' + encode(run) + (b',"main":true' if main else b',"main":false')]
        parts += [b'"' + name.encode() + b'":' + self.encoded[name] for name in ORDER if name in self.encoded]
        if self.truncated:
            parts.append(b'"truncated":' + encode(self.truncated))
        return b",".join(parts) + b"}"


def as_text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):  # the lines of a notebook's cell
        return "".join(map(str, value))
    return str(value)


def as_base64(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    return "".join(as_text(value).split())


def result_line(bundle, run, main, budget):
    fields = Fields(budget)
    for mime, value in bundle.items():
        if isinstance(mime, str) and value is not None:
            fields.add(mime, value)
    return fields.line(run, main)
