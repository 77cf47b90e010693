/* SPDX-License-Identifier: Apache-2.0 */
/* silt watch: prints one line per change of a file below a path of a sandbox. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/core/events.h"
#include "cli/core/wait.h"

enum { PATH_SIZE = 1024, BODY_MAX = 1024 * 1024 };

struct watch {
    struct silt_cli cli;
    struct silt_words include, exclude, events;
    bool flat;
};

/* Prints the time of 2026-01-02T03:04:05.678Z without the date. */
static void print_event(const struct silt_json *event)
{
    silt_slice type = silt_cli_text(event, "eventType"), time = silt_cli_text(event, "timestamp");
    if (time.len == strlen("2026-01-02T03:04:05.678Z"))
        time = (silt_slice){time.data + 11, 12};
    (void)printf("%.*s  %-9.*s  ", (int)time.len, time.data, (int)type.len, type.data);
    silt_cli_print(silt_cli_text(event, "path"));
    (void)puts(silt_cli_true(event, "isDirectory") ? "/" : "");
}

static void print_note(const struct silt_json *event, silt_slice type)
{
    silt_slice path = silt_cli_text(event, "path");
    if (silt_slice_eq(type, SILT_LIT("watching"))) {
        (void)fprintf(stderr, "silt: watching %.*s\n", (int)path.len, path.data);
    } else if (silt_slice_eq(type, SILT_LIT("overflow"))) {
        (void)fputs("silt: events are missing here: too many at once\n", stderr);
    } else if (silt_slice_eq(type, SILT_LIT("limit"))) {
        (void)fprintf(stderr, "silt: not watched, too many directories: %.*s\n", (int)path.len,
                      path.data);
    }
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    const struct watch *w = to;
    silt_slice type = silt_cli_text(event, "type");
    if (silt_slice_eq(type, SILT_LIT("error")) || silt_slice_eq(type, SILT_LIT("stopped"))) {
        silt_slice why = silt_cli_text(event, type.data[0] == 'e' ? "error" : "reason");
        return silt_fail(e, SILT_GONE, "the watch of %s ended: %.*s", w->cli.plain.items[1],
                         (int)why.len, why.data);
    }
    if (w->cli.json)
        silt_cli_print_json(event);
    else if (silt_slice_eq(type, SILT_LIT("event")))
        print_event(event);
    else
        print_note(event, type);
    if (fflush(stdout) != 0)
        return silt_fail_errno(e, "write to standard output");
    return 0;
}

static void add_list(struct silt_buf *b, silt_slice key, const struct silt_words *words)
{
    if (words->count == 0)
        return;
    silt_json_key(b, key);
    silt_json_open(b, '[');
    for (size_t i = 0; i < words->count; i++)
        silt_json_string(b, silt_slice_of(words->items[i]));
    silt_json_close(b, ']');
}

static int follow(struct watch *w, struct silt_client *c, struct silt_error *e)
{
    silt_auto_buf body;
    char path[PATH_SIZE];
    silt_buf_init(&body, BODY_MAX);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "path", w->cli.plain.items[1]);
    add_list(&body, SILT_LIT("include"), &w->include);
    add_list(&body, SILT_LIT("exclude"), &w->exclude);
    add_list(&body, SILT_LIT("events"), &w->events);
    if (w->flat) {
        silt_json_key(&body, SILT_LIT("recursive"));
        silt_json_bool(&body, false);
    }
    silt_json_close(&body, '}');
    if (silt_id_check(silt_slice_of(w->cli.plain.items[0]), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", w->cli.plain.items[0], "/watch", e)
               < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    int got = silt_events_follow(c, &q, on_event, w, e);
    return got < 0 ? -1 : silt_fail(e, SILT_GONE, "the daemon ended the watch");
}

/* The daemon ignores unknown words, as clients expect, and would report all events. */
static int check_events(const struct silt_words *events, struct silt_error *e)
{
    static const char *const known[] = {"create",    "modify",  "delete",
                                        "move_from", "move_to", "attrib"};
    for (size_t i = 0; i < events->count; i++) {
        size_t k = 0;
        while (k < SILT_COUNT(known) && strcmp(known[k], events->items[i]) != 0)
            k++;
        if (k == SILT_COUNT(known))
            return silt_fail(
                e, SILT_INVALID,
                "--event %s: must be create, modify, delete, move_from, move_to or attrib",
                events->items[i]);
    }
    return 0;
}

int silt_cli_watch(int argc, char **argv)
{
    static struct watch w;
    static struct silt_client client;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "include", .words = &w.include},
                                      {.name = "exclude", .words = &w.exclude},
                                      {.name = "event", .words = &w.events},
                                      {.name = "flat", .flag = &w.flat}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&w.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (w.cli.plain.count != 2)
        return silt_cli_usage();
    if (check_events(&w.events, &e) < 0
        || silt_client_init(&client, w.cli.server, w.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    (void)follow(&w, &client, &e); /* it ends only by Ctrl-C or an error */
    silt_client_fini(&client);
    return e.code == SILT_INTERRUPTED ? SILT_EXIT_INTERRUPTED : silt_cli_fail(&e);
}
