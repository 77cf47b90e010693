/* SPDX-License-Identifier: Apache-2.0 */
/* prefix: an IPv4 or IPv6 network, read strictly, and which networks are not the internet. */
#pragma once

#include "base/slice.h"

enum {
    SILT_PREFIX_TEXT = 52, /* "2001:db8::/32" and its terminator, at most */
    SILT_PREFIX_OPEN_MAX = 128,
};

typedef struct {
    uint8_t family; /* 4 or 6 */
    uint8_t bits;
    uint8_t bytes[16]; /* zero behind the prefix */
} silt_prefix;

/* Networks that somebody opened although they are closed to everybody. */
struct silt_prefix_list {
    silt_prefix items[SILT_PREFIX_OPEN_MAX];
    size_t count;
};

static inline unsigned silt_prefix_size(const silt_prefix *p)
{
    return p->family == 4 ? 32 : 128;
}

/* "10.1.0.0/16" or an address, which is a network of its own. SILT_INVALID tells what is wrong and
 * what would be right. */
int silt_prefix_parse(silt_slice text, silt_prefix *ret, struct silt_error *e);
/* With commas; spaces around them. */
int silt_prefix_list_parse(silt_slice text, struct silt_prefix_list *ret, struct silt_error *e);
/* The one way to write it; an address without "/32". */
void silt_prefix_text(const silt_prefix *p, char out[SILT_PREFIX_TEXT]);
void silt_prefix_clear(silt_prefix *p); /* the bits behind the prefix */
bool silt_prefix_covers(const silt_prefix *outer, const silt_prefix *inner);

/* Private networks, link-local ones (where clouds answer their machines), loopback, multicast and
 * the rest of IANA's registries of special addresses: closed in every mode. */
extern const char *const silt_prefix_closed[]; /* ends with NULL */
/* All of it is closed, and no network of `open` has it. */
bool silt_prefix_is_closed(const silt_prefix *p, const struct silt_prefix_list *open);

/* An address of the machine itself, of a private or link-local network, or where a cloud answers its machines; no network of `open` has
 * it. An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4) is what that one is. Addresses that are given out to nobody
 * are not private: whoever answers for all of the internet answers for them, too. */
bool silt_prefix_is_private(const silt_prefix *address, const struct silt_prefix_list *open);
