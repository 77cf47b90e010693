/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/wire.h"
#include "base/own.h"
#include "unit/base/unit.h"

/* Identity 0x1234, recursion wanted, one question, then the question itself. */
#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define A_IN "\x00\x01\x00\x01"
#define EXAMPLE                                                                                    \
    "\x03WWW\x07"                                                                                  \
    "Example\x04test\x00"

static const struct silt_dns_question none;

TEST(a_question_is_read_in_lower_case)
{
    struct silt_dns_question q = none;
    struct silt_error e;
    assert_int_equal(silt_dns_parse(SILT_LIT(HEAD EXAMPLE A_IN), &q, &e), 0);
    assert_string_equal(q.name, "www.example.test");
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.type, 1);
    assert_int_equal(q.class, 1);
    assert_int_equal(q.end, sizeof(HEAD EXAMPLE A_IN) - 1);
}

TEST(the_root_is_a_name)
{
    struct silt_dns_question q = none;
    struct silt_error e;
    assert_int_equal(silt_dns_parse(SILT_LIT(HEAD "\x00\x00\x02\x00\x01"), &q, &e), 0);
    assert_string_equal(q.name, "");
}

TEST(what_follows_the_question_is_not_looked_at)
{
    struct silt_dns_question q = none;
    struct silt_error e;
    assert_int_equal(silt_dns_parse(SILT_LIT(HEAD EXAMPLE A_IN "\xff\xff\xff"), &q, &e), 0);
    assert_int_equal(q.end, sizeof(HEAD EXAMPLE A_IN) - 1);
}

TEST(what_nobody_can_read_is_refused)
{
    static const silt_slice bad[] = {
        SILT_LIT(""),
        SILT_LIT("\x12\x34\x01"),
        SILT_LIT(HEAD),
        SILT_LIT(HEAD "\x03www"),                 /* no end */
        SILT_LIT(HEAD "\x03www\x00"),             /* no type */
        SILT_LIT(HEAD "\x03www\x00\x00\x01\x00"), /* half a class */
        SILT_LIT(HEAD "\x09www\x00" A_IN),        /* a label beyond the end */
        SILT_LIT(HEAD "\xc0\x0c" A_IN),           /* points to itself */
        SILT_LIT(HEAD "\x03"
                      "a.b\x00" A_IN), /* a dot inside a label */
        SILT_LIT(HEAD "\x03"
                      "a\x00"
                      "b\x00" A_IN),
        SILT_LIT(HEAD "\x03"
                      "a b\x00" A_IN),
        SILT_LIT("\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN), /* no question */
        SILT_LIT("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN), /* two */
    };
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        struct silt_dns_question q = none;
        struct silt_error e;
        if (silt_dns_parse(bad[i], &q, &e) == 0 || e.code != SILT_PROTOCOL)
            fail_msg("case %zu was taken", i);
    }
}

TEST(a_name_of_more_than_253_bytes_is_refused)
{
    char m[SILT_DNS_HEAD + 5 * 64 + 8] = HEAD;
    struct silt_dns_question q = none;
    struct silt_error e;
    size_t at = SILT_DNS_HEAD;
    for (int i = 0; i < 4; i++) {
        m[at++] = 62;
        memset(m + at, 'a', 62);
        at += 62;
    }
    silt_slice whole = {m, at + 5};
    assert_int_equal(silt_dns_parse(whole, &q, &e), 0);
    assert_int_equal(strlen(q.name), 4 * 62 + 3);
    m[at] = 1;
    m[at + 1] = 'b'; /* 253 */
    whole.len = at + 7;
    assert_int_equal(silt_dns_parse(whole, &q, &e), 0);
    m[at] = 2;
    m[at + 2] = 'b'; /* 254 */
    whole.len = at + 8;
    assert_int_equal(silt_dns_parse(whole, &q, &e), -1);
}

TEST(answers_and_updates_are_no_questions)
{
    static const silt_slice other[] = {
        SILT_LIT("\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN), /* an answer */
        SILT_LIT("\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00" EXAMPLE A_IN), /* an update */
    };
    for (size_t i = 0; i < SILT_COUNT(other); i++) {
        struct silt_dns_question q = none;
        struct silt_error e;
        assert_int_equal(silt_dns_parse(other[i], &q, &e), -1);
        assert_int_equal(e.code, SILT_INVALID);
        assert_string_equal(q.name, "www.example.test"); /* so that it can be answered */
    }
}

TEST(an_empty_answer_carries_the_question_and_nothing_else)
{
    char m[] = HEAD EXAMPLE A_IN "\xff\xff\xff";
    struct silt_dns_question q = none;
    struct silt_error e;
    assert_int_equal(silt_dns_parse((silt_slice){m, sizeof(m) - 1}, &q, &e), 0);
    m[11] = 1; /* as if there were additional records */
    size_t len = silt_dns_answer_empty(m, &q, SILT_DNS_REFUSED);
    assert_int_equal(len, sizeof(HEAD EXAMPLE A_IN) - 1);
    assert_memory_equal(m, "\x12\x34\x81\x85\x00\x01\x00\x00\x00\x00\x00\x00", SILT_DNS_HEAD);
}
