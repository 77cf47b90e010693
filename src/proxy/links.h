/* SPDX-License-Identifier: Apache-2.0 */
/* links: what is known of each sandbox, by the number of its link: its policy, if it has one, the
 * answers it got, its connections through us, its counters, and what of it was refused. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "engine/plan.h"
#include "proxy/pins.h"

#include <sys/socket.h>

enum { SILT_LINKS_MAX = 65536 };

struct silt_egress_link {
    uint32_t number;
    struct silt_policy *policy; /* NULL: it has none, and reaches nothing through us */
    uint32_t limit;             /* of connections; 0: none */
    struct silt_pins pins;
    struct silt_link passages; /* connections: passage.c */
    struct silt_captive *captive; /* captive.c; NULL: it is none */
    struct silt_egress_counts counts;
    bool named; /* since this siltd's channel is there */
    /* Refusals that may be told now, in thousandths, and since when that is true. */
    int64_t tokens, counted_ms;
    uint32_t lost;
};

struct silt_links {
    struct silt_plan plan;
    struct silt_prefix_list open; /* networks that the operator opened */
    struct silt_map map;
    size_t pins; /* of all */
    uint64_t run;
    /* Tells siltd; never waits. false: it did not fit. */
    bool (*tell)(void *context, uint32_t link, const struct silt_egress_refusal *r);
    void *context;
};

int silt_links_init(struct silt_links *l, const char *pool4, const char *pool6, const char *open,
                    struct silt_error *e);
void silt_links_fini(struct silt_links *l);

/* 0: not an address of any link. */
uint32_t silt_links_number(const struct silt_links *l, const struct sockaddr_storage *from);
struct silt_egress_link *silt_links_find(const struct silt_links *l, uint32_t number);
/* Makes one that is not there; NULL: 0, or there are too many. */
struct silt_egress_link *silt_links_at(struct silt_links *l, uint32_t number);
/* Its connections have been ended. */
void silt_links_drop(struct silt_links *l, struct silt_egress_link *link);

/* Places of something that all sandboxes share. */
struct silt_places {
    size_t most, each; /* of all, of one sandbox; each 0: most */
    size_t few;        /* the last quarter is for those who have less than this */
};
bool silt_places_left(const struct silt_places *p, size_t all, size_t own);

/* When, how many were lost: filled in here. */
void silt_links_refuse(struct silt_links *l, struct silt_egress_link *link,
                       struct silt_egress_refusal *r);

silt_prefix silt_links_address(const struct sockaddr_storage *at);
uint16_t silt_links_port(const struct sockaddr_storage *at);
/* Puts address and port into a refusal. */
void silt_links_put(struct silt_egress_refusal *r, const silt_prefix *address, uint16_t port);
