/* SPDX-License-Identifier: Apache-2.0 */
/* ip_prefix: parses IPv4 and IPv6 networks strictly, and knows which of them are not the internet.
 */
#pragma once

#include "base/slice.h"

enum {
    SILT_IP_PREFIX_TEXT = 52, /* the longest text of a network, with its terminator */
    SILT_IP_PREFIX_OPEN_MAX = 128,
};

typedef struct {
    uint8_t family; /* 4 or 6 */
    uint8_t bits;
    uint8_t bytes[16]; /* zero after the prefix */
} silt_ip_prefix;

/* Networks that the operator has opened although they are closed by default. */
struct silt_ip_prefix_list {
    silt_ip_prefix items[SILT_IP_PREFIX_OPEN_MAX];
    size_t count;
};

static inline unsigned silt_ip_prefix_size(const silt_ip_prefix *p)
{
    return p->family == 4 ? 32 : 128;
}

/* "10.1.0.0/16", or an address, which is a network of one. SILT_INVALID says what is wrong and how
 * to write it. */
int silt_ip_prefix_parse(silt_slice text, silt_ip_prefix *ret, struct silt_error *e);
/* Separated by commas, with optional spaces. */
int silt_ip_prefix_list_parse(silt_slice text, struct silt_ip_prefix_list *ret,
                              struct silt_error *e);
/* The canonical text; an address without "/32". */
void silt_ip_prefix_text(const silt_ip_prefix *p, char out[SILT_IP_PREFIX_TEXT]);
void silt_ip_prefix_clear(silt_ip_prefix *p); /* clears the bits after the prefix */
bool silt_ip_prefix_covers(const silt_ip_prefix *outer, const silt_ip_prefix *inner);

/* Private and link-local networks (where clouds serve metadata), loopback, multicast and the rest
 * of IANA's special-purpose registries: closed in every mode. */
extern const char *const silt_ip_prefix_closed[]; /* ends with NULL */
/* The whole network is closed, and no network of `open` contains it. */
bool silt_ip_prefix_is_closed(const silt_ip_prefix *p, const struct silt_ip_prefix_list *open);

/* An address of this machine, of a private or link-local network, or of a cloud's metadata service,
 * that no network of `open` contains. An IPv6 address with an embedded IPv4 address (mapped, NAT64,
 * 6to4) counts as the latter. Unallocated addresses are not private: a proxy for the whole internet
 * answers for them, too. */
bool silt_ip_prefix_is_private(const silt_ip_prefix *address,
                               const struct silt_ip_prefix_list *open);
