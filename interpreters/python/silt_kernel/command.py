# SPDX-License-Identifier: Apache-2.0
"""`!command`: a shell on our own stdout and stderr, so that its output streams like ours."""
import importlib
import os
import signal
import subprocess
import sys

GRACE_S = 1


def run(command, streams):
    """Its status; a negative one is the signal that ended it."""
    streams.flush()
    piped = sys.stdout is not streams.texts[1]  # the cell captures or redirects what it prints
    child = subprocess.Popen(command, shell=True, executable=shell(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE if piped else None,
                             stderr=subprocess.STDOUT if piped else None)
    try:
        if piped:
            copy(child.stdout)
        status = child.wait()
    except BaseException:
        stop(child)
        raise
    finally:
        if piped:
            child.stdout.close()
    importlib.invalidate_caches()  # it may have installed something
    return -(status - 128) if status > 128 else status


def shell():
    path = os.environ.get("SHELL")
    return path if path and os.access(path, os.X_OK) else None


def copy(pipe):
    for line in iter(pipe.readline, b""):
        sys.stdout.write(line.decode("utf-8", "replace"))


def stop(child):
    """The interrupt reached us; whether it also reached the child depends on who sent it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            child.send_signal(number)
            child.wait(GRACE_S)
            return
        except subprocess.TimeoutExpired:
            continue
