# SPDX-License-Identifier: Apache-2.0
"""The files that a zygote has loaded, by directory: has the sandbox the same ones?

A sandbox sees the image's directories through an overlay. A directory into which nobody has written is the image's own and has the
image's ctime, which nobody inside can set; and so is everything below it, for a file is written only after all directories above
it were copied. So a look at a few directories tells of a thousand files. Only in a directory that differs are files compared.

A warm Python that runs in the sandbox itself has loaded files that the sandbox may have copied already, and that can change
without a trace in any directory: there each file is compared, with its ctime and number.
"""
import os
import site
import sys
from importlib import machinery

LIBRARIES = "/etc/ld.so.cache"
READ_ONCE = ("/etc/ssl/openssl.cnf",)  # by libraries, when they are loaded
FONTS = ("/usr/share/fonts", "/usr/local/share/fonts")  # matplotlib has listed them
STARTERS = {"sitecustomize", "usercustomize"}  # run when Python starts, wherever they are
DELETED = " (deleted)"  # after the name of a file that is mapped and has no name any more

began_ns = None  # inside: when this process was started
top = None  # the Directory /
missing = set()  # modules that were looked for and not found: with one of them, packages would be something else
fonts = {}  # directory of FONTS: its ctime, or None
sonames = frozenset()  # of libraries that were loaded
libraries = None, frozenset()  # stamp of LIBRARIES, the paths that it has for sonames


class Directory:
    def __init__(self, path):
        self.path = path
        self.ctime_ns = ctime(path)
        self.files = {}  # path: its stamp
        self.directories = {}  # name: Directory
        self.modules = set()  # names that import was asked for here
        self.entries = frozenset()  # what bears these names

    def changed(self):
        """What differs, or None."""
        same = ctime(self.path) == self.ctime_ns
        if same and began_ns is None:
            return None
        if not same and self.modules and bearing(self.path, self.modules) != self.entries:
            return f"other modules in {self.path}"
        for path, was in self.files.items():
            if stamp(path) != was:
                return f"{path} is another"
        return next(filter(None, (directory.changed() for directory in self.directories.values())), None)

    def each(self):
        yield self
        for directory in self.directories.values():
            yield from directory.each()


class Missed:
    """The last finder: whatever it is asked for was not found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None:
            missing.add(name)


def ctime(path):
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return None


def stamp(path):
    try:
        s = os.stat(path)
    except OSError:
        return None
    return (s.st_size, s.st_mtime_ns, *((s.st_ctime_ns, s.st_ino, s.st_dev) if began_ns is not None else ()))


def is_recent(path):
    """Inside: it may have been another when it was loaded."""
    time_ns = ctime(path)
    return time_ns is None or time_ns >= began_ns


def unsettled():
    """Inside: what has changed while it was being loaded, or None."""
    for directory in top.each():
        recent = next(filter(is_recent, directory.files), None)
        if recent:
            return f"{recent} changed"
    for path in search_directories():
        if bearing(path, missing):
            return f"modules appeared in {path}"
    replaced = (path.removesuffix(DELETED) for path in mapped() if path.endswith(DELETED))
    return next((f"{path} is another" for path in replaced if os.path.exists(path)), None)


def bearing(directory, names):
    """Entries of a directory that an import of one of these names may find."""
    try:
        return frozenset(entry for entry in os.listdir(directory) if entry.partition(".")[0] in names and is_module(entry))
    except OSError:
        return frozenset()


def is_module(entry):
    return "." not in entry or entry.endswith(tuple(machinery.all_suffixes()))


def remember():
    global top
    top = Directory("/")
    for path in mapped() | aliases() | set(READ_ONCE):
        add_file(path)
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.isabs(path):
            add_module(path)
    for path in search_directories():
        find_directory(path).modules |= missing | STARTERS
    for directory in top.each():
        directory.entries = bearing(directory.path, directory.modules)
    fonts.update((path, ctime(path)) for path in FONTS)


def search_directories():
    return [path for path in {*sys.path, *site.getsitepackages()} if os.path.isabs(path) and os.path.isdir(path)]


def find_directory(path):
    at = top
    for name in path.split(os.sep)[1:]:
        if name and name not in at.directories:
            at.directories[name] = Directory(os.path.join(at.path, name))
        at = at.directories[name] if name else at
    return at


def add_file(path):
    directory = os.path.dirname(path)
    there = stamp(path) is not None or (began_ns is not None and path.endswith(".py") and os.path.isdir(directory))
    if there and not path.startswith("/dev/"):  # our own are every sandbox's
        find_directory(directory).files[path] = stamp(path)


def add_module(path):
    add_file(path)
    directory, file = os.path.split(path)
    name = file.partition(".")[0]
    if name == "__init__":
        directory, name = os.path.split(directory)
    if not path.startswith("/dev/"):
        find_directory(directory).modules.add(name)


def mapped():
    """The program, libraries, extension modules."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        fields = [line.rstrip("\n").split(maxsplit=5) for line in maps]
    return {line[5] for line in fields if len(line) == 6 and line[5].startswith("/")}


def aliases():
    """The names by which libraries were found, many of them links."""
    global libraries, sonames
    files = mapped()
    found = {path for path in cached(None) if os.path.realpath(path) in files}
    sonames = frozenset(map(os.path.basename, found))
    libraries = stamp(LIBRARIES), cached(sonames)
    return found


def cached(names):
    """Paths in the loader's cache, of libraries with these names or of all."""
    try:
        with open(LIBRARIES, "rb") as file:
            words = file.read(4 << 20).split(b"\0")
    except OSError:
        return frozenset()
    paths = (os.fsdecode(word) for word in words if word.startswith(b"/"))
    return frozenset(path for path in paths if names is None or os.path.basename(path) in names)


def changed():
    """Why a cold start is needed, or None."""
    if stamp(LIBRARIES) != libraries[0] and cached(sonames) != libraries[1]:
        return "other libraries come first"
    if any(ctime(path) != was for path, was in fonts.items()):
        return "other fonts"
    return settings() or top.changed()


def settings():
    """Files of the user's that matplotlib reads when it is imported."""
    home = os.environ.get("HOME", "")
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    share = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    places = ("matplotlibrc", f"{config}/matplotlib/matplotlibrc", f"{home}/.fonts", f"{share}/fonts")
    found = next(filter(os.path.exists, places), None) if "matplotlib" in sys.modules else None
    return f"settings in {found}" if found else None
