/* SPDX-License-Identifier: Apache-2.0 */
/* outlook: keeps an eye on the machine's routes while the instance runs, so that the gate's uplink
 * leads to the world also after they have changed. */
#pragma once

#include "engine/gate.h"
#include "event/loop.h"

struct silt_outlook {
    struct silt_loop *loop; /* borrowed */
    struct silt_gate *gate; /* borrowed */
    struct silt_watch changes;
    struct silt_timer calm; /* changes come in swarms */
};

void silt_outlook_open(struct silt_outlook *o, struct silt_loop *loop, struct silt_gate *gate);
void silt_outlook_close(struct silt_outlook *o); /* before the loop */
