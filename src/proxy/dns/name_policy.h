/* SPDX-License-Identifier: Apache-2.0 */
/* name_policy: which DNS queries of a sandbox are forwarded, and which answers it gets. In mode
 * allow only names of its policy are resolved, and their addresses are pinned. An intercepted
 * sandbox gets a placeholder address for names in its settings that do not exist, or for all of
 * them if it has no internet. In no mode does a name resolve to a closed address, or a closed
 * address to a name. */
#pragma once

#include "proxy/policy/link_table.h"
#include "proxy/dns/wire.h"

/* A question that came in. */
struct silt_name_policy_asker {
    struct silt_link_table *links; /* borrowed */
    uint32_t link;
    bool allow; /* its mode, as the gate has it */
    bool captive;
};

enum { SILT_NAME_POLICY_ASK = -1, SILT_NAME_POLICY_ANSWERED = -2, SILT_NAME_POLICY_ROOM = 512 };

/* SILT_NAME_POLICY_ASK: the message, of the size that *len then has, may be asked;
 * SILT_NAME_POLICY_ANSWERED (captive only): it is the answer already; else the code to answer with.
 * There is room for SILT_NAME_POLICY_ROOM bytes at least. */
int silt_name_policy_ask(const struct silt_name_policy_asker *a, const struct silt_dns_question *q,
                         char *message, size_t *len);
/* What came back, changed where it has to be. Its size, at most `len` or SILT_NAME_POLICY_ROOM, and
 * `room`; 0: that is no answer. */
size_t silt_name_policy_answer(const struct silt_name_policy_asker *a,
                               const struct silt_dns_question *q, char *message, size_t len,
                               size_t room);
