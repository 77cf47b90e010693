/* SPDX-License-Identifier: Apache-2.0 */
/* names: which questions of a sandbox leave the machine, and which answers reach it. In mode allow
 * only names of its policy are asked for, and what they are answered with is pinned. A captive one is answered for names that do not
 * exist, or always where there is no internet, if its settings have them: with an address that leads to nobody. In no mode a
 * name leads to a closed address, or such an address to a name. */
#pragma once

#include "proxy/links.h"
#include "proxy/message.h"

/* A question that came in. */
struct silt_names_asker {
    struct silt_links *links; /* borrowed */
    uint32_t link;
    bool allow; /* its mode, as the gate has it */
    bool captive;
};

enum { SILT_NAMES_ASK = -1, SILT_NAMES_ANSWERED = -2, SILT_NAMES_ROOM = 512 };

/* SILT_NAMES_ASK: the message, of the size that *len then has, may be asked; SILT_NAMES_ANSWERED (captive only): it is the answer already;
 * else the code to answer with. There is room for SILT_NAMES_ROOM bytes at least. */
int silt_names_ask(const struct silt_names_asker *a, const struct silt_dns_question *q,
                   char *message, size_t *len);
/* What came back, changed where it has to be. Its size, at most `len` or SILT_NAMES_ROOM, and `room`; 0: that is no answer. */
size_t silt_names_answer(const struct silt_names_asker *a, const struct silt_dns_question *q,
                         char *message, size_t len, size_t room);
