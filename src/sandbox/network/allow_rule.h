/* SPDX-License-Identifier: Apache-2.0 */
/* allow_rule: parses the rules of network mode allow: `example.com`, `*.example.com:8000-9000`,
 * `10.1.0.0/16:5432`, `[2001:db8::]/32:443`. This is the only parser of them; it is strict, and
 * each rule has one canonical spelling. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/ip_prefix.h"
#include "wire/egress.h"

enum {
    SILT_ALLOW_RULES_MAX = 1024, /* per sandbox */
    SILT_ALLOW_RULE_PARTS = 2,   /* a name without ports expands to two: 80 and 443 */
    SILT_ALLOW_RULE_TEXT = 2 + SILT_EGRESS_NAME + sizeof(":65535-65535"),
};

struct silt_allow_rule {
    struct silt_egress_rule parts[SILT_ALLOW_RULE_PARTS];
    size_t count;
    char text[SILT_ALLOW_RULE_TEXT];
};

/* The text of SILT_INVALID says what is wrong and what would be right. */
int silt_allow_rule_parse(silt_slice text, struct silt_allow_rule *ret, struct silt_error *e);
/* The same from two parts. `ports` with data NULL: not given; `host` has no brackets. */
int silt_allow_rule_parse_parts(silt_slice host, silt_slice ports, struct silt_allow_rule *ret,
                                struct silt_error *e);

/* A list under construction; its text has one rule per line. */
struct silt_allow_rules {
    const struct silt_ip_prefix_list
        *open; /* borrowed: closed networks that the operator has opened */
    struct silt_buf text;
    struct silt_map seen; /* text -> index of the rule + 1 */
    struct silt_arena arena;
    size_t count;
};
void silt_allow_rules_init(struct silt_allow_rules *l, const struct silt_ip_prefix_list *open);
void silt_allow_rules_fini(struct silt_allow_rules *l);
/* SILT_DENIED: a closed network; SILT_CONFLICT: a duplicate; SILT_LIMIT: too many. */
int silt_allow_rules_add(struct silt_allow_rules *l, const struct silt_allow_rule *rule,
                         struct silt_error *e);
/* Adds comma-separated rules, as in the setting. */
int silt_allow_rules_add_all(struct silt_allow_rules *l, silt_slice text, struct silt_error *e);
/* Appends the rules as structs of wire/egress.h. Lines that do not parse are skipped. */
void silt_allow_rules_expand(silt_slice text, struct silt_buf *out);
