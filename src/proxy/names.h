/* SPDX-License-Identifier: Apache-2.0 */
/* names: which questions of a sandbox leave the machine, and which answers reach it. In mode allow
 * only names of its policy are asked for, and what they are answered with is pinned. In no mode a
 * name leads to a closed address, or such an address to a name. */
#pragma once

#include "proxy/links.h"
#include "proxy/message.h"

/* A question that came in. */
struct silt_names_asker {
    struct silt_links *links; /* borrowed */
    uint32_t link;
    bool allow; /* its mode, as the gate has it */
};

enum { SILT_NAMES_ASK = -1 };

/* SILT_NAMES_ASK: the message, of the size that *len then has, may be asked; else the code to
 * answer with. */
int silt_names_ask(const struct silt_names_asker *a, const struct silt_dns_question *q,
                   char *message, size_t *len);
/* What came back, changed where it has to be. Its size, at most `len`; 0: that is no answer. */
size_t silt_names_answer(const struct silt_names_asker *a, const struct silt_dns_question *q,
                         char *message, size_t len);
