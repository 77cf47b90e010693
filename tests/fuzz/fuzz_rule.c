/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller allows: a rule that is taken keeps the promises of wire/egress.h, and reads back as
 * itself. */
#include "fuzz/fuzz.h"
#include "sandbox/network/allow_rule.h"

static void check_part(const struct silt_egress_rule *r)
{
    size_t len = strnlen(r->name, sizeof(r->name));
    demand(r->kind >= SILT_EGRESS_EXACT && r->kind < SILT_EGRESS_ANY);
    demand(r->low >= 1 && r->low <= r->high);
    demand(len < sizeof(r->name));
    for (size_t i = len; i < sizeof(r->name); i++)
        demand(r->name[i] == 0);
    if (r->kind == SILT_EGRESS_CIDR4 || r->kind == SILT_EGRESS_CIDR6) {
        demand(len == 0 && r->bits <= (r->kind == SILT_EGRESS_CIDR4 ? 32 : 128));
        for (unsigned i = r->bits; i < 128; i++)
            demand((r->address[i / 8] & (0x80 >> i % 8)) == 0);
        return;
    }
    demand(len > 0 && r->name[0] != '.' && r->name[len - 1] != '.'
           && strstr(r->name, "..") == NULL);
    demand(strspn(r->name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_allow_rule rule, again;
    struct silt_error e;
    if (silt_allow_rule_parse((silt_slice){(const char *)data, size}, &rule, &e) < 0)
        return 0;
    demand(rule.count >= 1 && rule.count <= SILT_ALLOW_RULE_PARTS);
    for (size_t i = 0; i < rule.count; i++)
        check_part(&rule.parts[i]);
    demand(silt_allow_rule_parse(silt_slice_of(rule.text), &again, &e) == 0);
    demand(again.count == rule.count && strcmp(again.text, rule.text) == 0);
    demand(memcmp(again.parts, rule.parts, rule.count * sizeof(rule.parts[0])) == 0);
    return 0;
}
