/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/sse.h"

void silt_sse_init(struct silt_sse *s)
{
    s->has_data = false;
    silt_buf_init(&s->line, SILT_SSE_EVENT_MAX);
    silt_buf_init(&s->data, SILT_SSE_EVENT_MAX);
}

void silt_sse_fini(struct silt_sse *s)
{
    silt_buf_fini(&s->line);
    silt_buf_fini(&s->data);
}

/* Event names, ids and comments are ignored: the data holds its own type. */
static void take_line(struct silt_sse *s, silt_slice line)
{
    silt_slice prefix = SILT_LIT("data:");
    if (line.len > 0 && line.data[line.len - 1] == '\r')
        line.len--;
    if (!silt_slice_starts(line, prefix))
        return;
    line = (silt_slice){line.data + prefix.len, line.len - prefix.len};
    if (line.len > 0 && line.data[0] == ' ')
        line = (silt_slice){line.data + 1, line.len - 1};
    if (s->has_data)
        silt_buf_add_byte(&s->data, '\n');
    else
        silt_buf_clear(&s->data);
    silt_buf_add(&s->data, line);
    s->has_data = true;
}

static bool is_blank(silt_slice line)
{
    return line.len == 0 || (line.len == 1 && line.data[0] == '\r');
}

int silt_sse_next(struct silt_sse *s, silt_slice *in, silt_slice *ret_data, struct silt_error *e)
{
    while (in->len > 0) {
        const char *end = memchr(in->data, '\n', in->len);
        size_t n = end != NULL ? (size_t)(end - in->data) : in->len;
        silt_buf_add(&s->line, (silt_slice){in->data, n});
        n += end != NULL;
        *in = (silt_slice){in->data + n, in->len - n};
        if (s->line.broken)
            return silt_fail(e, SILT_LIMIT, "event larger than %d bytes", SILT_SSE_EVENT_MAX);
        if (end == NULL)
            return 0;
        bool done = is_blank(silt_buf_slice(&s->line)) && s->has_data;
        take_line(s, silt_buf_slice(&s->line));
        silt_buf_clear(&s->line);
        if (s->data.broken)
            return silt_fail(e, SILT_LIMIT, "event larger than %d bytes", SILT_SSE_EVENT_MAX);
        if (!done)
            continue;
        s->has_data = false;
        *ret_data = silt_buf_slice(&s->data);
        return 1;
    }
    return 0;
}
