/* SPDX-License-Identifier: Apache-2.0 */
/* preview_dial: a request of silt-proxy for a socket to an exposed port. Wakes the sandbox and has
 * silt-priv dial; while the port refuses, it retries until the client's patience ends. Of the dials
 * waiting for one port, one retries for all.
 *
 *   WAKING --running--> DIALLING --socket--> (over)
 *                        ^   \--refused--> REFUSED --patience ends--> (over)
 *                        \-----again---------/ */
#pragma once

#include "sandbox/preview/preview_channel.h"

extern const struct silt_facet silt_preview_dial_facet;

/* `x` NULL: no such port. Sends exactly one answer, unless it is left before. */
void silt_preview_dial_begin(struct silt_preview *p, struct silt_exposed_port *x, uint32_t serial,
                             uint32_t wait_ms);
void silt_preview_dial_leave(struct silt_preview *p, uint32_t serial);
void silt_preview_dial_leave_all(struct silt_preview *p);      /* the channel is gone */
void silt_preview_dial_close_all(struct silt_exposed_port *x); /* the port is closed */
void silt_preview_dial_forget_all(struct silt_preview *p);     /* siltd is exiting */
