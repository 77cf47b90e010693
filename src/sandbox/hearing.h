/* SPDX-License-Identifier: Apache-2.0 */
/* hearing: a long line of an interpreter, which a thread understands: the loop would stand still for a tenth of a
 * second. It keeps the line's lane as long as it keeps the line, also when nobody wants to know any more. */
#pragma once

#include "event/worker.h"
#include "sandbox/kernel_line.h"
#include "sandbox/lane.h"

struct silt_hearing;

struct silt_hearer { /* embedded in who wants to know */
    struct silt_hearing *hearing; /* NULL: none is under way */
    /* `said` is valid until it returns; NULL: the line breaks the rules. */
    void (*on_heard)(struct silt_hearer *l, const struct silt_kernel_said *said, const struct silt_error *e);
};

/* Takes line and lane; one at a time for each listener. */
void silt_hearing_start(struct silt_worker *threads, struct silt_buf *line, struct silt_lane *lane,
                        struct silt_hearer *l);
void silt_hearing_leave(struct silt_hearer *l); /* nothing is told any more; fine when none is under way */
