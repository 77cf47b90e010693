# SPDX-License-Identifier: Apache-2.0
"""Are the packages that a zygote carries those that `import` would find in the sandbox?"""
import ctypes
import os
import shutil
import sys
from importlib import machinery

from . import library, loaded, surroundings

homes = {}  # top-level package that is no part of Python itself: the folder it was found in
early = set()  # those that a cold kernel has imported, too, before it looks into the user's folders
searched = None  # the PATH that the stamps are for
program = None  # that `python3` means
sites = {}  # folder of packages: (mtime, the .pth files in it)
stamps = None  # an array of Stamp
usual = None  # (module path, [(folder, names that must not be in it)])
PRELOADS = ("/etc/ld.so.preload",)  # names libraries that are loaded into every program
FOLDER_MAX = 1000  # entries of one that is listed; in a larger one each name is looked for


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
    for folder in sys.path:
        if "-packages" in folder and os.path.isdir(folder):
            sites[folder] = stamp(folder)[1], pth_files(folder)


def home_of(path):
    folder, file = os.path.split(path)
    return os.path.dirname(folder) if file.startswith("__init__.") else folder


def stamp(path):
    s = os.stat(path)
    return s.st_size, s.st_mtime_ns


def absent(paths):
    return [path for path in paths if not os.path.exists(path)]


def ahead_of(found):
    """Where a python3 would be found first."""
    places = [os.path.join(folder, "python3") for folder in (searched or "").split(os.pathsep)]
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
    for folder, (mtime_ns, files) in sites.items():
        try:
            if os.stat(folder).st_mtime_ns != mtime_ns and pth_files(folder) != files:
                return f"other .pth files in {folder}"
        except OSError as e:
            return f"{folder}: {e.strerror}"
    return None


def pth_files(folder):
    """They say what else is on the module path, and are run when Python starts."""
    return {name: stamp(f"{folder}/{name}") for name in os.listdir(folder) if name.endswith(".pth")}


def remember_path():
    """After surroundings.remember(), whose path most children have."""
    global usual
    usual = surroundings.known[2], ahead_of_homes(surroundings.known[2])


def ahead_of_homes(path):
    """Folders in which a package of the same name would win over the one that we loaded, and those names."""
    unseen = set(homes)
    base = os.path.dirname(os.__file__)
    found = []
    for folder in path:
        if folder.startswith(base) and "-packages" not in folder:
            continue  # Python's own
        unseen -= {name for name in unseen if homes[name] == folder}
        names = unseen if "-packages" in folder else unseen - early
        if folder not in sites:
            names = names | loaded.missing
        if names:
            found.append((folder or ".", frozenset(names)))
    return found


def shadowed():
    for folder, names in usual[1] if usual is not None and sys.path == usual[0] else ahead_of_homes(sys.path):
        found = first_in(folder, names)
        if found:
            return f"{found} comes first"
    return None


def first_in(folder, names):
    there = list_folder(folder)
    if there == []:
        return None
    for name in names if there is None else names.intersection(entry.partition(".")[0] for entry in there):
        for path in (f"{folder}/{name}/__init__.py", *(f"{folder}/{name}{suffix}" for suffix in machinery.all_suffixes())):
            if os.path.exists(path):
                return path
    return None


def list_folder(folder):
    """None: it is too large."""
    try:
        with os.scandir(folder) as entries:
            there = [entry.name for entry, _ in zip(entries, range(FOLDER_MAX))]
    except OSError:
        return []
    return there if len(there) < FOLDER_MAX else None
