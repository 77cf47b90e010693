/* SPDX-License-Identifier: Apache-2.0 */
/* silt events: prints what happened to the sandboxes, one line per event; -f goes on with what
 * happens from now on, also over restarts of the daemon. */
#include "base/clock.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/events.h"
#include "cli/core/wait.h"

#include <errno.h>

enum {
    PATH_SIZE = 1024,
    CURSOR_SIZE = 24,
    RETRY_MS = 200,
    RETRIES_MS = 30 * 1000, /* long enough for a restart of the daemon */
};

struct follow {
    struct silt_cli cli;
    bool follow;
    const char *sandbox, *types, *cursor;
    char seen[CURSOR_SIZE]; /* cursor of the last event; empty: none */
};

static bool has_column(silt_slice key)
{
    static const char *const columns[] = {"cursor", "type", "sandbox", "at"};
    for (size_t i = 0; i < SILT_COUNT(columns); i++)
        if (silt_slice_eq(key, silt_slice_of(columns[i])))
            return true;
    return false;
}

static void print_rest(const struct silt_json *event)
{
    for (const struct silt_json *m = event->items.first; m != NULL; m = m->next) {
        if (has_column(m->key) || m->type == SILT_JSON_NULL)
            continue;
        silt_auto_buf b;
        silt_buf_init(&b, SILT_CLI_ARENA_MAX);
        silt_cli_write(&b, m);
        (void)printf("  %.*s=", (int)m->key.len, m->key.data);
        silt_cli_print(silt_buf_slice(&b));
    }
}

static void print_event(const struct silt_json *event, silt_slice type)
{
    silt_slice id = silt_cli_text(event, "sandbox");
    silt_cli_print(silt_cli_text(event, "at"));
    (void)printf("  %-10.*s  ", (int)type.len, type.data);
    silt_cli_print(id.len > 0 ? id : SILT_LIT("-"));
    print_rest(event);
    (void)putchar('\n');
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    struct follow *f = to;
    silt_slice type = silt_cli_text(event, "type"), cursor = silt_cli_text(event, "cursor");
    if (cursor.len > 0 && silt_slice_to_cstr(cursor, f->seen, sizeof(f->seen), e) < 0)
        return -1;
    if (f->cli.json)
        silt_cli_print_json(event);
    else if (silt_slice_eq(type, SILT_LIT("missed")))
        (void)puts("--  older events are no longer kept");
    else
        print_event(event, type);
    return fflush(stdout) != 0 ? silt_fail_errno(e, "write to standard output") : 0;
}

static int add_query(char *path, const char *name, const char *value, struct silt_error *e)
{
    size_t len = strlen(path);
    if (value == NULL)
        return 0;
    return silt_cli_path(path + len, PATH_SIZE - len, name, value, "", e);
}

static int follow_once(struct follow *f, struct silt_client *c, struct silt_error *e)
{
    char path[PATH_SIZE];
    const char *from = f->seen[0] != 0 ? f->seen : f->cursor;
    (void)snprintf(path, sizeof(path), "/v1/events?follow=%s", f->follow ? "true" : "false");
    if (from == NULL && !f->follow)
        from = "0";
    if (add_query(path, "&cursor=", from, e) < 0 || add_query(path, "&sandbox=", f->sandbox, e) < 0
        || add_query(path, "&types=", f->types, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    return silt_events_follow(c, &q, on_event, f, e);
}

static bool is_broken_off(const struct silt_error *e)
{
    return e->code == SILT_GONE || e->sys == ECONNRESET || e->sys == ECONNREFUSED
           || e->sys == EPIPE;
}

static int wait_a_little(struct silt_error *e)
{
    short ready;
    struct silt_error waiting;
    if (silt_wait_for(-1, 0, RETRY_MS, &ready, &waiting) == 0 || waiting.code == SILT_TIMEOUT)
        return 0;
    *e = waiting;
    return -1;
}

static int follow(struct follow *f, struct silt_client *c, struct silt_error *e)
{
    for (int64_t give_up = silt_clock_ms() + RETRIES_MS;;) {
        int64_t began = silt_clock_ms();
        int got = follow_once(f, c, e);
        if (got >= 0 && !f->follow)
            return 0;
        if (got >= 0)
            (void)silt_fail(e, SILT_GONE, "the daemon ended the stream of events");
        else if (!is_broken_off(e))
            return -1;
        if (got >= 0 || silt_clock_ms() - began > RETRIES_MS) /* it was connected */
            give_up = silt_clock_ms() + RETRIES_MS;
        if (!f->follow || silt_clock_ms() > give_up || wait_a_little(e) < 0)
            return -1;
    }
}

int silt_cli_events(int argc, char **argv)
{
    static struct follow f;
    static struct silt_client client;
    struct silt_error e = {0};
    const struct silt_option own[] = {{.name = "follow", .letter = 'f', .flag = &f.follow},
                                      {.name = "sandbox", .value = &f.sandbox},
                                      {.name = "types", .value = &f.types},
                                      {.name = "cursor", .value = &f.cursor}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&f.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (f.cli.plain.count != 0)
        return silt_cli_usage();
    if (silt_client_init(&client, f.cli.server, f.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    int got = follow(&f, &client, &e);
    silt_client_fini(&client);
    if (got == 0)
        return EXIT_SUCCESS;
    return e.code == SILT_INTERRUPTED ? SILT_EXIT_INTERRUPTED : silt_cli_fail(&e);
}
