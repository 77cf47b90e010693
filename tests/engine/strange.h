/* SPDX-License-Identifier: Apache-2.0 */
/* strange: descriptors that nobody should have to take from anybody. */
#pragma once

enum strange {
    STRANGE_FILE,
    STRANGE_DIRECTORY,
    STRANGE_WRITE_END,
    STRANGE_READ_END,
    STRANGE_STREAM, /* unix sockets */
    STRANGE_PACKETS,
    STRANGE_TCP,
    STRANGE_PROCESS, /* pidfd of our own process */
    STRANGE_LINGER,  /* a TCP socket whose last close waits: it lingers for a minute, with data that
                        nobody reads */
    STRANGE_NESTED,  /* a unix socket in whose queue such a one lies */
    STRANGE_MAX
};

/* The caller's; -1: not on this machine. */
int strange_open(enum strange kind);
/* Ends what STRANGE_LINGER left behind: the kernel would keep trying for a minute. */
void strange_end(void);
