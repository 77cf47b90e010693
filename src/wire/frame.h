/* SPDX-License-Identifier: Apache-2.0 */
/* frame: one message between two of our programs on a SOCK_SEQPACKET socket: a fixed head and a body
 * of at most SILT_FRAME_BODY_MAX bytes. The kernel keeps the borders, so there is no length to lie
 * about; descriptors ride along as SCM_RIGHTS. Both ends are the same build on the same machine:
 * structs travel as they are. The receiver checks sizes and every number before use. */
#pragma once

#include <stdint.h>

enum {
    SILT_FRAME_BODY_MAX = 60 * 1024, /* with the head it fits a default socket buffer thrice */
};

struct silt_frame {
    uint32_t type; /* an enum of the contract in question */
    uint32_t flags;
    uint64_t id; /* of the exec, session or request that it is about */
    char body[];
};

enum { SILT_FRAME_MAX = (int)sizeof(struct silt_frame) + SILT_FRAME_BODY_MAX };
