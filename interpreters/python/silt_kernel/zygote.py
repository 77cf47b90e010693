# SPDX-License-Identifier: Apache-2.0
"""What is done before a context is known: for a cold kernel little, for a zygote all that takes time.

A zygote has one thread, runs no user code and holds no secret. Its children differ in what renew() resets.
"""
import atexit
import faulthandler
import gc
import importlib
import os
import shutil
import sys
import tempfile

from . import blas, library, loaded, shell as shells, stamps, surroundings, twister
from .streams import Streams

PRELOADED = ("numpy", "pandas", "matplotlib", "matplotlib.pyplot", "PIL.Image", "PIL.PngImagePlugin",
             "pandas.io.formats.format", "pandas.io.formats.html", "pandas.plotting",
             "asyncio", "subprocess", "tempfile", "random", "threading", "inspect", "getpass", "urllib.request",
             "csv", "re", "math", "statistics", "collections", "itertools", "functools", "datetime", "time")

# One of everything that is slow the first time; the traceback alone loads pygments and stack_data.
WARM_CELLS = (
    "1 + 1",
    "print(1)",
    "1 / 0",
    "def f(:",
    "{'a': [1, 2.5, None]}",
    "%time 1",
    "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y'], 'c': pd.to_datetime(['2024-01-01', '2024-01-02'])})",
    "import pandas as pd\npd.Series([1]).sum()",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2], label='a'); plt.title('t'); plt.legend(); plt.show()",
    "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])",
)

ready = None  # the Prepared of this process


class Prepared:
    def __init__(self, shell, streams, warm):
        self.shell = shell
        self.streams = streams
        self.warm = warm


def prepare(warm):
    global ready
    if warm:
        blas.restrict()
        os.environ["MPLBACKEND"] = "Agg"
        shells.NOWHERE = "/tmp/ipython"  # a zygote's own; IPython insists on making it
    streams = Streams()
    shell = shells.make(streams)
    if warm:
        stamps.remember_early()
        sys.meta_path.append(loaded.Missed)
        preload()
        rehearse(shell)
        sys.meta_path.remove(loaded.Missed)
        close_devnull()
        close_fonts()
        atexit.unregister(shutil.rmtree)  # of matplotlib's folder: in a child it is not there
        blas.find()
        stamps.remember()
        loaded.remember()
    ready = Prepared(shell, streams, warm)
    if warm:
        surroundings.remember()
        stamps.remember_path()
        twister.find()
        faulthandler.enable(2)  # as in every kernel
        gc.collect()
        gc.freeze()  # the collector of a child does not touch, and so not copy, what it shares
        library.collapse()


def preload():
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except Exception:  # an image without it, or with a broken one
            pass
    for name in ("figure", "line", "bar", "pie", "box", "heat"):
        importlib.import_module(f".charts.{name}", __package__)


def rehearse(shell):
    """Runs the cells for nobody."""
    from . import bundle, figures

    shell.sink = lambda data, main: bundle.result_line(data, 0, main, 1 << 20)
    module = {name: value for name, value in shell.user_ns.items() if name.startswith("__")}
    out, err = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = sys.stderr = nowhere
        for cell in WARM_CELLS:
            shell.run_cell(cell, store_history=True)
            figures.show_open()
        shell.print_held()
    sys.stdout, sys.stderr = out, err
    shell.sink = None
    shell.reset(new_session=True)
    shell.user_ns.update(module, _="", __="", ___="")  # as at the start: reset() leaves them out
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


def close_devnull():
    """IPython keeps one open and closes it at exit: by then, in a child, the number is somebody else's."""
    import IPython.utils.io

    devnull = getattr(IPython.utils.io, "devnull", None)
    if devnull is not None:
        atexit.unregister(devnull.close)
        devnull.close()


def close_fonts():
    """Matplotlib keeps the files of fonts open, and lets go of them in every child: by then the numbers are
    somebody else's."""
    manager = sys.modules.get("matplotlib.font_manager")
    forget = getattr(getattr(manager, "_get_font", None), "cache_clear", None)
    if forget is not None:
        forget()
    gc.collect()


def open_descriptors():
    """But the four of every zygote."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found += [os.readlink(f"/proc/self/fd/{name}")] if int(name) > 3 else []
        except OSError:
            pass  # the listing's own
    return found


def fork():
    """Serves the nursery; see interpreters/zygote.c. Returns in children only."""
    for name in (".kernel", ".user"):  # with all that they need: no child compiles it
        importlib.import_module(name, __package__)
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("a zygote must have one thread")
    if open_descriptors():
        sys.exit(f"a zygote must have no files open: {open_descriptors()}")
    gc.disable()  # nothing of the pages that the children share is touched from here on
    if library.loaded.silt_zygote_serve() != 0:
        os._exit(1)


def renew():
    """In a child: what must differ from its siblings, and what was found in another root. The module random
    sees to itself."""
    gc.enable()
    tempfile._name_sequence = None
    tempfile.tempdir = None
    twister.shuffle()
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir"):
        forget = getattr(getattr(matplotlib, name, None), "cache_clear", None)
        if forget is not None:
            forget()
