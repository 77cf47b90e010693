# SPDX-License-Identifier: Apache-2.0
"""Any Python value as one that JSON knows, within a budget.

NaN and Infinity become null, dates ISO text, sets lists, bytes text, integers beyond 64 bits text. What
has no such form becomes its repr. Too large, too deep or cyclic: TooLarge.
"""
import collections
import datetime
import decimal
import enum
import fractions
import math
import os
import uuid
from collections.abc import Mapping

DEPTH_MAX = 40  # silt's own parser stops at 64, and the value lies inside an event
REPR_MAX = 1000
INT_MAX = 2**63 - 1
ITEM_COST = 2

TEXTUAL = (datetime.timedelta, decimal.Decimal, fractions.Fraction, complex, uuid.UUID, os.PathLike)
SEQUENCES = (list, tuple, collections.deque, range, type({}.keys()), type({}.values()))


class TooLarge(ValueError):
    pass


class Plain:
    def __init__(self, budget):
        self.left = budget
        self.known = 0
        self.unknown = 0

    def value(self, v, depth=0):
        kind = type(v)
        if kind is str:
            self._spend(len(v))
            self.known += 1
            return v
        if v is None or kind is bool:
            return self._leaf(v)
        if kind is int:
            return self._integer(v)
        if kind is float:
            return self._leaf(v if math.isfinite(v) else None)
        if depth >= DEPTH_MAX:
            raise TooLarge("nested too deep")
        return self._compound(v, depth + 1)

    def _spend(self, size):
        self.left -= size + ITEM_COST
        if self.left < 0:
            raise TooLarge("over budget")

    def _leaf(self, v):
        self._spend(1)
        self.known += 1
        return v

    def _integer(self, v):
        if -INT_MAX <= v <= INT_MAX:
            return self._leaf(v)
        self._spend(v.bit_length() // 3)
        return self._text(hex(v) if v.bit_length() > 10000 else str(v))

    def _text(self, text):
        self._spend(len(text))
        self.known += 1
        return text

    def _compound(self, v, depth):
        if isinstance(v, Mapping):
            self._spend(0)
            return {self._key(k): self.value(item, depth) for k, item in list(v.items())}
        if isinstance(v, SEQUENCES):
            return self._list(v, depth)
        if isinstance(v, (set, frozenset)):
            return self._list(in_order(v), depth)
        return self._scalar(v, depth)

    def _list(self, items, depth):
        self._spend(0)
        return [self.value(item, depth) for item in items]

    def _key(self, k):
        if isinstance(k, enum.Enum):
            k = k.value
        if k is None or isinstance(k, bool):
            return self._text({None: "null", True: "true", False: "false"}[k])
        return self._text(str.__str__(k) if isinstance(k, str) else str(k))

    def _scalar(self, v, depth):
        """Subclasses of the simple types, dates, and what numpy and pandas have instead of them."""
        if isinstance(v, enum.Enum):
            return self.value(v.value, depth)
        if isinstance(v, str):
            return self._text(str.__str__(v))
        if isinstance(v, int):
            return self._integer(int(v))
        if isinstance(v, float):
            return self.value(float(v), depth)
        if isinstance(v, (bytes, bytearray, memoryview)):
            self._spend(len(v))
            return self._text(bytes(v).decode("utf-8", "backslashreplace"))
        if type(v).__name__ in ("NaTType", "NAType"):
            return self._leaf(None)
        if isinstance(v, TEXTUAL):
            return self._text(str(v))
        return self._foreign(v, depth)

    def _foreign(self, v, depth):
        if callable(getattr(v, "isoformat", None)):
            return self._text(str(v.isoformat()))
        if type(v).__module__ == "numpy":
            return self._numpy(v, depth)
        if type(v).__module__.startswith("pandas."):
            return self._pandas(v, depth)
        return self._stranger(v)

    def _pandas(self, v, depth):
        if not hasattr(v, "tolist"):
            return self._text(str(v))  # Period, Interval
        self._spend(len(v) * ITEM_COST)
        return self._list(v.tolist(), depth)

    def _numpy(self, v, depth):
        if type(v).__name__ in ("datetime64", "timedelta64"):
            return self._text(str(v)) if v == v else self._leaf(None)
        size = getattr(v, "size", 1)
        if size * ITEM_COST > self.left:
            raise TooLarge("over budget")
        return self.value(v.tolist(), depth) if hasattr(v, "tolist") else self._stranger(v)

    def _stranger(self, v):
        text = repr(v)[:REPR_MAX]
        self._spend(len(text))
        self.unknown += 1
        return text


def in_order(items):
    try:
        return sorted(items)
    except TypeError:
        return list(items)


def plain(value, budget=1 << 26):
    return Plain(budget).value(value)


def document(value, budget):
    """For results that are shown as JSON: None when nothing in it has a JSON form."""
    maker = Plain(budget)
    made = maker.value(value)
    return None if maker.unknown and not maker.known else made
