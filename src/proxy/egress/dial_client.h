/* SPDX-License-Identifier: Apache-2.0 */
/* dial_client: a pool of sockets created in the gateway's network namespace by silt-dial
 * (wire/dial.h), requested ahead of time. The gateway's rules apply to connections made with them.
 */
#pragma once

#include "base/list.h"
#include "event/loop.h"

enum { SILT_DIAL_CLIENT_READY = 32 }; /* of each family */

/* Somebody who waits for a socket. */
struct silt_dial_client_want {
    struct silt_link link;
    int family;
    void (*on_socket)(struct silt_dial_client_want *w, int fd); /* takes it */
};

struct silt_dial_client_stock {
    int family;
    int fds[SILT_DIAL_CLIENT_READY];
    size_t count;
    bool asked;
    struct silt_link wants;
    struct silt_dial_client *dialer; /* borrowed */
    struct silt_timer fill;          /* a quiet moment: the stock is filled up */
};

struct silt_dial_client {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch channel;
    struct silt_dial_client_stock stocks[2];
};

void silt_dial_client_init(struct silt_dial_client *d, struct silt_loop *loop);
void silt_dial_client_replace(struct silt_dial_client *d, int channel); /* takes it */
/* on_socket is called, perhaps before this returns. */
void silt_dial_client_ask(struct silt_dial_client *d, struct silt_dial_client_want *w);
void silt_dial_client_leave(struct silt_dial_client_want *w); /* fine when it does not wait */
