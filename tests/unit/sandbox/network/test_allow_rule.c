/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network/allow_rule.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_allow_rule parse(const char *text)
{
    struct silt_allow_rule r;
    struct silt_error e;
    if (silt_allow_rule_parse(silt_slice_of(text), &r, &e) < 0)
        fail_msg("%s %s", text, e.text);
    return r;
}

static void assert_refused(const char *text, const char *why)
{
    struct silt_allow_rule r;
    struct silt_error e;
    if (silt_allow_rule_parse(silt_slice_of(text), &r, &e) == 0)
        fail_msg("%s was taken", text);
    assert_int_equal(e.code, SILT_INVALID);
    if (strstr(e.text, why) == NULL)
        fail_msg("%s: got \"%s\", want \"%s\"", text, e.text, why);
}

TEST(a_name_without_ports_is_the_web)
{
    struct silt_allow_rule r = parse("example.com");
    assert_int_equal(r.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(r.parts[i].kind, SILT_EGRESS_EXACT);
        assert_string_equal(r.parts[i].name, "example.com");
        assert_int_equal(r.parts[i].low, i == 0 ? 80 : 443);
        assert_int_equal(r.parts[i].high, r.parts[i].low);
    }
}

TEST(a_wildcard_is_what_is_below)
{
    struct silt_allow_rule r = parse("*.example.com:8000-9000");
    assert_int_equal(r.count, 1);
    assert_int_equal(r.parts[0].kind, SILT_EGRESS_BELOW);
    assert_string_equal(r.parts[0].name, "example.com");
    assert_int_equal(r.parts[0].low, 8000);
    assert_int_equal(r.parts[0].high, 9000);
}

TEST(networks_have_all_ports_unless_some_are_given)
{
    static const uint8_t ten[16] = {10, 1};
    struct silt_allow_rule r = parse("10.1.0.0/16");
    assert_int_equal(r.count, 1);
    assert_int_equal(r.parts[0].kind, SILT_EGRESS_CIDR4);
    assert_int_equal(r.parts[0].bits, 16);
    assert_memory_equal(r.parts[0].address, ten, sizeof(ten));
    assert_int_equal(r.parts[0].low, 1);
    assert_int_equal(r.parts[0].high, 65535);
    r = parse("[2001:db8::]/32:443");
    assert_int_equal(r.parts[0].kind, SILT_EGRESS_CIDR6);
    assert_int_equal(r.parts[0].bits, 32);
    assert_int_equal(r.parts[0].low, 443);
    assert_int_equal(r.parts[0].high, 443);
}

TEST(each_rule_has_one_way_to_be_written)
{
    static const char *const pairs[][2] = {
        {"example.com", "example.com"},
        {"intranet", "intranet"},
        {"my_bucket.s3.example.com:443-443", "my_bucket.s3.example.com:443"},
        {"xn--bcher-kva.example:1-65535", "xn--bcher-kva.example:1-65535"},
        {"1password.com", "1password.com"},
        {"10.1.2.3/32:22", "10.1.2.3:22"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"2001:DB8::1", "2001:db8::1"},
        {"[2001:db8:0::1]:443", "[2001:db8::1]:443"},
        {"[2001:db8::]/32", "2001:db8::/32"},
    };
    for (size_t i = 0; i < SILT_COUNT(pairs); i++)
        assert_string_equal(parse(pairs[i][0]).text, pairs[i][1]);
}

TEST(broken_patterns_are_refused_with_a_way_out)
{
    static const char *const bad[][2] = {
        {"", "no name"},
        {"*", "mode public"},
        {"*.", "no name"},
        {"*.com", "top-level domain"},
        {"*.com:443", "top-level domain"},
        {"*example.com", "*.example.com stands for"},
        {"a.*.example.com", "*.example.com stands for"},
        {"*.*.example.com", "*.example.com stands for"},
        {"Example.com", "lower case"},
        {"b\xc3\xbc"
         "cher.example",
         "xn--"},
        {"example.com.", "leave it out"},
        {"example..com", "empty part"},
        {".example.com", "empty part"},
        {"-a.example.com", "begins or ends with -"},
        {"a-.example.com", "begins or ends with -"},
        {"exa mple.com", "no name has"},
        {"example.com\n", "no name has"},
        {"user@example.com", "no name has"},
        {"https://example.com", "the host alone"},
        {"https://example.com:8443/x", "the host alone"},
        {"example.com/path", "has a path"},
        {"example.com:", "from 1 to 65535"},
        {"example.com:0", "from 1 to 65535"},
        {"example.com:65536", "from 1 to 65535"},
        {"example.com:http", "from 1 to 65535"},
        {"example.com:0443", "from 1 to 65535"},
        {"example.com:80-", "from 1 to 65535"},
        {"example.com:-80", "from 1 to 65535"},
        {"example.com:80-90-95", "from 1 to 65535"},
        {"example.com: 80", "from 1 to 65535"},
        {"example.com:90-80", "end before"},
        {"10.1.2.3/16", "the network is 10.1.0.0/16"},
        {"10.1.0.0/33", "from 0 to 32"},
        {"10.1.0.0/", "from 0 to 32"},
        {"10.1", "no IPv4 address"},
        {"0x7f.0.0.1", "no IPv4 address"},
        {"127.0.0.0x1", "no IPv4 address"},
        {"0177.0.0.1", "no IPv4 address"},
        {"2130706433", "no IPv4 address"},
        {"example.123", "no IPv4 address"},
        {"*.10.1", "no IPv4 address"},
        {"10.0.0.1:80:90", "no IPv6 address"},
        {"[10.0.0.1]:80", "[2001:db8::1]:443"},
        {"[2001:db8::1", "[2001:db8::1]:443"},
        {"[2001:db8::/32]:443", "[2001:db8::1]:443"},
        {"[2001:db8::1]443", "[2001:db8::1]:443"},
        {"[2001:db8::1]:", "from 1 to 65535"},
        {"2001:db8::1/32", "the network is 2001:db8::/32"},
        {"fe80::1%eth0", "no IPv6 address"},
    };
    struct silt_allow_rule r;
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_refused(bad[i][0], bad[i][1]);
    assert_int_equal(silt_allow_rule_parse(SILT_LIT("example.com\0.org"), &r, &e), -1);
}

TEST(names_have_bounds)
{
    char name[300];
    memset(name, 'a', sizeof(name));
    name[64] = 0;
    assert_refused(name, "63 characters");
    name[63] = 0;
    assert_string_equal(parse(name).parts[0].name, name);
    memset(name, 'a', sizeof(name));
    for (size_t i = 63; i < sizeof(name); i += 64)
        name[i] = '.';
    name[254] = 0;
    assert_refused(name, "253");
    name[253] = 0;
    assert_string_equal(parse(name).text, name);
}

static void add(struct silt_allow_rules *l, const char *text)
{
    struct silt_allow_rule r = parse(text);
    struct silt_error e;
    if (silt_allow_rules_add(l, &r, &e) < 0)
        fail_msg("%s %s", text, e.text);
}

static enum silt_code code_of(struct silt_allow_rules *l, const char *text)
{
    struct silt_allow_rule r = parse(text);
    struct silt_error e;
    assert_int_equal(silt_allow_rules_add(l, &r, &e), -1);
    return e.code;
}

TEST(a_list_has_no_duplicates_and_no_closed_networks)
{
    struct silt_ip_prefix_list open;
    struct silt_allow_rules l;
    struct silt_error e;
    assert_int_equal(silt_ip_prefix_list_parse(SILT_LIT("10.1.0.0/16"), &open, &e), 0);
    silt_allow_rules_init(&l, &open);
    add(&l, "example.com");
    add(&l, "example.com:443");
    add(&l, "10.1.7.0/24:5432");
    add(&l, "0.0.0.0/0:443");
    assert_int_equal(code_of(&l, "example.com:443-443"), SILT_CONFLICT);
    assert_int_equal(code_of(&l, "10.2.0.0/16"), SILT_DENIED);
    assert_int_equal(code_of(&l, "169.254.169.254"), SILT_DENIED);
    assert_int_equal(code_of(&l, "[fd00:ec2::254]:80"), SILT_DENIED);
    assert_int_equal(code_of(&l, "::ffff:8.8.8.8"), SILT_DENIED);
    assert_text(silt_buf_slice(&l.text),
                "example.com\nexample.com:443\n10.1.7.0/24:5432\n0.0.0.0/0:443\n");
    struct silt_buf out;
    silt_buf_init(&out, 1 << 20);
    silt_allow_rules_expand(silt_buf_slice(&l.text), &out);
    assert_int_equal(out.len, 5 * sizeof(struct silt_egress_rule));
    silt_buf_fini(&out);
    silt_allow_rules_fini(&l);
}

TEST(a_list_has_an_end)
{
    struct silt_ip_prefix_list open = {.count = 0};
    struct silt_allow_rules l;
    char text[32];
    silt_allow_rules_init(&l, &open);
    for (int i = 0; i < SILT_ALLOW_RULES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "h%d.example.com", i);
        add(&l, text);
    }
    assert_int_equal(code_of(&l, "one.example.com"), SILT_LIMIT);
    assert_false(l.text.broken);
    silt_allow_rules_fini(&l);
}

TEST(the_setting_is_a_list_with_commas)
{
    struct silt_ip_prefix_list open = {.count = 0};
    struct silt_allow_rules l;
    struct silt_error e;
    silt_allow_rules_init(&l, &open);
    assert_int_equal(silt_allow_rules_add_all(&l, SILT_LIT("a.example, *.b.example:443,"), &e), 0);
    assert_text(silt_buf_slice(&l.text), "a.example\n*.b.example:443\n");
    assert_int_equal(silt_allow_rules_add_all(&l, SILT_LIT("c.example, *"), &e), -1);
    assert_non_null(strstr(e.text, "'*'"));
    silt_allow_rules_fini(&l);
}
