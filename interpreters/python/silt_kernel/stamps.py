# SPDX-License-Identifier: Apache-2.0
"""Are the packages that a zygote carries those that `import` would find in the sandbox?"""
import ctypes
import os
import shutil
import sys
from importlib import machinery

from . import library, loaded, surroundings

homes = {}  # top-level package that is no part of Python itself: the directory it was found in
early = set()  # those that a cold kernel has imported, too, before it looks into the user's directories
searched = None  # the PATH that the stamps are for
program = None  # that `python3` means
sites = {}  # directory of packages: (mtime, the .pth files in it)
stamps = None  # an array of Stamp
usual = None  # (module path, [(directory, names that must not be in it)])
PRELOADS = ("/etc/ld.so.preload",)  # names libraries that are loaded into every program
DIRECTORY_MAX = 1000  # entries of one that is listed; in a larger one each name is looked for


class Stamp(ctypes.Structure):
    """Of a file that is loaded; size -1: of one that must not be there."""

    _fields_ = (("path", ctypes.c_char_p), ("size", ctypes.c_int64), ("mtime_ns", ctypes.c_int64))


def remember_early():
    early.update(name for name in sys.modules if "." not in name)


def remember():
    global program, searched, stamps
    program, searched = shutil.which("python3"), os.environ.get("PATH")
    base = os.path.dirname(os.__file__)
    files = {os.__file__, os.path.realpath(sys.executable)}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if "." in name or not path or name == "silt_kernel":
            continue
        if path.startswith(base + os.sep) and "-packages" not in path:
            continue
        homes[name] = home_of(path)
        files.add(path)
    found = [Stamp(path.encode(), *stamp(path)) for path in sorted(files)]
    found += [Stamp(path.encode(), -1, 0) for path in [*ahead_of(program), *absent(PRELOADS)]]
    stamps = (Stamp * len(found))(*found)
    for directory in sys.path:
        if "-packages" in directory and os.path.isdir(directory):
            sites[directory] = stamp(directory)[1], pth_files(directory)


def home_of(path):
    directory, file = os.path.split(path)
    return os.path.dirname(directory) if file.startswith("__init__.") else directory


def stamp(path):
    s = os.stat(path)
    return s.st_size, s.st_mtime_ns


def absent(paths):
    return [path for path in paths if not os.path.exists(path)]


def ahead_of(found):
    """Where a python3 would be found first."""
    places = [os.path.join(directory, "python3") for directory in (searched or "").split(os.pathsep)]
    return places[:places.index(found)] if found in places else []


def stale():
    """Why a cold start is needed, or None."""
    changed = library.loaded.silt_zygote_changed(stamps, len(stamps))
    if changed >= 0:
        return f"{os.fsdecode(stamps[changed].path)} is another"
    if os.environ.get("PATH") != searched and shutil.which("python3") != program:
        return "python3 is another program"
    return paths_changed() or shadowed() or loaded.changed()


def paths_changed():
    for directory, (mtime_ns, files) in sites.items():
        try:
            looked_at = loaded.began_ns is not None or os.stat(directory).st_mtime_ns != mtime_ns
            if looked_at and pth_files(directory) != files:
                return f"other .pth files in {directory}"
        except OSError as e:
            return f"{directory}: {e.strerror}"
    return None


def pth_files(directory):
    """They say what else is on the module path, and are run when Python starts."""
    return {name: loaded.stamp(f"{directory}/{name}") for name in os.listdir(directory) if name.endswith(".pth")}


def unsettled():
    """Inside: what has changed while it was being loaded, or None."""
    recent = [f"{directory}/{name}" for directory, (_, files) in sites.items() for name in files]
    return next((f"{path} changed" for path in filter(loaded.is_recent, recent)), None) or loaded.unsettled()


def remember_path():
    """After surroundings.remember(), whose path most children have."""
    global usual
    usual = surroundings.known[2], ahead_of_homes(surroundings.known[2])


def ahead_of_homes(path):
    """Directories in which a package of the same name would win over the one that we loaded, and those names."""
    unseen = set(homes)
    base = os.path.dirname(os.__file__)
    found = []
    for directory in path:
        if directory.startswith(base) and "-packages" not in directory:
            continue  # Python's own
        unseen -= {name for name in unseen if homes[name] == directory}
        names = unseen if "-packages" in directory else unseen - early
        if directory not in sites:
            names = names | loaded.missing
        if names:
            found.append((directory or ".", frozenset(names)))
    return found


def shadowed():
    for directory, names in usual[1] if usual is not None and sys.path == usual[0] else ahead_of_homes(sys.path):
        found = first_in(directory, names)
        if found:
            return f"{found} comes first"
    return None


def first_in(directory, names):
    there = list_directory(directory)
    if there == []:
        return None
    for name in names if there is None else names.intersection(entry.partition(".")[0] for entry in there):
        for path in (f"{directory}/{name}/__init__.py", *(f"{directory}/{name}{suffix}" for suffix in machinery.all_suffixes())):
            if os.path.exists(path):
                return path
    return None


def list_directory(directory):
    """None: it is too large."""
    try:
        with os.scandir(directory) as entries:
            there = [entry.name for entry, _ in zip(entries, range(DIRECTORY_MAX))]
    except OSError:
        return []
    return there if len(there) < DIRECTORY_MAX else None
