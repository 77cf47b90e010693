/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cli/core/cli.h"
#include "cli/core/events.h"
#include "cli/command/process.h"
#include "cli/core/wait.h"

#include <errno.h>

enum {
    RETRY_MS = 200,
    RETRIES_MS = 20 * 1000, /* long enough for a restart of the daemon */
};

static void take_cursor(struct silt_tail *t, const struct silt_json *event)
{
    const struct silt_json *cursor = silt_json_get(event, SILT_LIT("cursor"));
    struct silt_error e;
    if (cursor != NULL && cursor->type == SILT_JSON_INT)
        (void)snprintf(t->cursor, sizeof(t->cursor), "%lld", (long long)cursor->integer);
    else if (cursor != NULL && cursor->type == SILT_JSON_STRING)
        (void)silt_slice_to_cstr(cursor->string, t->cursor, sizeof(t->cursor), &e);
}

/* If the text cannot represent the bytes, the event has them in base64. */
static int write_bytes(silt_slice text, int fd, struct silt_error *e)
{
    char piece[3 * 1024];
    const char *wrong = silt_base64_check(text);
    if (wrong != NULL)
        return silt_fail(e, SILT_PROTOCOL, "output of a process: %s", wrong);
    while (text.len > 0) {
        size_t n = silt_base64_decode(&text, piece, sizeof(piece));
        if (silt_fd_write_all(fd, (silt_slice){piece, n}, e) < 0)
            return -1;
    }
    return 0;
}

int silt_tail_write(const struct silt_json *event, int fd, struct silt_error *e)
{
    if (silt_json_get(event, SILT_LIT("base64")) != NULL)
        return write_bytes(silt_cli_text(event, "base64"), fd, e);
    return silt_fd_write_all(fd, silt_cli_text(event, "data"), e);
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    struct silt_tail *t = to;
    silt_slice type = silt_cli_text(event, "type");
    int got = 0;
    if (silt_slice_eq(type, SILT_LIT("stdout")))
        got = t->no_stdout ? 0 : silt_tail_write(event, STDOUT_FILENO, e);
    else if (silt_slice_eq(type, SILT_LIT("stderr")))
        got = t->no_stderr ? 0 : silt_tail_write(event, STDERR_FILENO, e);
    else if (silt_slice_eq(type, SILT_LIT("gap")))
        (void)fprintf(stderr, "silt: %lld bytes of older output are no longer kept\n",
                      (long long)silt_cli_number(event, "droppedBytes"));
    else if (silt_slice_eq(type, SILT_LIT("error"))) {
        silt_slice why = silt_cli_text(event, "error");
        return silt_fail(e, SILT_INVALID, "%.*s", (int)why.len, why.data);
    } else if (silt_slice_eq(type, SILT_LIT("exit"))) {
        t->status = silt_cli_status(event);
        return 1;
    }
    if (got == 0)
        take_cursor(t, event);
    return got;
}

static int follow_once(struct silt_tail *t, struct silt_client *c, struct silt_error *e)
{
    char path[SILT_PROCESS_ROUTE_SIZE], after[128] = "/stream";
    if (t->cursor[0] != 0
        && silt_cli_path(after, sizeof(after), "/stream?cursor=", t->cursor, "", e) < 0)
        return -1;
    if (silt_process_route(path, t->id, t->name, after, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    return silt_events_follow(c, &q, on_event, t, e);
}

static bool is_broken_off(const struct silt_error *e)
{
    return e->code == SILT_GONE || e->sys == ECONNRESET || e->sys == ECONNREFUSED;
}

static int pause_a_little(struct silt_error *e)
{
    short ready;
    if (silt_wait_for(-1, 0, RETRY_MS, &ready, e) < 0 && e->code != SILT_TIMEOUT)
        return -1;
    return 0;
}

int silt_tail_follow(struct silt_tail *t, struct silt_client *c, struct silt_error *e)
{
    int64_t give_up = 0;
    for (;;) {
        char before[sizeof(t->cursor)];
        struct silt_error waiting;
        memcpy(before, t->cursor, sizeof(before));
        int got = follow_once(t, c, e);
        if (got > 0)
            return 0;
        if (got == 0)
            (void)silt_fail(e, SILT_GONE, "the stream of process %s ended before it did", t->name);
        if (strcmp(before, t->cursor) != 0)
            give_up = silt_clock_ms() + RETRIES_MS;
        if (!is_broken_off(e) || silt_clock_ms() > give_up)
            return -1;
        if (pause_a_little(&waiting) < 0) {
            *e = waiting;
            return -1;
        }
    }
}
