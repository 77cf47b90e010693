/* SPDX-License-Identifier: Apache-2.0 */
/* dialer: sockets that belong to the gate, asked for ahead of time from the process that lives
 * there (wire/dial.h). What is connected with them is bound by the gate's rules. */
#pragma once

#include "base/list.h"
#include "event/loop.h"

enum { SILT_DIALER_READY = 32 }; /* of each family */

/* Somebody who waits for a socket. */
struct silt_dialer_want {
    struct silt_link link;
    int family;
    void (*on_socket)(struct silt_dialer_want *w, int fd); /* takes it */
};

struct silt_dialer_stock {
    int family;
    int fds[SILT_DIALER_READY];
    size_t count;
    bool asked;
    struct silt_link wants;
    struct silt_dialer *dialer; /* borrowed */
    struct silt_timer fill;     /* a quiet moment: the stock is filled up */
};

struct silt_dialer {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch channel;
    struct silt_dialer_stock stocks[2];
};

void silt_dialer_init(struct silt_dialer *d, struct silt_loop *loop);
void silt_dialer_replace(struct silt_dialer *d, int channel); /* takes it */
/* on_socket is called, perhaps before this returns. */
void silt_dialer_ask(struct silt_dialer *d, struct silt_dialer_want *w);
void silt_dialer_leave(struct silt_dialer_want *w); /* fine when it does not wait */
