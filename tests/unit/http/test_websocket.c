/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "http/websocket.h"
#include "unit/base/table.h"
#include "unit/base/unit.h"

#include <stdio.h>

enum { MOST = 1000 };

static int wrong;

/* Of all that comes: how often which, and the sum of what it brought; the same however it is cut.
 */
struct tale {
    enum silt_ws_got last;
    int code;
    size_t messages, pings, closes;
    uint64_t sum;
};

static struct tale read_all(silt_slice all, size_t piece)
{
    struct silt_ws_reader r;
    struct tale t = {0};
    silt_ws_reader_init(&r, false, MOST);
    while (all.len > 0 && t.last != SILT_WS_BAD) {
        silt_slice in = {all.data, all.len < piece ? all.len : piece}, payload;
        size_t had = in.len;
        while ((t.last = silt_ws_read(&r, &in, &payload)) != SILT_WS_MORE
               && t.last != SILT_WS_BAD) {
            t.messages += t.last == SILT_WS_GOT_MESSAGE;
            t.pings += t.last == SILT_WS_GOT_PING;
            t.closes += t.last == SILT_WS_GOT_CLOSE;
            for (size_t i = 0; i < payload.len; i++)
                t.sum = t.sum * 31 + (unsigned char)payload.data[i];
        }
        all.data += had - in.len;
        all.len -= had - in.len;
    }
    t.code = r.code;
    silt_ws_reader_fini(&r);
    return t;
}

static bool is_as_said(const struct table_case *c, const struct tale *t)
{
    int code = c->name[0] - '0'; /* a refusal's name begins with the last digit of its code */
    switch (c->verdict) {
    case 'y':
        return t->last == SILT_WS_MORE && t->messages + t->pings + t->closes > 0;
    case 'i':
        return t->last == SILT_WS_MORE && t->messages + t->pings + t->closes == 0;
    default:
        return t->last == SILT_WS_BAD && t->code == 1000 + code;
    }
}

static void check(void *context, const struct table_case *c)
{
    (void)context;
    struct tale whole = read_all(c->bytes, SIZE_MAX);
    if (!is_as_said(c, &whole)) {
        print_message("%c %s: %d, code %d\n", c->verdict, c->name, (int)whole.last, whole.code);
        wrong++;
    }
    for (size_t piece = 1; piece < 9; piece++) {
        struct tale cut = read_all(c->bytes, piece);
        if (cut.last != whole.last || cut.sum != whole.sum || cut.messages != whole.messages) {
            print_message("%s: another in pieces of %zu\n", c->name, piece);
            wrong++;
        }
    }
}

TEST(the_table_of_frames_is_judged_strictly)
{
    wrong = 0;
    assert_in_range(table_each(FRAMES, check, NULL), 30, 1000);
    assert_int_equal(wrong, 0);
}

static void check_size(size_t len, const uint8_t *mask)
{
    static char text[100000];
    struct silt_ws_reader r;
    silt_slice in, payload;
    silt_auto_buf b;
    silt_buf_init(&b, sizeof(text) + SILT_WS_HEAD_MAX);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + i % 26);
    silt_ws_reader_init(&r, mask == NULL, sizeof(text));
    silt_ws_put(&b, SILT_WS_TEXT, (silt_slice){text, len}, mask);
    in = silt_buf_slice(&b);
    assert_int_equal(silt_ws_read(&r, &in, &payload), SILT_WS_GOT_MESSAGE);
    assert_int_equal(in.len, 0);
    assert_slice(payload, ((silt_slice){text, len}));
    silt_ws_reader_fini(&r);
}

TEST(what_is_written_is_read_at_every_size)
{
    static const size_t sizes[] = {0, 1, 3, 4, 125, 126, 127, 65535, 65536, 100000};
    static const uint8_t mask[4] = {1, 2, 0x83, 0xf4};
    for (size_t i = 0; i < SILT_COUNT(sizes); i++) {
        check_size(sizes[i], NULL);
        check_size(sizes[i], mask);
    }
}

TEST(a_server_frame_with_a_mask_is_refused_by_a_client)
{
    struct silt_ws_reader r;
    silt_slice in = SILT_LIT("\x81\x81\x01\x01\x01\x01`"), payload;
    silt_ws_reader_init(&r, true, MOST);
    assert_int_equal(silt_ws_read(&r, &in, &payload), SILT_WS_BAD);
    assert_int_equal(r.code, SILT_WS_WRONG);
    silt_ws_reader_fini(&r);
}

TEST(a_message_announced_as_huge_takes_no_memory)
{
    struct silt_ws_reader r;
    silt_slice in = SILT_LIT("\x82\xff\0\0\0\0\x7f\xff\xff\xff\1\2\3\4"), payload;
    silt_ws_reader_init(&r, false, SIZE_MAX / 4);
    assert_int_equal(silt_ws_read(&r, &in, &payload), SILT_WS_MORE);
    assert_int_equal(r.message.cap, 0);
    silt_ws_reader_fini(&r);
}

TEST(a_reason_is_cut_at_a_character)
{
    char reason[130];
    struct silt_ws_reader r;
    silt_slice in, payload;
    silt_auto_buf b;
    silt_buf_init(&b, 200);
    memset(reason, 'a', sizeof(reason));
    memcpy(reason + 122, "\xc3\xbc", 2);
    silt_ws_reader_init(&r, true, MOST);
    silt_ws_put_close(&b, SILT_WS_FAILED, (silt_slice){reason, sizeof(reason)}, NULL);
    in = silt_buf_slice(&b);
    assert_int_equal(silt_ws_read(&r, &in, &payload), SILT_WS_GOT_CLOSE);
    assert_int_equal(payload.len, 2 + 122);
    assert_int_equal(silt_ws_close_code(payload), SILT_WS_FAILED);
    silt_ws_reader_fini(&r);
}

TEST(the_answer_to_a_key_is_that_of_the_standard)
{
    char accept[SILT_WS_ACCEPT_SIZE];
    silt_ws_accept(SILT_LIT("dGhlIHNhbXBsZSBub25jZQ=="), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
