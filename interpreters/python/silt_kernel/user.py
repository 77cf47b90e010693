# SPDX-License-Identifier: Apache-2.0
"""Whose a forked context is. One that silt-init starts is its user's from the beginning; this does the same, by the same
rules (src/agent/spawn/user.c), before anything of the user's is looked at. One that was forked inside is the user's
already, unless that is another by now."""
import ctypes
import os
import stat

from . import library

IDS = 65536  # numbers that a sandbox has
FILE_MAX = 1 << 20
LINE_MAX = 8192
GROUPS_MAX = 64
NAME_MAX = 64


def become(text, inside):
    """Why it cannot be done, or None. What silt-init would say of it is its own to say: the context is started cold."""
    name, colon, group = text.partition(":")
    entry = find_entry(name)
    if entry is None and number(name) is None:
        return f"no user {name}"
    login, uid, gid, home = entry or ("", number(name), 0, "/")
    groups = member_of(login, gid) if entry and not colon else []
    if colon:
        gid = find_group(group)
    if gid is None or uid >= IDS or gid >= IDS:
        return f"no user {text}"
    if inside:
        if (os.getresuid(), os.getresgid(), set(os.getgroups())) != ((uid,) * 3, (gid,) * 3, set(groups)):
            return f"user {text} is another"
    elif library.loaded.silt_zygote_become(uid, gid, (ctypes.c_uint32 * len(groups))(*groups), len(groups)) != 0:
        return f"cannot become user {text}"
    for variable, value in (("HOME", home), ("USER", login), ("LOGNAME", login)):
        os.environ.pop(variable, None)
        if value:
            os.environ[variable] = value
    return None


def lines(path):
    """Fields of each line. A FIFO would let us wait: what is no file is as good as missing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return []
    with open(fd, "rb") as file:
        text = file.read(FILE_MAX) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    return [os.fsdecode(line).split(":") for line in text.split(b"\n") if len(line) < LINE_MAX]


def number(text):
    plain = text.isascii() and text.isdecimal() and len(text) <= 10 and (text == "0" or text[0] != "0")
    return int(text) if plain and int(text) < 2 ** 32 - 1 else None


def find_entry(name):
    """name, uid, gid, home"""
    wanted = number(name)
    for fields in lines("/etc/passwd"):
        if len(fields) < 6 or not 0 < len(fields[0]) <= NAME_MAX or None in map(number, fields[2:4]):
            continue
        if fields[0] == name if wanted is None else number(fields[2]) == wanted:
            return fields[0], number(fields[2]), number(fields[3]), fields[5]
    return None


def find_group(name):
    for fields in lines("/etc/group"):
        if fields[0] == name and len(fields) > 2 and number(fields[2]) is not None:
            return number(fields[2])
    return number(name)


def member_of(login, gid):
    found = [gid]
    for fields in lines("/etc/group"):
        if len(fields) > 3 and login in fields[3].split(",") and number(fields[2]) not in (None, gid):
            found += [number(fields[2])] if number(fields[2]) < IDS else []
    return found[:GROUPS_MAX]
