/* SPDX-License-Identifier: Apache-2.0 */
/* nflog_reader: reads what the gateway's rules log (nfnetlink_log): refused packets and new
 * connections. The packets are bytes of a sandbox: untrusted. */
#pragma once

#include "event/loop.h"
#include "proxy/policy/link_table.h"

enum silt_nflog_reader_what {
    SILT_NFLOG_READER_NOTHING,
    SILT_NFLOG_READER_BEGUN,
    SILT_NFLOG_READER_REFUSED
};

struct silt_nflog_reader_event {
    enum silt_nflog_reader_what what;
    uint32_t link;
    struct silt_egress_refusal refusal; /* protocol, reason, address, port */
};

/* One message off the front of *bytes. false: nothing more is there. */
bool silt_nflog_reader_parse(silt_slice *bytes, struct silt_nflog_reader_event *ret);

struct silt_nflog_reader {
    struct silt_loop *loop;        /* borrowed */
    struct silt_link_table *links; /* borrowed */
    struct silt_watch watch;
};
void silt_nflog_reader_open(struct silt_nflog_reader *t, int fd);
