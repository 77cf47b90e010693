#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_sync.py [--check]: writes _sync.py and _transport.py, the blocking twins of _async.py and _async_transport.py."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent / "silt_sandbox"
FILES = {"_async_transport.py": "_transport.py", "_async.py": "_sync.py"}
WORDS = [
    (r"async (def|for|with) ", r"\1 "), (r"\bawait ", ""), (r"\bimport asyncio\n(?!(.|\n)*^import time$)", "import time\n"),
    (r"\bimport asyncio\n", ""), (r"asyncio\.sleep", "time.sleep"), (r"_async_transport\b", "_transport"),
    (r"\bAsyncIterator\b", "Iterator"), (r"__aenter__", "__enter__"), (r"__aexit__", "__exit__"),
    (r"\b(aclose|aread|aiter_raw)\b", lambda match: match[1][1:]), (r"\b(_?)Async(?=[A-Z])", r"\1"),
    (r"_?_sync\.py is made of this file by make_sync\.py\.", "Made of _async.py by make_sync.py."),
    (r"_?_?transport\.py is made of this file by make_sync\.py\.", "Made of _async_transport.py by make_sync.py."),
]


def twin(text: str) -> str:
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


def main() -> int:
    stale = 0
    for source, target in FILES.items():
        text = twin((HERE / source).read_text())
        if "--check" not in sys.argv:
            (HERE / target).write_text(text)
        elif (HERE / target).read_text() != text:
            print(f"{target} is stale: run make_sync.py")
            stale = 1
    return stale


sys.exit(main())
