/* SPDX-License-Identifier: Apache-2.0 */
/* told: what the gate's rules tell of packets (nfnetlink_log): what they refused, and which
 * connections began. The packets in it are a sandbox's own bytes. */
#pragma once

#include "event/loop.h"
#include "proxy/links.h"

enum silt_told_what { SILT_TOLD_NOTHING, SILT_TOLD_BEGUN, SILT_TOLD_REFUSED };

struct silt_told_event {
    enum silt_told_what what;
    uint32_t link;
    struct silt_egress_refusal refusal; /* protocol, reason, address, port */
};

/* One message off the front of *bytes. false: nothing more is there. */
bool silt_told_parse(silt_slice *bytes, struct silt_told_event *ret);

struct silt_told {
    struct silt_loop *loop;   /* borrowed */
    struct silt_links *links; /* borrowed */
    struct silt_watch watch;
};
void silt_told_open(struct silt_told *t, int fd);
