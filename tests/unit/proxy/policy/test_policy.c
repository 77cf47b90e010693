/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy/dns_pins.h"
#include "unit/base/unit.h"

static struct silt_egress_rule name_rule(enum silt_egress_kind kind, const char *name, uint16_t low,
                                         uint16_t high)
{
    struct silt_egress_rule r = {.kind = (uint8_t)kind, .low = low, .high = high};
    (void)snprintf(r.name, sizeof(r.name), "%s", name);
    return r;
}

static silt_ip_prefix address(const char *text)
{
    silt_ip_prefix p;
    struct silt_error e;
    assert_int_equal(silt_ip_prefix_parse(silt_slice_of(text), &p, &e), 0);
    return p;
}

static struct silt_egress_rule network_rule(const char *text, uint16_t low, uint16_t high)
{
    silt_ip_prefix p = address(text);
    struct silt_egress_rule r = {.kind = p.family == 4 ? SILT_EGRESS_CIDR4 : SILT_EGRESS_CIDR6,
                                 .bits = p.bits,
                                 .low = low,
                                 .high = high};
    memcpy(r.address, p.bytes, sizeof(p.bytes));
    return r;
}

static struct silt_policy *make(const struct silt_egress_rule *rules, size_t count)
{
    struct silt_policy *p;
    struct silt_error e;
    assert_int_equal(silt_policy_new(rules, count, &p, &e), 0);
    return p;
}

static int verdict(const struct silt_policy *p, const char *name, uint16_t port)
{
    return (int)silt_policy_name(p, silt_slice_of(name), port);
}

TEST(names_match_exactly_or_below_a_suffix)
{
    struct silt_egress_rule rules[] = {name_rule(SILT_EGRESS_EXACT, "example.com", 443, 443),
                                       name_rule(SILT_EGRESS_BELOW, "example.org", 80, 90)};
    struct silt_policy *p = make(rules, 2);
    assert_int_equal(verdict(p, "example.com", 443), SILT_POLICY_YES);
    assert_int_equal(verdict(p, "example.com", 80), SILT_POLICY_OTHER_PORT);
    assert_int_equal(verdict(p, "www.example.com", 443), SILT_POLICY_NO);
    assert_int_equal(verdict(p, "example.org", 80), SILT_POLICY_NO);
    assert_int_equal(verdict(p, "a.example.org", 80), SILT_POLICY_YES);
    assert_int_equal(verdict(p, "a.b.example.org", 90), SILT_POLICY_YES);
    assert_int_equal(verdict(p, "a.example.org", 91), SILT_POLICY_OTHER_PORT);
    assert_int_equal(verdict(p, "evilexample.org", 80), SILT_POLICY_NO);
    assert_int_equal(verdict(p, ".example.org", 80), SILT_POLICY_NO);
    assert_int_equal(verdict(p, "example.org.evil.test", 80), SILT_POLICY_NO);
    assert_true(silt_policy_names(p, SILT_LIT("a.example.org")));
    assert_false(silt_policy_names(p, SILT_LIT("example.net")));
    silt_policy_free(p);
}

TEST(the_best_of_several_rules_counts)
{
    struct silt_egress_rule rules[] = {name_rule(SILT_EGRESS_EXACT, "a.test", 1, 1),
                                       name_rule(SILT_EGRESS_ANY, "", 443, 443),
                                       name_rule(SILT_EGRESS_EXACT, "a.test", 80, 80)};
    struct silt_policy *p = make(rules, 3);
    assert_int_equal(verdict(p, "a.test", 80), SILT_POLICY_YES);
    assert_int_equal(verdict(p, "b.test", 443), SILT_POLICY_YES);
    assert_int_equal(verdict(p, "b.test", 80), SILT_POLICY_OTHER_PORT);
    silt_policy_free(p);
}

TEST(networks_match_by_family_and_prefix)
{
    struct silt_egress_rule rules[] = {network_rule("93.184.0.0/16", 22, 22),
                                       network_rule("2606:4700::/32", 1, 65535)};
    struct silt_policy *p = make(rules, 2);
    silt_ip_prefix in = address("93.184.1.2"), out = address("93.185.1.2"),
                   six = address("2606:4700::1"), all = address("::1");
    assert_int_equal(silt_policy_address(p, &in, 22), SILT_POLICY_YES);
    assert_int_equal(silt_policy_address(p, &in, 23), SILT_POLICY_OTHER_PORT);
    assert_int_equal(silt_policy_address(p, &out, 22), SILT_POLICY_NO);
    assert_int_equal(silt_policy_address(p, &six, 65535), SILT_POLICY_YES);
    assert_int_equal(silt_policy_address(p, &all, 22), SILT_POLICY_NO);
    assert_int_equal(verdict(p, "93.184.1.2", 22), SILT_POLICY_NO);
    silt_policy_free(p);
}

TEST(rules_that_are_none_are_refused)
{
    struct silt_egress_rule bad[] = {
        name_rule(SILT_EGRESS_EXACT, "", 80, 80),
        name_rule(SILT_EGRESS_EXACT, "a..b", 80, 80),
        name_rule(SILT_EGRESS_EXACT, ".a", 80, 80),
        name_rule(SILT_EGRESS_EXACT, "a.", 80, 80),
        name_rule(SILT_EGRESS_EXACT, "A.test", 80, 80),
        name_rule(SILT_EGRESS_BELOW, "*.test", 80, 80),
        name_rule(SILT_EGRESS_EXACT, "a b", 80, 80),
        name_rule(SILT_EGRESS_EXACT, "a.test", 0, 80),
        name_rule(SILT_EGRESS_EXACT, "a.test", 81, 80),
        name_rule(0, "a.test", 80, 80),
        name_rule(SILT_EGRESS_KIND_MAX, "a.test", 80, 80),
        {.kind = SILT_EGRESS_CIDR4, .bits = 33, .low = 1, .high = 1},
        {.kind = SILT_EGRESS_CIDR4, .bits = 8, .low = 1, .high = 1, .address = {10, 1}},
        {.kind = SILT_EGRESS_CIDR6, .bits = 129, .low = 1, .high = 1},
    };
    struct silt_policy *p;
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (silt_policy_new(&bad[i], 1, &p, &e) == 0)
            fail_msg("rule %zu was taken", i);
    struct silt_egress_rule full = name_rule(SILT_EGRESS_EXACT, "a", 80, 80);
    memset(full.name, 'a', sizeof(full.name));
    assert_int_equal(silt_policy_new(&full, 1, &p, &e), -1);
    assert_int_equal(silt_policy_new(&full, SILT_EGRESS_RULES_MAX + 1, &p, &e), -1);
}

TEST(hosts_are_made_comparable)
{
    static const char *const good[][2] = {{"Example.COM", "example.com"},
                                          {"example.com.", "example.com"},
                                          {"xn--bcher-kva.test", "xn--bcher-kva.test"},
                                          {"_dmarc.a-b.test", "_dmarc.a-b.test"},
                                          {"0x7f.test", "0x7f.test"}};
    static const char *const bad[] = {
        "",         ".",         "..",           "a..",      "a..b",
        "10.1.2.3", "127.1",     "2130706433",   "0x7f.0x1", "0x7f000001",
        "[::1]",    "::1",       "a b",          "a/b",      "b\xc3\xbc.test",
        "a%2eb",    "user@host", "example.com.."};
    char out[SILT_EGRESS_NAME];
    for (size_t i = 0; i < SILT_COUNT(good); i++) {
        assert_true(silt_policy_clean(silt_slice_of(good[i][0]), out));
        assert_string_equal(out, good[i][1]);
    }
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        if (silt_policy_clean(silt_slice_of(bad[i]), out))
            fail_msg("%s was taken", bad[i]);
        assert_string_equal(out, "");
    }
    assert_false(silt_policy_clean(SILT_LIT("good.test\0.evil.test"), out));
}

/* Pins */

TEST(an_address_counts_for_the_name_it_was_told_for)
{
    size_t all = 0;
    struct silt_dns_pins p;
    silt_ip_prefix one = address("93.184.1.2"), two = address("2606:4700::1");
    silt_dns_pins_init(&p, &all);
    silt_dns_pins_add(&p, SILT_LIT("a.test"), &one, 60, 1000);
    assert_true(silt_dns_pins_has(&p, SILT_LIT("a.test"), &one, 1000));
    assert_false(silt_dns_pins_has(&p, SILT_LIT("b.test"), &one, 1000));
    assert_false(silt_dns_pins_has(&p, SILT_LIT("a.test"), &two, 1000));
    assert_false(silt_dns_pins_has(&p, SILT_LIT("a.tes"), &one, 1000));
    assert_int_equal(all, 1);
    silt_dns_pins_fini(&p);
    assert_int_equal(all, 0);
}

TEST(pins_last_as_long_as_the_answer_within_bounds)
{
    static const struct {
        uint32_t ttl;
        int64_t lasts;
    } cases[] = {{0, SILT_DNS_PINS_LEAST_S},
                 {1000, 1000 + SILT_DNS_PINS_GRACE_S},
                 {UINT32_MAX, SILT_DNS_PINS_MOST_S + SILT_DNS_PINS_GRACE_S}};
    silt_ip_prefix at = address("93.184.1.2");
    for (size_t i = 0; i < SILT_COUNT(cases); i++) {
        size_t all = 0;
        struct silt_dns_pins p;
        int64_t end = 5000 + cases[i].lasts * 1000;
        silt_dns_pins_init(&p, &all);
        silt_dns_pins_add(&p, SILT_LIT("a.test"), &at, cases[i].ttl, 5000);
        assert_true(silt_dns_pins_has(&p, SILT_LIT("a.test"), &at, end - 1));
        assert_false(silt_dns_pins_has(&p, SILT_LIT("a.test"), &at, end));
        silt_dns_pins_add(&p, SILT_LIT("a.test"), &at, cases[i].ttl, end); /* asked again */
        assert_true(silt_dns_pins_has(&p, SILT_LIT("a.test"), &at, end));
        assert_int_equal(all, 1);
        silt_dns_pins_fini(&p);
    }
}

TEST(the_oldest_pin_makes_room)
{
    size_t all = 0;
    struct silt_dns_pins p;
    silt_dns_pins_init(&p, &all);
    for (uint32_t i = 0; i <= SILT_DNS_PINS_MAX; i++) {
        silt_ip_prefix at = {
            .family = 4, .bits = 32, .bytes = {1, 2, (uint8_t)(i >> 8), (uint8_t)i}};
        silt_dns_pins_add(&p, SILT_LIT("a.test"), &at, 60, 0);
    }
    silt_ip_prefix first = address("1.2.0.0"), second = address("1.2.0.1");
    assert_int_equal(all, SILT_DNS_PINS_MAX);
    assert_false(silt_dns_pins_has(&p, SILT_LIT("a.test"), &first, 0));
    assert_true(silt_dns_pins_has(&p, SILT_LIT("a.test"), &second, 0));
    all = SILT_DNS_PINS_ALL_MAX; /* as if others had the rest */
    silt_dns_pins_add(&p, SILT_LIT("b.test"), &first, 60, 0);
    assert_true(silt_dns_pins_has(&p, SILT_LIT("b.test"), &first, 0));
    assert_false(silt_dns_pins_has(&p, SILT_LIT("a.test"), &second, 0));
    struct silt_dns_pins late;
    silt_dns_pins_init(&late, &all);
    silt_dns_pins_add(&late, SILT_LIT("a.test"), &first, 60, 0);
    assert_int_equal(late.count, 0);
    silt_dns_pins_fini(&p);
}

TEST(an_address_is_reached_by_the_names_that_the_policy_allows)
{
    struct silt_egress_rule rules[] = {name_rule(SILT_EGRESS_EXACT, "a.test", 22, 22)};
    struct silt_policy *policy = make(rules, 1);
    size_t all = 0;
    struct silt_dns_pins p;
    silt_ip_prefix at = address("93.184.1.2"), other = address("93.184.1.3");
    silt_dns_pins_init(&p, &all);
    silt_dns_pins_add(&p, SILT_LIT("a.test"), &at, 60, 0);
    silt_dns_pins_add(&p, SILT_LIT("b.test"), &other, 60, 0);
    assert_int_equal(silt_dns_pins_reach(&p, policy, &at, 22, 0), SILT_POLICY_YES);
    assert_int_equal(silt_dns_pins_reach(&p, policy, &at, 23, 0), SILT_POLICY_OTHER_PORT);
    assert_int_equal(silt_dns_pins_reach(&p, policy, &other, 22, 0), SILT_POLICY_NO);
    assert_int_equal(silt_dns_pins_reach(&p, policy, &at, 22, 1000000), SILT_POLICY_NO);
    silt_dns_pins_prune(&p, policy);
    assert_int_equal(all, 1);
    silt_dns_pins_fini(&p);
    silt_policy_free(policy);
}

TEST(in_a_crowd_everybody_keeps_a_few_pins)
{
    struct silt_dns_pins greedy, late;
    size_t all = SILT_DNS_PINS_ALL_MAX - SILT_DNS_PINS_ALL_MAX / 4;
    silt_dns_pins_init(&greedy, &all);
    silt_dns_pins_init(&late, &all);
    silt_ip_prefix at = address("1.2.3.0");
    for (int i = 0; i < 2 * SILT_DNS_PINS_FEW; i++, at.bytes[3]++)
        silt_dns_pins_add(&greedy, SILT_LIT("a.test"), &at, 60, 0);
    assert_int_equal(greedy.count, SILT_DNS_PINS_FEW);
    silt_dns_pins_add(&late, SILT_LIT("a.test"), &at, 60, 0);
    assert_true(silt_dns_pins_has(&late, SILT_LIT("a.test"), &at, 1));
    silt_dns_pins_fini(&greedy);
    silt_dns_pins_fini(&late);
}
