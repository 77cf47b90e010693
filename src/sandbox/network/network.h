/* SPDX-License-Identifier: Apache-2.0 */
/* network: a sandbox's network mode (enum silt_net_mode) and, in mode allow, its rules. The row
 * holds the wanted state, across stops and restarts; a running sandbox gets one change at a time.
 * During a change nothing is reachable that neither policy allows. To mode allow: silt-proxy gets
 * the rules before the link switches. From it: the link switches before silt-proxy drops the rules.
 * A sandbox of mode allow starts in mode none, and commands wait until its rules are in force. */
#pragma once

#include "sandbox/network/egress_channel.h"
#include "sandbox/core/registry.h"

extern const struct silt_facet silt_network_facet;

/* Embedded in a request; call silt_network_leave before it is freed. */
struct silt_network_change {
    struct silt_link link;
    struct silt_network *network; /* of the sandbox */
    enum silt_net_mode mode;
    char *allow; /* taken; NULL except in modes allow and captive */
    /* Once. NULL: in force, or will be when the sandbox starts. On an error nothing has changed. */
    void (*on_done)(struct silt_network_change *c, const struct silt_error *e);
};

/* The operator's default for sandboxes created without a choice (settings.c). */
struct silt_network_settings {
    const char *mode, *allow, *open;
};
int silt_network_read_settings(struct silt_registry_settings *s,
                               const struct silt_network_settings *n, struct silt_error *e);

void silt_network_change(struct silt_sandbox *s, struct silt_network_change *c);
void silt_network_leave(struct silt_network_change *c);

/* Notifications from the rest of the room. */
/* Whether silt-proxy has applied the rules of this generation. */
void silt_network_on_applied(struct silt_sandbox *s, uint64_t generation,
                             const struct silt_error *e);

/* Captive: silt-proxy has no sockets of this sandbox. */
void silt_network_on_listenless(struct silt_sandbox *s, uint64_t generation);

/* The callback is called exactly once. Counters may be missing: SILT_UNAVAILABLE (sandboxes have no
 * network on this machine), another error, or no error (the sandbox is not running). */
struct silt_network_counts {
    const struct silt_priv_netstat *link;
    const struct silt_egress_counts *proxy; /* NULL: silt-proxy did not answer */
};
typedef void silt_network_counted(void *context, const struct silt_network_counts *counts,
                                  const struct silt_error *e);
void silt_network_count(struct silt_sandbox *s, silt_network_counted *on_counted, void *context);
