/* SPDX-License-Identifier: Apache-2.0 */
/* network: a sandbox's mode (enum silt_net_mode). The row says what is wanted, also over stops and
 * restarts; a running sandbox gets it through silt-priv, one change after the other. */
#pragma once

#include "base/list.h"
#include "wire/priv.h"

#include <stdbool.h>

struct silt_sandbox;

struct silt_network {         /* in each sandbox */
    struct silt_link changes; /* the first is under way when `asked` */
    bool asked;
    bool stale; /* it was started, or found running, with another mode than the row's */
};

/* Embedded in a request; silt_network_leave when that goes. */
struct silt_network_change {
    struct silt_link link;
    enum silt_net_mode mode;
    /* Once; NULL: it is in force (or will be, when the sandbox starts). */
    void (*on_done)(struct silt_network_change *c, const struct silt_error *e);
};

void silt_network_init(struct silt_sandbox *s);
void silt_network_change(struct silt_sandbox *s, struct silt_network_change *c);
void silt_network_leave(struct silt_network_change *c);
void silt_network_on_running(struct silt_sandbox *s);
void silt_network_end(struct silt_sandbox *s); /* it is destroyed: who waits is told */

/* The callback comes exactly once. Without counters: SILT_UNAVAILABLE, this machine has no network
 * for sandboxes; or another failure; or no error: it does not run. */
typedef void silt_network_counted(void *context, const struct silt_priv_netstat *stat,
                                  const struct silt_error *e);
void silt_network_count(struct silt_sandbox *s, silt_network_counted *on_counted, void *context);
