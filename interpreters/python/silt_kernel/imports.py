# SPDX-License-Identifier: Apache-2.0
"""Calls a function when a module has been imported, without importing it: matplotlib and plotly are
changed where their windows would open, but a context that never uses them must not pay for them."""
import sys

waiting = {}


class Watcher:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in waiting:
            return None
        then = waiting.pop(name)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not Watcher else None
            if spec is not None:
                return announced(spec, then)
        return None


def announced(spec, then):
    run = getattr(spec.loader, "exec_module", None)

    def exec_module(module):
        run(module)
        quietly(then, module)

    if run is not None:
        spec.loader.exec_module = exec_module
    return spec


def quietly(then, module):
    """A version that we do not know is still worth importing."""
    try:
        then(module)
    except Exception:
        pass


def after_import(name, then):
    if name in sys.modules:
        quietly(then, sys.modules[name])
        return
    waiting[name] = then
    if Watcher not in sys.meta_path:
        sys.meta_path.insert(0, Watcher)
