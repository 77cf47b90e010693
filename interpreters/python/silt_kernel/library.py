# SPDX-License-Identifier: Apache-2.0
"""interpreters/zygote.c, which a zygote loads before it imports anything large: from then on Python's objects
lie together, so that a fork has little to copy."""
import ctypes
import os

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "zygote.so")

loaded = None


def load():
    global loaded
    loaded = ctypes.PyDLL(PATH)
    loaded.silt_zygote_gather()


def collapse():
    """Large pages for what malloc has, too. From then on objects are made where they would have been."""
    loaded.silt_zygote_gathered()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        spans = [line.split()[0].split("-") for line in maps if len(line.split()) == 5 or line.endswith("[heap]\n")]
    for begin, end in ((int(begin, 16), int(end, 16)) for begin, end in spans):
        loaded.silt_zygote_collapse(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin))
