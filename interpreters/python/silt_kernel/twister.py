# SPDX-License-Identifier: Apache-2.0
"""numpy's old generator, which is the same in all children of a zygote until it is seeded. numpy.random.seed()
takes a millisecond, most of it for pages that nothing else needs; so its state is written where it lies."""
import ctypes
import sys

from . import library

KEYS = 624

place = None  # address of the state; None: unknown


def find():
    """Before the fork. Only a state that looks like its numpy says is written to."""
    global place
    numpy = sys.modules.get("numpy")
    try:
        generator = numpy.random.mtrand._rand._bit_generator
        numpy.random.seed(12345)
        address = generator.ctypes.state_address
        words = (ctypes.c_uint32 * (KEYS + 1)).from_address(address)
        state = generator.state["state"]
        if list(words[:KEYS]) == state["key"].tolist() and words[KEYS] == state["pos"]:
            place = ctypes.c_void_p(address)
    except Exception:
        pass  # another numpy, or none


def shuffle():
    """In a child."""
    if place is not None and library.loaded.silt_zygote_shuffle(place) == 0:
        return
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
