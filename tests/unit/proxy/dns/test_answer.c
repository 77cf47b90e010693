/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/answer.h"
#include "base/own.h"
#include "unit/base/unit.h"

#define HEAD(answers) "\x12\x34\x81\x80\x00\x01\x00" answers "\x00\x00\x00\x00"
#define ASKED                                                                                      \
    "\x01"                                                                                         \
    "a\x04test\x00"
#define IN_A "\x00\x01\x00\x01"
#define TTL "\x00\x01\x51\x80" /* a day */
#define ADDRESS(name, bytes) name IN_A TTL "\x00\x04" bytes

static const struct silt_dns_question question = {
    .id = 0x1234, .type = SILT_DNS_A, .class = 1, .name = "a.test", .end = 12 + 8 + 4};
static const struct silt_ip_prefix_list none;

struct reading {
    char bytes[512];
    size_t len;
    struct silt_dns_answer answer;
    int done;
};

static struct reading read_answer(silt_slice text, const struct silt_ip_prefix_list *open)
{
    struct reading r = {.len = text.len};
    struct silt_error e;
    memcpy(r.bytes, text.data, text.len);
    r.done = silt_dns_answer_read(r.bytes, r.len, &question, open, 3600, &r.answer, &e);
    return r;
}

TEST(addresses_of_the_name_are_found)
{
    struct reading r = read_answer(SILT_LIT(HEAD("\x02") ASKED IN_A ADDRESS(
                                       "\xc0\x0c", "\x08\x08\x08\x08") ADDRESS("\x01"
                                                                               "A\x04TEST\x00",
                                                                               "\x01\x01\x01\x01")),
                                   &none);
    assert_int_equal(r.done, 0);
    assert_int_equal(r.answer.count, 2);
    assert_int_equal(r.answer.list[0].bytes[0], 8);
    assert_int_equal(r.answer.list[1].bytes[0], 1);
    assert_int_equal(r.answer.ttl_s, 3600);
    assert_memory_equal(r.bytes + 24 + 2 + 4, "\x00\x00\x0e\x10", 4); /* and it is told so */
}

#define ALIAS(from, to) from "\x00\x05\x00\x01" TTL "\x00\x03\x01" to "\x00"

TEST(aliases_are_followed_in_any_order)
{
    struct reading r =
        read_answer(SILT_LIT(HEAD("\x04") ASKED IN_A ADDRESS("\x01"
                                                             "c\x00",
                                                             "\x08\x08\x08\x08") ALIAS("\x01"
                                                                                       "b\x00",
                                                                                       "c")
                                 ALIAS("\xc0\x0c", "b") ADDRESS("\x01"
                                                                "x\x00",
                                                                "\x01\x01\x01\x01")),
                    &none);
    assert_int_equal(r.done, 0);
    assert_int_equal(r.answer.count, 1); /* x is nobody's alias */
    assert_int_equal(r.answer.list[0].bytes[0], 8);
}

TEST(aliases_in_a_circle_end)
{
    struct reading r =
        read_answer(SILT_LIT(HEAD("\x02") ASKED IN_A ALIAS("\xc0\x0c", "b") ALIAS("\x01"
                                                                                  "b\x00",
                                                                                  "b")),
                    &none);
    assert_int_equal(r.done, 0);
    assert_int_equal(r.answer.count, 0);
}

TEST(closed_addresses_are_taken_out_unless_opened)
{
    silt_slice text =
        SILT_LIT(HEAD("\x03") ASKED IN_A ADDRESS("\xc0\x0c", "\x0a\x01\x02\x03")
                     ADDRESS("\xc0\x0c", "\x08\x08\x08\x08") ADDRESS("\x01"
                                                                     "x\x00",
                                                                     "\x7f\x00\x00\x01"));
    struct reading r = read_answer(text, &none);
    assert_int_equal(r.answer.closed, 2);
    assert_int_equal(r.answer.first.bytes[0], 10);
    size_t len = silt_dns_answer_write(r.bytes, r.len, &question, &r.answer);
    assert_int_equal(len, question.end + 16);
    struct silt_dns_answer again;
    struct silt_error e;
    assert_int_equal(silt_dns_answer_read(r.bytes, len, &question, &none, 0, &again, &e), 0);
    assert_true(again.count == 1 && again.closed == 0 && again.list[0].bytes[0] == 8);
    struct silt_ip_prefix_list open;
    assert_int_equal(silt_ip_prefix_list_parse(SILT_LIT("10.1.0.0/16, 127.0.0.0/8"), &open, &e), 0);
    r = read_answer(text, &open);
    assert_true(r.answer.closed == 0 && r.answer.count == 2);
}

TEST(broken_answers_are_refused)
{
    static const silt_slice bad[] = {
        {"", 0},
        SILT_LIT("\x12\x34\x81\x80\x00\x01"),
        SILT_LIT("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" ASKED IN_A), /* a question */
        SILT_LIT(HEAD("\x00") "\x01"
                              "b\x04test\x00" IN_A),
        SILT_LIT(HEAD("\x00") ASKED "\x00\x1c\x00\x01"),
        SILT_LIT(HEAD("\x01") ASKED IN_A),
        SILT_LIT(HEAD("\x01") ASKED IN_A "\xc0\x18" IN_A TTL "\x00\x00"), /* a jump to itself */
        SILT_LIT(HEAD("\x01") ASKED IN_A "\xc0\xff" IN_A TTL "\x00\x00"),
        SILT_LIT(HEAD("\x01") ASKED IN_A "\xc0\x0c" IN_A TTL "\x00\x05"
                                         "1234"),
        SILT_LIT(HEAD("\x01") ASKED IN_A "\x40" IN_A TTL "\x00\x00"),
        SILT_LIT(HEAD("\x01") ASKED IN_A "\xc0\x0c\x00\x05\x00\x01" TTL "\x00\x02\xc0"),
    };
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        struct reading r = read_answer(bad[i], &none);
        if (r.done == 0)
            fail_msg("answer %zu was taken", i);
    }
}

TEST(a_question_leaves_without_what_was_put_behind_it)
{
    char m[64] = "\x12\x34\x79\xff\x00\x01\x00\x00\x00\x00\x00\x01" ASKED IN_A
                 "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x04"
                 "data";
    size_t len = silt_dns_question_strip(m, question.end + 15, &question);
    assert_int_equal(len, question.end + 11);
    assert_memory_equal(m + 2, "\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01", 10);
    assert_memory_equal(m + question.end, "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00", 11);
    m[11] = 0;
    assert_int_equal(silt_dns_question_strip(m, question.end, &question), question.end);
}
