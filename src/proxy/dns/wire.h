/* SPDX-License-Identifier: Apache-2.0 */
/* wire: parses the question of a DNS message (RFC 1035). Strict: exactly one question, no
 * compression in it, nothing past the end. The rest of the message is forwarded unread. */
#pragma once

#include "base/slice.h"

enum {
    SILT_DNS_HEAD = 12,
    SILT_DNS_NAME = 254, /* a name as text, with its terminator */
    SILT_DNS_SERVFAIL = 2,
    SILT_DNS_NXDOMAIN = 3,
    SILT_DNS_NOTIMP = 4,
    SILT_DNS_REFUSED = 5,
};

struct silt_dns_question {
    uint16_t id;
    uint16_t type, class;
    char name[SILT_DNS_NAME]; /* lower case, no dot at the end; "" is the root */
    size_t end;               /* of the question in the message */
};

/* SILT_PROTOCOL: nobody can tell what it asks. SILT_INVALID: it is no plain question (an update, a
 * notification, an answer). */
int silt_dns_parse(silt_slice message, struct silt_dns_question *ret, struct silt_error *e);
/* Turns a message that begins with a question into an answer without records. The size of it. */
size_t silt_dns_answer_empty(char *message, const struct silt_dns_question *q, unsigned rcode);
/* Numbers in a message stand with their high byte first. */
static inline uint16_t silt_dns_u16(const char *at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (uint16_t)(b[0] << 8 | b[1]);
}

static inline void silt_dns_put_u16(char *at, uint16_t value)
{
    at[0] = (char)(value >> 8);
    at[1] = (char)(value & 0xff);
}

uint16_t silt_dns_id(const char *message);
void silt_dns_set_id(char *message, uint16_t id);
