/* SPDX-License-Identifier: Apache-2.0 */
/* What an interpreter process says: whatever is taken keeps its bounds, and can be told on as JSON.
 * And what siltd says is one line of JSON, whatever the user's bytes are. */
#include "fuzz/fuzz.h"
#include "base/own.h"
#include "sandbox/context/kernel_protocol.h"

static struct silt_error e;

static void check_slice(silt_slice s)
{
    demand(s.len == 0 || (s.data != NULL && silt_slice_is_utf8(s)));
}

static void check_heard(const struct silt_kernel_said *s)
{
    silt_auto_buf b;
    silt_auto_arena arena;
    const struct silt_json *again;
    silt_buf_init(&b, 1 << 28);
    silt_arena_init(&arena, 1 << 28);
    demand(s->word < SILT_KERNEL_WORD_MAX && s->body->type == SILT_JSON_OBJECT);
    demand(s->id <= INT64_MAX && s->status >= 0 && s->status <= 255);
    check_slice(s->name);
    check_slice(s->value);
    demand(s->told.len == 0 || s->word == SILT_KERNEL_ERROR || s->word == SILT_KERNEL_RESULT);
    silt_buf_add_byte(&b, '{');
    silt_buf_add(&b, s->told);
    silt_buf_add_byte(&b, '}');
    demand(!b.broken && memchr(b.data, '\n', b.len) == NULL);
    demand(silt_json_read(&arena, silt_buf_slice(&b), &again, &e) == 0);
}

/* Two names of an environment may become one when what is no UTF-8 in them is replaced. */
static void check_said(struct silt_buf *b, bool names)
{
    silt_auto_arena arena;
    const struct silt_json *v;
    silt_arena_init(&arena, 1 << 28);
    demand(!b->broken && memchr(b->data, '\n', b->len) == b->data + b->len - 1);
    demand(silt_json_read(&arena, (silt_slice){b->data, b->len - 1}, &v, &e) == 0 || names);
    silt_buf_clear(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_auto_arena arena;
    silt_auto_buf b, told;
    struct silt_kernel_said said;
    silt_slice bytes = {(const char *)data, size};
    silt_arena_init(&arena, 1 << 28);
    silt_buf_init(&b, 1 << 28);
    silt_buf_init(&told, 1 << 28);
    if (silt_kernel_hear(&arena, &told, bytes, &said, &e) == 0)
        check_heard(&said);
    silt_kernel_say_run(&b, size, bytes);
    check_said(&b, false);
    silt_kernel_say_input(&b, size, bytes, size % 2 == 0);
    check_said(&b, false);
    silt_kernel_say_init(
        &b, &(struct silt_kernel_init){.language = "python", .cwd = bytes, .env = bytes});
    check_said(&b, true);
    return 0;
}
