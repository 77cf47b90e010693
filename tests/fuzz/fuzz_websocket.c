/* SPDX-License-Identifier: Apache-2.0 */
/* Frames give the same messages and the same verdict, whole or in pieces, and no message is longer
 * than allowed. */
#include "fuzz/fuzz.h"
#include "http/websocket.h"

enum { MOST = 500 };

struct result {
    enum silt_ws_got last;
    int code;
    size_t count;
    uint64_t sum;
};

static void note(struct result *t, const struct silt_ws_reader *r, silt_slice payload)
{
    demand(payload.len <= (t->last == SILT_WS_GOT_MESSAGE ? MOST : SILT_WS_CONTROL_MAX));
    demand(t->last != SILT_WS_GOT_MESSAGE || r->type != SILT_WS_TEXT
           || silt_slice_is_utf8(payload));
    t->count++;
    t->sum = t->sum * 31 + t->last;
    for (size_t i = 0; i < payload.len; i++)
        t->sum = t->sum * 31 + (unsigned char)payload.data[i];
}

static struct result read_all(silt_slice all, bool client, size_t piece)
{
    struct silt_ws_reader r;
    struct result t = {0};
    silt_ws_reader_init(&r, client, MOST);
    while (all.len > 0 && t.last != SILT_WS_BAD) {
        size_t n = all.len < piece ? all.len : piece;
        silt_slice in = {all.data, n}, payload = {NULL, 0};
        while ((t.last = silt_ws_read(&r, &in, &payload)) != SILT_WS_MORE && t.last != SILT_WS_BAD)
            note(&t, &r, payload);
        demand(t.last == SILT_WS_BAD || in.len == 0);
        all.data += n;
        all.len -= n;
    }
    t.code = r.code;
    demand((t.code != 0) == (t.last == SILT_WS_BAD));
    silt_ws_reader_fini(&r);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice all = {(const char *)data, size};
    for (int client = 0; client < 2; client++) {
        struct result whole = read_all(all, client, SIZE_MAX);
        for (size_t piece = 1; piece < 8; piece += 2) {
            struct result cut = read_all(all, client, piece);
            demand(cut.last == whole.last && cut.code == whole.code);
            demand(cut.count == whole.count && cut.sum == whole.sum);
        }
    }
    return 0;
}
