/* SPDX-License-Identifier: Apache-2.0 */
/* link_table: the state of each sandbox, by the number of its network link: its policy, DNS pins,
 * connections, counters and refusals. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "engine/network/plan.h"
#include "proxy/policy/dns_pins.h"

#include <sys/socket.h>

enum { SILT_LINK_TABLE_MAX = 65536 };

struct silt_intercept_names { /* the names that resolve in an intercepted sandbox */
    bool internet;            /* all existing ones; otherwise only those of `globs` */
    char *globs;              /* one per line; owned by the intercept */
    size_t globs_len;
    int64_t steps, steps_ms; /* matching budget left, and when it was computed: name_policy.c */
};

struct silt_egress_link {
    uint32_t number;
    struct silt_policy *policy; /* NULL: none, so nothing is reachable through silt-proxy */
    uint32_t limit;             /* of connections; 0: none */
    struct silt_dns_pins pins;
    struct silt_link passages;          /* connections: allow_conn.c */
    struct silt_intercept *captive;     /* NULL: not intercepted */
    struct silt_intercept_names *names; /* of the intercept; NULL: none */
    struct silt_egress_counts counts;
    bool named; /* since this siltd's channel is there */
    /* Token bucket of refusal reports, in thousandths, and when it was computed. */
    int64_t tokens, counted_ms;
    uint32_t lost;
};

struct silt_link_table {
    struct silt_plan plan;
    struct silt_ip_prefix_list open; /* networks that the operator opened */
    struct silt_map map;
    size_t pins; /* of all */
    uint64_t run;
    /* Tells siltd without blocking. false: its queue is full. */
    bool (*tell)(void *context, uint32_t link, const struct silt_egress_refusal *r);
    void *context;
};

int silt_link_table_init(struct silt_link_table *l, const char *pool4, const char *pool6,
                         const char *open, struct silt_error *e);
void silt_link_table_fini(struct silt_link_table *l);

/* 0: no link has this address. */
uint32_t silt_link_table_number(const struct silt_link_table *l,
                                const struct sockaddr_storage *from);
struct silt_egress_link *silt_link_table_find(const struct silt_link_table *l, uint32_t number);
/* Finds or creates; NULL if the number is 0 or the table is full. */
struct silt_egress_link *silt_link_table_at(struct silt_link_table *l, uint32_t number);
/* Its connections have been ended. */
void silt_link_table_drop(struct silt_link_table *l, struct silt_egress_link *link);

/* The limits of a resource that all sandboxes share. */
struct silt_places {
    size_t most, each; /* of all, of one sandbox; each 0: most */
    size_t few;        /* the last quarter is for those who have less than this */
};
bool silt_places_left(const struct silt_places *p, size_t all, size_t own);

/* Fills in the time and the number of lost reports. */
void silt_link_table_refuse(struct silt_link_table *l, struct silt_egress_link *link,
                            struct silt_egress_refusal *r);

silt_ip_prefix silt_link_table_address(const struct sockaddr_storage *at);
uint16_t silt_link_table_port(const struct sockaddr_storage *at);
/* Puts address and port into a refusal. */
void silt_link_table_put(struct silt_egress_refusal *r, const silt_ip_prefix *address,
                         uint16_t port);
