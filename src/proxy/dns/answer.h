/* SPDX-License-Identifier: Apache-2.0 */
/* answer: extracts the addresses that a DNS answer gives for a name. A strict parser: it follows
 * aliases (CNAME) from the question and ignores every other record. */
#pragma once

#include "base/ip_prefix.h"
#include "proxy/dns/wire.h"

enum {
    SILT_DNS_A = 1,
    SILT_DNS_CNAME = 5,
    SILT_DNS_OPT = 41,
    SILT_DNS_AAAA = 28,
    SILT_DNS_SVCB = 64,
    SILT_DNS_HTTPS = 65,
    SILT_DNS_ADDRESSES_MAX = 64,
    SILT_DNS_RECORDS_MAX = 512,
};

struct silt_dns_answer {
    silt_ip_prefix list[SILT_DNS_ADDRESSES_MAX]; /* of the name; open ones */
    size_t count;
    uint32_t ttl_s;       /* the least of all */
    size_t closed;        /* records with a closed address, wherever in the answer */
    silt_ip_prefix first; /* of those */
};

/* `most_ttl_s` not 0: what lasts longer is told to last so long. SILT_PROTOCOL: not an answer to
 * this question. */
int silt_dns_answer_read(char *message, size_t len, const struct silt_dns_question *q,
                         const struct silt_ip_prefix_list *open, uint32_t most_ttl_s,
                         struct silt_dns_answer *ret, struct silt_error *e);
/* Writes an answer with nothing in it but these addresses, into room for `size` bytes; the message
 * begins with the question. Its size. */
size_t silt_dns_answer_write(char *message, size_t size, const struct silt_dns_question *q,
                             const struct silt_dns_answer *a);
/* A question without anything that the asker put behind it, but that it takes large answers. */
size_t silt_dns_question_strip(char *message, size_t len, const struct silt_dns_question *q);
