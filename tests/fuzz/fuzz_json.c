/* SPDX-License-Identifier: Apache-2.0 */
/* What is read, written and read again is written the same; what is read is UTF-8; and any bytes at
 * all become a string that is read. */
#include "fuzz/fuzz.h"
#include "unit/json/tree.h"

static struct silt_error e;

static void check_round_trip(const struct silt_json *v)
{
    silt_auto_arena arena;
    silt_auto_buf one, two;
    silt_arena_init(&arena, 1 << 28);
    silt_buf_init(&one, 1 << 28);
    silt_buf_init(&two, 1 << 28);
    tree_write(&one, v);
    demand(silt_slice_is_utf8(silt_buf_slice(&one)));
    demand(silt_json_read(&arena, silt_buf_slice(&one), &v, &e) == 0);
    silt_json_value(&two, v);
    demand(silt_slice_eq(silt_buf_slice(&one), silt_buf_slice(&two)));
}

static void check_string(silt_slice bytes)
{
    silt_auto_arena arena;
    silt_auto_buf whole, split;
    const struct silt_json *v;
    struct silt_json_escape x = {0};
    silt_arena_init(&arena, 1 << 28);
    silt_buf_init(&whole, 1 << 28);
    silt_buf_init(&split, 1 << 28);
    silt_json_string(&whole, bytes);
    demand(silt_json_read(&arena, silt_buf_slice(&whole), &v, &e) == 0);
    demand(!silt_slice_is_utf8(bytes) || silt_slice_eq(v->string, bytes));
    silt_buf_add_byte(&split, '"');
    for (size_t i = 0; i < bytes.len; i++)
        silt_json_escape(&x, &split, (silt_slice){bytes.data + i, 1});
    silt_json_escape_end(&x, &split);
    silt_buf_add_byte(&split, '"');
    demand(silt_slice_eq(silt_buf_slice(&whole), silt_buf_slice(&split)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_auto_arena arena;
    const struct silt_json *v;
    silt_slice bytes = {(const char *)data, size};
    silt_arena_init(&arena, 1 << 28);
    if (silt_json_read(&arena, bytes, &v, &e) == 0) {
        demand(silt_slice_is_utf8(bytes));
        check_round_trip(v);
    }
    check_string(bytes);
    return 0;
}
