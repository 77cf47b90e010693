/* SPDX-License-Identifier: Apache-2.0 */
/* frame: one message between two of our programs on a SOCK_SEQPACKET socket: a fixed header and a
 * body of at most SILT_FRAME_BODY_MAX bytes. The kernel keeps message boundaries, so there is no
 * length field to forge; descriptors are passed as SCM_RIGHTS. Both ends come from the same build
 * on the same machine, so structs are sent as they are. The receiver checks sizes and every number
 * before use. */
#pragma once

#include <stdint.h>

enum {
    SILT_FRAME_BODY_MAX = 60 * 1024, /* three frames fit into a default socket buffer */
};

struct silt_frame {
    uint32_t type; /* an enum of the protocol in use */
    uint32_t flags;
    uint64_t id; /* of the exec, session or request */
    char body[];
};

enum { SILT_FRAME_MAX = (int)sizeof(struct silt_frame) + SILT_FRAME_BODY_MAX };
