# SPDX-License-Identifier: Apache-2.0
"""What is done before a context is known: for a cold kernel little, for a zygote all that takes time.

A zygote has one thread, runs no user code and holds no secret. Its children differ in what renew() resets.
One that is inside is a process of the sandbox's like any other; it leaves nothing on its disk.
"""
import atexit
import faulthandler
import gc
import importlib
import os
import shutil
import sys
import tempfile
import time

from . import blas, library, loaded, shell as shells, stamps, surroundings, twister
from .streams import Streams
from .wire import LINES_FD

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

SLACK_S = 0.05  # by which clocks of files and of processes may differ
FIRST_TO_GO = "1000"  # when memory is short
SCORE = "/proc/self/oom_score_adj"

ready = None  # the Prepared of this process
score = None  # inside: what children have


class Prepared:
    def __init__(self, shell, streams, warm):
        self.shell = shell
        self.streams = streams
        self.warm = warm


def prepare(warm, inside=False):
    global ready
    if inside:
        loaded.began_ns = began()
        sys.dont_write_bytecode = True
        os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="silt-")
    elif warm:
        shells.NOWHERE = "/tmp/ipython"  # a zygote's own; IPython insists on making it
    if warm:
        blas.restrict()
        os.environ["MPLBACKEND"] = "Agg"
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
        atexit.unregister(shutil.rmtree)  # of matplotlib's directory: in a child it is not there
        blas.find()
        stamps.remember()
        loaded.remember()
    if inside:
        shutil.rmtree(os.environ.pop("MPLCONFIGDIR"), ignore_errors=True)
    ready = Prepared(shell, streams, warm)
    if warm:
        surroundings.remember()
        stamps.remember_path()
        twister.find()
        faulthandler.enable(2)  # as in every kernel
        gc.collect()
        gc.freeze()  # the collector of a child does not touch, and so not copy, what it shares
        library.collapse()


def began():
    """When this process was started, or a little before: whatever has changed since may not be what it has loaded."""
    with open("/proc/self/stat", encoding="utf-8") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time_ns() - int((age_s + SLACK_S) * 1e9)


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


def open_descriptors(last):
    """But those that it was given."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found += [os.readlink(f"/proc/self/fd/{name}")] if int(name) > last else []
        except OSError:
            pass  # the listing's own
    return found


def fork(inside=False):
    """Serves the nursery, or silt-init; see interpreters/zygote.c. Returns in children only."""
    for name in (".kernel", ".user"):  # with all that they need: no child compiles it
        importlib.import_module(name, __package__)
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("a zygote must have one thread")
    others = open_descriptors(5 if inside else 3)
    if others:
        sys.exit(f"a zygote must have no files open: {others}")
    if inside:
        offer()
    gc.disable()  # nothing of the pages that the children share is touched from here on
    if (library.loaded.silt_zygote_serve_inside if inside else library.loaded.silt_zygote_serve)() != 0:
        os._exit(1)


def offer():
    """Tells siltd that there is somebody to fork from, unless it is stale already."""
    global score
    why = stamps.unsettled()
    if why:
        sys.exit(f"while it was loaded: {why}")
    with open(SCORE, encoding="utf-8") as file:
        score = file.read().strip()
    set_score(FIRST_TO_GO)
    os.write(LINES_FD, b"\n")


def is_inside():
    return score is not None


def set_score(value):
    try:
        with open(SCORE, "w", encoding="utf-8") as file:
            file.write(value)
    except OSError:
        pass


def renew():
    """In a child: what must differ from its siblings, and what was found in another root. The module random
    sees to itself."""
    gc.enable()
    sys.dont_write_bytecode = False
    if score is not None:
        set_score(score)
    tempfile._name_sequence = None
    tempfile.tempdir = None
    twister.shuffle()
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir"):
        forget = getattr(getattr(matplotlib, name, None), "cache_clear", None)
        if forget is not None:
            forget()
