/* SPDX-License-Identifier: Apache-2.0 */
/* rule: what a sandbox in mode allow may reach, as people write it: `example.com`,
 * `*.example.com:8000-9000`, `10.1.0.0/16:5432`, `[2001:db8::]/32:443`. Read strictly and only
 * here; each has one way to be written. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/prefix.h"
#include "wire/egress.h"

enum {
    SILT_RULES_MAX = 1024, /* of one sandbox */
    SILT_RULE_PARTS = 2,   /* a name without ports means two of them: 80 and 443 */
    SILT_RULE_TEXT = 2 + SILT_EGRESS_NAME + sizeof(":65535-65535"),
};

struct silt_rule {
    struct silt_egress_rule parts[SILT_RULE_PARTS];
    size_t count;
    char text[SILT_RULE_TEXT];
};

/* SILT_INVALID tells what is wrong with it and what would be right. */
int silt_rule_parse(silt_slice text, struct silt_rule *ret, struct silt_error *e);
/* The same in two pieces. `ports` without data: none were given; `host` has no brackets. */
int silt_rule_parse_parts(silt_slice host, silt_slice ports, struct silt_rule *ret,
                          struct silt_error *e);

/* A list that is being read, until it is text again: one rule a line. */
struct silt_rules {
    const struct silt_prefix_list *open; /* borrowed: closed networks that the operator opened */
    struct silt_buf text;
    struct silt_map seen; /* text -> the rule's place, from 1 */
    struct silt_arena arena;
    size_t count;
};
void silt_rules_init(struct silt_rules *l, const struct silt_prefix_list *open);
void silt_rules_fini(struct silt_rules *l);
/* SILT_DENIED: a closed network; SILT_CONFLICT: it is there already; SILT_LIMIT: too many. */
int silt_rules_add(struct silt_rules *l, const struct silt_rule *rule, struct silt_error *e);
/* Rules with commas: the setting. */
int silt_rules_add_all(struct silt_rules *l, silt_slice text, struct silt_error *e);
/* The structs of wire/egress.h, one after the other. Lines that are none of ours are left out. */
void silt_rules_expand(silt_slice text, struct silt_buf *out);
