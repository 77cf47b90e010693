# SPDX-License-Identifier: Apache-2.0
"""IPython's shell without a terminal, without files of its own and without threads."""
import atexit
import sys
import warnings

import IPython
from IPython.core import interactiveshell
from IPython.core.autocall import ExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from traitlets import Type, observe
from traitlets.config import Config

from . import command, failure, figures, formats, plots, syntax
from .interrupts import Again

NOWHERE = "/nonexistent/ipython"
SEQUENCE_MAX = 1000  # elements of a container that its text shows


class Hook(DisplayHook):
    """The value of a cell's last expression."""

    def start_displayhook(self):
        self.shell.main_depth += 1

    def write_output_prompt(self):
        pass

    def compute_format_data(self, result):
        __tracebackhide__ = True  # for IPython: these frames tell the user nothing
        formatter = self.shell.display_formatter
        made = formatter.format(result, include=formats.formats_of(formatter, result))
        if not made[0] and self.shell.held_traceback is not None:
            raise self.shell.held_traceback[0]  # there is nothing to show but why
        return made

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.publish(format_dict)

    def finish_displayhook(self):
        pass

    def __call__(self, result=None):
        __tracebackhide__ = True
        before = self.shell.main_depth
        try:
            super().__call__(result)
        finally:
            self.shell.main_depth = before

    def quiet(self):
        try:
            if ";" not in self.shell.history_manager.input_hist_parsed[-1]:
                return False  # most cells: nothing has to be taken apart
            return super().quiet()
        except Exception:  # tokenize does not understand every cell that compiles
            return False


class Publisher(DisplayPublisher):
    """display(...)"""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
        self.shell.publish(data)

    def clear_output(self, wait=False):
        """What was sent is sent."""


class Compiler(CachingCompiler):
    cell_name = None

    def get_code_name(self, raw_code, transformed_code, number):
        """As IPython's, without its SHA-1: what differs must have another name, in this process."""
        return f"<ipython-input-{number}-{hash(transformed_code) & 0xFFFFFFFFFFFF:012x}>"

    def cache(self, transformed_code, number=0, raw_code=None):
        self.cell_name = super().cache(transformed_code, number, raw_code)
        return self.cell_name


class Leave(ExitAutocall):
    """exit, exit(), exit(3), quit: as in a script, the rest of the cell does not run."""

    def __call__(self, status=None):
        raise SystemExit(status)


class NoProfile(ProfileDir):
    """A place for a profile that is never made: cells find no new directory in their home."""

    @observe("location")
    def _location_changed(self, change):
        pass

    def check_dirs(self):
        pass


class Shell(InteractiveShell):
    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)
    compiler_class = Type(Compiler)
    sink = None  # of the kernel: result(bundle, main)
    streams = None
    interrupts = None
    held_traceback = None  # (exception, lines): shown, but not known yet to be the cell's own
    main_depth = 0  # above 0 while the last expression is shown
    usual_transformers = None

    def publish(self, bundle):
        if self.sink is not None:
            self.sink(bundle, self.main_depth > 0)

    def showtraceback(self, *args, **options):
        """Without an end of its own: an interrupt leaves it out."""
        if self.interrupts is None:
            return super().showtraceback(*args, **options)
        try:
            self.interrupts.kind = Again
            if not self.interrupts.came or self._is_told(sys.exc_info()[1]):
                super().showtraceback(*args, **options)
        except Again:
            pass
        finally:
            self.interrupts.kind = KeyboardInterrupt

    def _is_told(self, exc):
        """After an interrupt: that is told, and not what became of the task that it ended."""
        if isinstance(exc, KeyboardInterrupt):
            self.interrupts.leave_traceback(exc)
        return type(exc).__name__ != "CancelledError"

    def _showtraceback(self, etype, evalue, stb):
        if self.held_traceback is not None and self.held_traceback[0] is not evalue:
            self.print_held()
        self.held_traceback = (evalue, stb if isinstance(stb, list) else [str(stb)])

    def show_usage_error(self, exc):
        self._showtraceback(type(exc), exc, [f"UsageError: {exc}"])

    def take_traceback(self, exc):
        """The lines made for exc; those of another exception (a broken repr, %tb) go to stderr."""
        held = self.held_traceback
        if held is not None and held[0] is exc:
            self.held_traceback = None
            return held[1]
        self.print_held()
        return None

    def print_held(self):
        held, self.held_traceback = self.held_traceback, None
        if held is not None:
            print("\n".join(failure.tidy(held[1])), file=sys.stderr)

    def transform_cell(self, raw_cell):
        if not syntax.is_plain(self, raw_cell):
            return super().transform_cell(raw_cell)
        return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"

    def should_run_async(self, raw_cell, *, transformed_cell=None, **options):
        """Without one of these words it cannot be, and need not be compiled to find out."""
        cell = raw_cell if transformed_cell is None else transformed_cell
        if "await" not in cell and "async" not in cell:
            return False
        return super().should_run_async(raw_cell, transformed_cell=transformed_cell, **options)

    def system(self, cmd):
        cmd = self.var_expand(cmd, depth=1)
        self.user_ns["_exit_code"] = command.run(cmd, self.streams)

    system_piped = system_raw = system

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        """%matplotlib inline, and its kin: figures are results anyway."""
        return "inline", "agg"

    def ask_exit(self):
        raise SystemExit(0)

    def _exiter_default(self):
        return Leave(self)

    def init_io(self):
        pass

    @observe("ipython_dir")
    def _ipython_dir_changed(self, change):
        """Not made."""

    def init_ipython_dir(self, ipython_dir):
        self.ipython_dir = NOWHERE

    def init_profile_dir(self, profile_dir):
        self.profile_dir = NoProfile(location=self.ipython_dir)

    def init_pickleshare(self):
        self.db = {}

    init_database = init_pickleshare


def settings():
    c = Config()
    c.HistoryManager.enabled = False  # no sqlite file, no thread that writes it
    c.InteractiveShell.colors = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    c.InteractiveShell.ast_node_interactivity = "last_expr"
    c.InteractiveShell.banner1 = ""
    c.InteractiveShell.autoindent = False
    c.PlainTextFormatter.max_seq_length = SEQUENCE_MAX
    return c


def page(_, data, start=0, **__):
    """`name?` prints: there is nobody to turn pages."""
    text = data.get("text/plain", "") if isinstance(data, dict) else data
    print("\n".join(str(text).splitlines()[start:]))


def without_database(_):
    """What %store and bookmarks would keep between contexts, in the place of a directory on the disk."""
    return {}


def make(streams):
    interactiveshell.PickleShareDB = without_database  # until IPython 8.6 there is no method to replace
    made = Shell.instance(config=settings())
    made.streams = streams
    made.usual_transformers = [list(each) for each in syntax.transformers(made)]
    atexit.unregister(made.atexit_operations)  # what it does is done by leave(), after the handlers of the user
    made.set_hook("show_in_pager", page, 0)
    inline = figures.InlineBackend.instance(parent=made)
    made.configurables.append(inline)
    formats.install(made.display_formatter, figures.Drawer(inline))
    figures.install()
    plots.install(made.display_formatter)
    # IPython's advice after a SystemExit: here it does end the context.
    warnings.filterwarnings("ignore", message="To exit: use 'exit', 'quit', or Ctrl-D.")
    return made
