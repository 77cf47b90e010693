# SPDX-License-Identifier: Apache-2.0
"""Are the packages that a zygote carries those that `import` would find in the sandbox?"""
import os
import shutil
import sys

stamps = []  # (path, size, mtime) of what is loaded
homes = {}  # top-level package that is no part of Python itself: the folder it was found in
program = None  # that `python3` means
early = set()  # those that a cold kernel has imported, too, before it looks into the user's folders


def remember_early():
    early.update(name for name in sys.modules if "." not in name)


def remember():
    global program
    program = shutil.which("python3")
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
    stamps.extend((path, *stamp(path)) for path in sorted(files))


def home_of(path):
    folder, file = os.path.split(path)
    return os.path.dirname(folder) if file.startswith("__init__.") else folder


def stamp(path):
    s = os.stat(path)
    return s.st_size, s.st_mtime_ns


def stale():
    """Why a cold start is needed, or None."""
    for path, *known in stamps:
        try:
            if list(stamp(path)) != known:
                return f"{path} is another version"
        except OSError as e:
            return f"{path}: {e.strerror}"
    if shutil.which("python3") != program:
        return "python3 is another program"
    return shadowed()


def shadowed():
    """A package of the same name in a folder that comes before the one we loaded from wins."""
    unseen = set(homes)
    base = os.path.dirname(os.__file__)
    for folder in sys.path:
        if folder.startswith(base) and "-packages" not in folder:
            continue  # Python's own
        unseen -= {name for name in unseen if homes[name] == folder}
        names = unseen if "-packages" in folder else unseen - early
        found = first_in(folder or os.getcwd(), names) if names and os.path.isdir(folder or ".") else None
        if found:
            return f"{found} comes first"
    return None


def first_in(folder, names):
    for name in names:
        for path in (f"{folder}/{name}/__init__.py", f"{folder}/{name}.py"):
            if os.path.exists(path):
                return path
    return None
