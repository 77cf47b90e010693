# SPDX-License-Identifier: Apache-2.0
"""A cold start: python3 -I .../kernel, or python3 -m silt_kernel."""
import os
import stat
import sys


def main():
    from . import fork, prepare, serve

    if is_socket(3):
        prepare(warm=True)
        fork()
        serve()
    if is_socket(5):
        prepare(warm=True, inside=True)
        fork(inside=True)
        serve()
    try:
        prepare()
    except ImportError as e:
        refuse("ipython", f"import {e.name or 'IPython'}: {e}")
    except Exception as e:
        refuse("start", f"{type(e).__name__}: {e}")
    serve()


def is_socket(fd):
    """The command line is the same: children show it as theirs. Whoever forks is asked by a socket, a context by a pipe."""
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


def refuse(code, why):
    from .wire import LINES_FD, encode

    os.write(LINES_FD, encode({"t": "failed", "code": code, "why": why}) + b"\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
