# SPDX-License-Identifier: Apache-2.0
"""One Python context: a process that runs cells one after another and keeps their variables.

A kernel has five descriptors: 0 is /dev/null, 1 to 4 are pipes: output and errors, which siltd reads as they are, requests
from siltd (3) and lines to it (4; wire.py: one JSON object per line, both ways).

    cold     prepare(); serve()
    zygote   prepare(warm=True); fork(); then in every child: serve()

A zygote's 3 is the nursery's (wire/zygote.h): a seqpacket socket, by which it knows what it is. fork() puts
the child into its sandbox before serve() is called: from there on it runs what users send.
"""


def prepare(warm=False):
    """Everything that can be done before the context is known. With warm: also for a zygote's children."""
    if warm:
        from . import library

        library.load()
    from .zygote import prepare as run

    run(warm)


def fork():
    """Returns in every child that the nursery asks for; the zygote itself never comes back."""
    from .zygote import fork as run

    run()


def serve():
    """Reads init, runs cells, never returns."""
    from .kernel import serve as run

    run()
