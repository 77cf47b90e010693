# SPDX-License-Identifier: Apache-2.0
"""A cold start: python3 -I .../kernel, or python3 -m silt_kernel."""
import os
import sys

CONTROL_FD = 3


def main():
    from . import prepare, serve

    try:
        prepare()
    except ImportError as e:
        refuse("ipython", f"import {e.name or 'IPython'}: {e}")
    except Exception as e:
        refuse("start", f"{type(e).__name__}: {e}")
    serve(CONTROL_FD)


def refuse(code, why):
    from .wire import encode

    os.write(CONTROL_FD, encode({"t": "failed", "code": code, "why": why}) + b"\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
