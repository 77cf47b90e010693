# SPDX-License-Identifier: Apache-2.0
"""Exceptions as `error` messages: bounded, without colours, whatever the exception's own methods do."""
import builtins
import os
import re
import traceback

HERE = os.path.dirname(__file__) + os.sep
LINES_MAX = 400
LINE_MAX = 4000
VALUE_MAX = 1 << 16
INNER_MAX = 15  # exceptions of a group
GROUPS = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11
ANSI = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")


def name_of(exc):
    return str(type(exc).__name__)


def value_of(exc):
    try:
        if isinstance(exc, SyntaxError) and exc.msg:
            return cut(f"{exc.msg} (line {exc.lineno})" if exc.lineno else str(exc.msg), VALUE_MAX)
        return cut(str(exc), VALUE_MAX)
    except Exception as e:
        return f"<its text cannot be made: {type(e).__name__}>"


def cut(text, room):
    return text if len(text) <= room else f"{text[:room]}... ({len(text)} characters)"


def tidy(lines):
    """Lines as the contract has them: one per entry, plain, and not more than a reader can use."""
    split = [cut(line, LINE_MAX) for block in lines for line in ANSI.sub("", str(block)).split("\n")]
    while split and not split[-1]:
        split.pop()
    if len(split) <= LINES_MAX:
        return split
    half = LINES_MAX // 2
    return split[:half] + [f"[... {len(split) - 2 * half} lines left out ...]"] + split[-half:]


def plain_traceback(exc):
    """When IPython did not make one: an interrupt came meanwhile. Frames of ours tell the user nothing."""
    try:
        made = traceback.TracebackException(type(exc), exc, exc.__traceback__, limit=-50)
        chain = [made]
        while chain:
            one = chain.pop()
            one.stack = traceback.StackSummary.from_list(frame for frame in one.stack if not frame.filename.startswith(HERE))
            chain += [other for other in (one.__cause__, one.__context__) if other is not None]
        return list(made.format())
    except Exception:
        return [f"{name_of(exc)}: {value_of(exc)}"]


def left_out(exc, shown):
    """What IPython does not show before its later versions: notes, and the exceptions of a group."""
    try:
        lines = [str(note) for note in getattr(exc, "__notes__", None) or ()]
        lines = [line for line in tidy(lines) if line not in shown]
        group = exc.exceptions if isinstance(exc, GROUPS) else ()
        if not any(f"{name_of(inner)}: " in line for inner in group[:1] for line in shown):
            for i, inner in enumerate(group[:INNER_MAX], 1):
                lines += [f"{i} of {len(group)}:", "".join(plain_traceback(inner)).rstrip()]
        return tidy(lines)
    except Exception:
        return []


def line_of(exc, cell_name):
    """The line of the cell in which it happened, if it did."""
    if isinstance(exc, SyntaxError) and exc.filename == cell_name:
        return exc.lineno
    found = None
    tb = exc.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == cell_name:
            found = tb.tb_lineno
        tb = tb.tb_next
    return found


def message(exc, run, lines, cell_name):
    shown = tidy(lines if lines is not None else plain_traceback(exc))
    made = {"t": "error", "id": run, "ename": name_of(exc), "evalue": value_of(exc), "traceback": shown + left_out(exc, shown)}
    line = line_of(exc, cell_name)
    if isinstance(line, int):
        made["line"] = line
    return made


def brief(exc, run, lines=None):
    """Calls nothing that belongs to the exception: for one whose own methods may have had to be interrupted."""
    lines = tidy(lines or [name_of(exc)])
    _, _, value = lines[-1].partition(": ")
    return {"t": "error", "id": run, "ename": name_of(exc), "evalue": value, "traceback": lines}
