# SPDX-License-Identifier: Apache-2.0
"""One Python context: a process that runs cells one after another and keeps their variables.

A kernel has five descriptors: 0 is /dev/null, 1 to 4 are pipes: output and errors, which siltd reads as they are, requests
from siltd (3) and lines to it (4; wire.py: one JSON object per line, both ways).

    cold     prepare(); serve()
    zygote   prepare(warm=True); fork(); then in every child: serve()
    inside   the same with inside=True: a warm Python of one sandbox's own, where the image's packages are not a zygote's

A zygote's 3 is the nursery's (wire/zygote.h): a seqpacket socket, by which it knows what it is. fork() puts
the child into its sandbox before serve() is called: from there on it runs what users send. One inside has siltd's pipes
like a context, and a socket as 5, by which silt-init asks.
"""


def prepare(warm=False, inside=False):
    """Everything that can be done before the context is known. With warm: also for children."""
    if warm:
        from . import library

        library.load()
    from .zygote import prepare as run

    run(warm, inside)


def fork(inside=False):
    """Returns in every child that is asked for; the process itself never comes back."""
    from .zygote import fork as run

    run(inside)


def serve():
    """Reads init, runs cells, never returns."""
    from .kernel import serve as run

    run()
