/* SPDX-License-Identifier: Apache-2.0 */
/* rig: a server with a few handlers and clients on loopback sockets, all in one thread: the test
 * turns the loop until it hears what it waits for. */
#pragma once

#include "base/own.h"
#include "http/server.h"
#include "unit/base/unit.h"

enum { RIG_PATIENCE_MS = 60000 }; /* of every wait */

struct rig_client {
    int fd;
    bool closed, reset;
    struct silt_buf heard;
};

/* What the handlers saw and keep. Paths:
 *   /hello  answers "hello"            /echo     collects (at most 1 MiB) and answers the body
 *   /count  consumes, answers "N"      /later    is kept in `kept`
 *   /early  answers 403 at once        /stream   begins a streamed answer and is kept
 *   /empty  answers 204                /flood    streams flood_size bytes, minding the mark
 *   /pause  consumes, pauses on the first piece
 *   /cut    cuts at once               /big      answers 5,000,000 bytes
 *   /upgrade  goes on in another way, and is kept        /take  gives its connection to `taken_fd`
 */
struct rig {
    struct silt_loop loop;
    struct silt_http_server *server;
    struct silt_http_limits limits;
    struct silt_http_request *kept[8];
    size_t kept_count;
    int gone, drained, answered, last_status, refusals, closed;
    char room[200000]; /* for bodies of /place */
    size_t placed, placed_max;
    int taken_fd; /* -1: none */
    struct silt_buf taken;
    size_t pieces, consumed, flood_size, flood_done, pending_max;
};
extern struct rig rig;

void rig_start(void); /* with generous limits; a test may change rig.limits before */
void rig_limits(void);
void rig_stop(void);
void rig_turn(void);
/* Turns until `condition` holds; fails after five seconds. */
#define rig_until(condition)                                                                       \
    do {                                                                                           \
        for (int64_t until = rig_clock() + RIG_PATIENCE_MS; !(condition);) {                       \
            if (rig_clock() > until)                                                               \
                fail_msg("waited in vain for " #condition);                                        \
            rig_turn();                                                                            \
        }                                                                                          \
    } while (0)
int64_t rig_clock(void);
size_t rig_memory(void); /* bytes of the heap in use */

void rig_connect(struct rig_client *c);
void rig_say(struct rig_client *c, const char *text);
void rig_say_bytes(struct rig_client *c, silt_slice bytes); /* all of it, turning meanwhile */
bool rig_heard(struct rig_client *c, const char *text);     /* listens once */
void rig_expect(struct rig_client *c, const char *text); /* waits for it, forgets up to its end */
void rig_expect_end(struct rig_client *c);               /* waits for the server to close */
void rig_hang_up(struct rig_client *c);
void rig_reset(struct rig_client *c); /* ends with a reset */
