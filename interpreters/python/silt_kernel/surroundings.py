# SPDX-License-Identifier: Apache-2.0
"""What a context is given by init: environment, working directory, and the module path that follows."""
import locale
import os
import site
import sys
import time

OWN_DIRECTORY = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


known = None  # in a zygote's children: (HOME, site directories, module path) that it has found itself


clock = None  # local_time() of a zygote


OWN = ("HOME", "USER", "LOGNAME")  # of who is not root silt-init gives them, by /etc/passwd, and init does not name them


class Refused(Exception):
    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


def enter(init):
    set_environment(init.get("env") or {})
    change_directory(init.get("cwd") or "/")
    sys.argv[:] = [""]
    sys.path[:] = known_path() or module_path()
    forget_missing_directories()


def remember():
    """In a zygote: the usual case is known before."""
    global clock, known
    clock = local_time()
    known = os.environ.get("HOME"), site_directories(), module_path()


def known_path():
    """None: it is not the usual case, or the sandbox has a directory that the zygote has not."""
    if known is None or known[0] != os.environ.get("HOME") or "PYTHONPATH" in os.environ \
            or "PYTHONNOUSERSITE" in os.environ:
        return None
    for directory in known[1]:
        if directory not in sys.path and os.path.isdir(directory):
            return None
    return known[2]


def set_environment(env):
    kept = {name: os.environ[name] for name in OWN if name in os.environ} if os.getuid() else {}
    wanted = {"MPLBACKEND": "Agg", **kept, **env}
    try:
        for name in [name for name in os.environ if name not in wanted]:
            del os.environ[name]
        for name, value in wanted.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
    except (TypeError, ValueError) as e:
        raise Refused("env", f"environment variable {name!r}: {e}") from None
    if "TZ" in env or clock != local_time():
        time.tzset()
    set_locale()


def set_locale():
    """As Python does when it starts. One that is not installed leaves C.UTF-8, as it does there."""
    name = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG")
    if name and name != locale.setlocale(locale.LC_CTYPE):
        try:
            locale.setlocale(locale.LC_CTYPE, "")
        except locale.Error:
            pass


def local_time():
    """What says which time it is here, or None."""
    try:
        s = os.stat("/etc/localtime")
    except OSError:
        return None
    return s.st_size, s.st_mtime_ns


def change_directory(path):
    try:
        os.chdir(path)
    except (OSError, ValueError) as e:
        raise Refused("cwd", f"working directory {path}: {getattr(e, 'strerror', None) or e}") from None
    os.environ["PWD"] = path


def module_path():
    """That of `python3` at a prompt: we were started isolated, or by a zygote, from which directories that
    the sandbox has were not to be seen. Directories that pip may still make are in it, too."""
    sites = site_directories()
    for directory in sites:
        if directory not in sys.path and os.path.isdir(directory):
            site.addsitedir(directory)  # with the .pth files in it
    rest = [p for p in sys.path if p not in sites and p not in ("", OWN_DIRECTORY)]
    base = os.path.dirname(os.__file__)
    ahead = [p for p in rest if p.startswith(base) or p.endswith(".zip")]
    added = [p for p in rest if p not in ahead]  # by .pth files
    named = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return unique(["", *named, *ahead, *sites, *added])


def site_directories():
    site.USER_BASE = site.USER_SITE = None  # they were found in another environment
    own = [] if os.environ.get("PYTHONNOUSERSITE") or in_venv() else [site.getusersitepackages()]
    return own + site.getsitepackages()


def in_venv():
    return sys.prefix != sys.base_prefix


def unique(items):
    return list(dict.fromkeys(items))


def forget_missing_directories():
    """A directory that was not there when it was looked at (pip makes it later) is looked at again."""
    cache = sys.path_importer_cache
    for path in sys.path:
        if cache.get(path, True) is None:
            cache.pop(path, None)
