# SPDX-License-Identifier: Apache-2.0
"""A cold start: python3 -I .../kernel, or python3 -m silt_kernel."""
import os
import socket
import sys

CONTROL_FD = 3


def main():
    from . import fork, prepare, serve

    if is_zygote():
        prepare(warm=True)
        fork()
        serve(CONTROL_FD)
    try:
        prepare()
    except ImportError as e:
        refuse("ipython", f"import {e.name or 'IPython'}: {e}")
    except Exception as e:
        refuse("start", f"{type(e).__name__}: {e}")
    serve(CONTROL_FD)


def is_zygote():
    """The command line is the same: children show it as theirs."""
    with socket.socket(fileno=os.dup(CONTROL_FD)) as control:
        return control.type == socket.SOCK_SEQPACKET


def refuse(code, why):
    from .wire import encode

    os.write(CONTROL_FD, encode({"t": "failed", "code": code, "why": why}) + b"\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
