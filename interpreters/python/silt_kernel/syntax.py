# SPDX-License-Identifier: Apache-2.0
"""Which cells are Python as they stand. IPython looks for its own syntax by taking every cell apart, which is half of
the work for a short one, and most of the pages that a new context copies for its first."""
import re

from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro

# Whatever one of IPython's transformers could change has one of these: an indent or an empty line at the beginning,
# escapes, escapes that are such at the beginning of a line only, prompts. And ends of lines that are not Python's.
SPECIAL = re.compile(r"\A\s|[%!?]|^\s*[,;/]|>>>|\.\.\.|In \[|[\r\v\f\x1c-\x1e\x85\u2028\u2029]", re.MULTILINE)
FIRST = re.compile(r"[\w.*]*")  # what a single line would call if it were a magic


def transformers(shell):
    """Lists, which users may add to."""
    static, dynamic = shell.input_transformer_manager, shell.prefilter_manager
    return [static.cleanup_transforms, static.line_transforms, static.token_transformers, shell.input_transformers_post,
            dynamic.transformers, dynamic.checkers]


def is_plain(shell, cell):
    """True: IPython would leave it as it is."""
    if not cell or SPECIAL.search(cell) or transformers(shell) != shell.usual_transformers:
        return False
    return "\n" in cell[:-1] or not is_called(shell, FIRST.match(cell)[0])


def is_called(shell, word):
    """`pip list`, `exit`, the name of a macro: words that are called where they are a line of their own."""
    return bool(shell.autocall) or isinstance(shell.user_ns.get(word), (IPyAutocall, Macro)) \
        or shell.find_magic(word) is not None
