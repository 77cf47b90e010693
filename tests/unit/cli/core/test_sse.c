/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/sse.h"
#include "unit/base/unit.h"

/* The data of all events, one a line, when the text comes in pieces of `step` bytes. */
static void cut(const char *text, size_t step, struct silt_buf *ret)
{
    struct silt_sse s;
    struct silt_error e;
    silt_slice data;
    size_t len = strlen(text);
    silt_sse_init(&s);
    silt_buf_init(ret, 4096);
    for (size_t at = 0; at < len; at += step) {
        silt_slice piece = {text + at, len - at < step ? len - at : step};
        int got;
        while ((got = silt_sse_next(&s, &piece, &data, &e)) > 0) {
            silt_buf_add(ret, data);
            silt_buf_add_byte(ret, '|');
        }
        assert_int_equal(got, 0);
    }
    silt_sse_fini(&s);
}

TEST(events_are_the_same_however_they_are_cut)
{
    const char *text =
        "event: a\ndata: one\n\n: comment\n\ndata:two\r\n\r\nid: 7\ndata: 3\ndata: 4\n\ndata: open";
    for (size_t step = 1; step < 40; step++) {
        silt_auto_buf out;
        cut(text, step, &out);
        assert_text(silt_buf_slice(&out), "one|two|3\n4|");
    }
}

TEST(an_empty_data_line_is_an_event)
{
    silt_auto_buf out;
    cut("data:\n\n\n\nevent: x\n\n", 3, &out);
    assert_text(silt_buf_slice(&out), "|");
}
