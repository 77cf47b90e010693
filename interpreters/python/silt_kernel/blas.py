# SPDX-License-Identifier: Apache-2.0
"""OpenBLAS's threads. A zygote must have one thread, and a new worker spins for milliseconds: a context
gets them after the first cell that shows that it uses numpy."""
import ctypes
import os
import sys
from types import ModuleType

USERS = {"numpy", "pandas", "scipy", "sklearn", "statsmodels"}
SETTERS = ("openblas_set_num_threads", "scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads",
           "openblas_set_num_threads64_")
LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")

setter = None  # found before the fork


def restrict():
    for name in LIMITS:
        os.environ[name] = "1"


def find():
    global setter
    if "numpy" not in sys.modules:
        return
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "openblas" in line}
    for path in paths:
        setter = setter or setter_in(path)


def setter_in(path):
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    return next((getattr(library, name) for name in SETTERS if hasattr(library, name)), None)


def lift(namespace):
    """True when there is nothing left to do."""
    if setter is None:
        return True
    if not any(isinstance(v, ModuleType) and v.__name__.split(".")[0] in USERS for v in list(namespace.values())):
        return False
    count = wanted()
    if count > 1:
        setter(count)
    return True


def wanted():
    for name in LIMITS:
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    return len(os.sched_getaffinity(0))
