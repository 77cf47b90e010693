# SPDX-License-Identifier: Apache-2.0
"""One Python context: a process that runs cells one after another and keeps their variables.

A kernel has four descriptors: 0 is /dev/null, 1 and 2 are pipes that silt-init reads as they are, 3 is
the control socket (wire.py: one JSON object per line, both ways).

    cold     prepare(); serve(3)
    zygote   prepare(warm=True); then in every forked child: serve(3)

Whoever forks has put the child into its sandbox before serve() is called: from there on it runs what
users send.
"""


def prepare(warm=False):
    """Everything that can be done before the context is known. With warm: also for a zygote's children."""
    from .zygote import prepare as run

    run(warm)


def serve(control_fd=3):
    """Reads init, runs cells, never returns."""
    from .kernel import serve as run

    run(control_fd)
