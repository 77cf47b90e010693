/* SPDX-License-Identifier: Apache-2.0 */
/* A message of …/ws becomes a request of one line per field and a body of JSON, or none; and
 * whatever a stream holds is cut into events that end, each a frame of JSON. */
#include "api/ws/frame.h"
#include "base/own.h"
#include "fuzz/fuzz.h"

static struct silt_error e;

static bool is_json(struct silt_arena *a, silt_slice text)
{
    const struct silt_json *v;
    return silt_json_read(a, text, &v, &e) == 0;
}

static void check_request(struct silt_arena *a, silt_slice bytes)
{
    struct silt_ws_request q = {0};
    silt_auto_buf head, body;
    silt_buf_init(&head, 1 << 20);
    silt_buf_init(&body, 1 << 20);
    enum silt_ws_what what = silt_ws_request_read(a, bytes, &q);
    if (what != SILT_WS_REQUEST || silt_ws_request_lay(&q, "box", &head, &body, &e) < 0)
        return;
    demand(!head.broken && !body.broken && q.id.len <= SILT_WS_ID_MAX);
    demand(body.len == 0 || is_json(a, silt_buf_slice(&body)));
    for (size_t i = 0; i < head.len; i++) /* no line that we did not write */
        demand(head.data[i] != '\n' || (i > 0 && head.data[i - 1] == '\r'));
}

static void check_events(struct silt_arena *a, silt_slice rest)
{
    silt_slice event;
    for (size_t before = rest.len + 1; silt_ws_next_event(&rest, &event); before = rest.len) {
        silt_auto_buf frame;
        silt_buf_init(&frame, 1 << 20);
        demand(rest.len < before);
        if (silt_ws_frame_stream(&frame, SILT_LIT("1"), event))
            demand(!frame.broken && is_json(a, silt_buf_slice(&frame)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice bytes = {(const char *)data, size};
    struct silt_arena a;
    silt_arena_init(&a, 1 << 24);
    check_request(&a, bytes);
    check_events(&a, bytes);
    silt_arena_fini(&a);
    return 0;
}
