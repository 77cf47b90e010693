/* SPDX-License-Identifier: Apache-2.0 */
/* visit: one who wants a socket to an entrance: the sandbox is woken, silt-priv dials, again while
 * nobody listens there, until the visitor has waited long enough. One of those that wait at an
 * entrance tries for all.
 *
 *   WAKING --running--> DIALLING --socket--> (over)
 *                        ^   \--refused--> REFUSED --patience ends--> (over)
 *                        \-----again---------/                               */
#pragma once

#include "sandbox/preview.h"

/* `x` may be NULL: there is no such entrance. Ends in exactly one answer, unless it is left. */
void silt_visit_begin(struct silt_preview *p, struct silt_entrance *x, uint32_t serial, uint32_t wait_ms);
void silt_visit_leave(struct silt_preview *p, uint32_t serial);
void silt_visit_leave_all(struct silt_preview *p);         /* the channel is gone */
void silt_visit_close_all(struct silt_entrance *x);        /* the entrance goes */
void silt_visit_on_ended(struct silt_sandbox *s);          /* its processes have ended */
void silt_visit_forget_all(struct silt_preview *p);        /* the daemon ends */
