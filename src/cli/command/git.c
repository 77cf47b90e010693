/* SPDX-License-Identifier: Apache-2.0 */
/* silt git-clone: clones a repository into a sandbox, with git's progress on standard error. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "cli/core/events.h"
#include "cli/core/wait.h"

enum { PATH_SIZE = 1024, URL_MAX = 8 * 1024, BODY_MAX = 128 * 1024, DEPTH_MAX = INT_MAX };

struct clone {
    struct silt_cli cli;
    char url[URL_MAX + 1];
    const char *branch, *depth, *timeout;
    bool live;  /* standard error is a terminal */
    bool shown; /* a progress line is visible, to be overwritten */
};

/* A URL with a password should not appear among the arguments: `-` reads it from standard input. */
static int read_url(struct clone *g, struct silt_error *e)
{
    const char *word = g->cli.plain.items[1];
    if (strcmp(word, "-") != 0)
        return silt_slice_to_cstr(silt_slice_of(word), g->url, sizeof(g->url), e);
    if (fgets(g->url, sizeof(g->url), stdin) == NULL)
        return silt_fail(e, SILT_INVALID, "no URL on standard input");
    g->url[strcspn(g->url, "\r\n")] = 0;
    return 0;
}

static int write_body(const struct clone *g, struct silt_buf *b, struct silt_error *e)
{
    const struct silt_words *w = &g->cli.plain;
    uint64_t depth;
    silt_json_open(b, '{');
    silt_command_add_text(b, "repoUrl", g->url);
    silt_command_add_text(b, "targetDir", w->count > 2 ? w->items[2] : NULL);
    silt_command_add_text(b, "branch", g->branch);
    if (silt_command_add_time(b, "timeoutMs", g->timeout, e) < 0)
        return -1;
    if (g->depth != NULL) {
        if (silt_slice_to_u64(silt_slice_of(g->depth), 1, DEPTH_MAX, &depth, e) < 0)
            return silt_because(e, "--depth");
        silt_json_key(b, SILT_LIT("depth"));
        silt_json_u64(b, depth);
    }
    silt_json_close(b, '}');
    return b->broken ? silt_fail(e, SILT_LIMIT, "request too large") : 0;
}

/* git overwrites its progress line; if standard error is not a terminal, only the last one is
 * printed. */
static void show(struct clone *g, silt_slice text)
{
    if (!g->live || text.len == 0)
        return;
    (void)fputs("\r\033[K", stderr);
    for (size_t i = 0; i < text.len; i++)
        (void)fputc((unsigned char)text.data[i] < ' ' ? ' ' : text.data[i], stderr);
    (void)fflush(stderr);
    g->shown = true;
}

static void end_line(struct clone *g)
{
    if (g->shown)
        (void)fputc('\n', stderr);
    g->shown = false;
}

/* The daemon's message names the repository without its password. */
static int tell_failure(const struct silt_json *event, struct silt_error *e)
{
    silt_slice why = silt_cli_text(event, "error");
    silt_slice what = silt_cli_text(silt_json_get(event, SILT_LIT("context")), "repository");
    return silt_fail(e, SILT_INVALID, "%.*s: %.*s", (int)what.len, what.data, (int)why.len,
                     why.data);
}

static int on_event(void *to, const struct silt_json *event, struct silt_error *e)
{
    struct clone *g = to;
    silt_slice type = silt_cli_text(event, "type");
    if (silt_slice_eq(type, SILT_LIT("progress")))
        show(g, silt_cli_text(event, "text"));
    if (silt_slice_eq(type, SILT_LIT("error")))
        return tell_failure(event, e);
    if (!silt_slice_eq(type, SILT_LIT("complete")))
        return 0;
    end_line(g);
    if (g->cli.json) {
        silt_cli_print_json(event);
    } else {
        silt_cli_print(silt_cli_text(event, "targetDir"));
        (void)putchar('\n');
    }
    return 1;
}

static int clone(struct clone *g, struct silt_client *c, struct silt_error *e)
{
    silt_auto_buf body;
    char path[PATH_SIZE];
    const char *id = g->cli.plain.items[0];
    silt_buf_init(&body, BODY_MAX);
    if (silt_id_check(silt_slice_of(id), e) < 0 || read_url(g, e) < 0 || write_body(g, &body, e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/git/clone", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    int got = silt_events_follow(c, &q, on_event, g, e);
    if (got < 0 && silt_box_is_missing(c) && silt_box_make(c, id, e) == 0)
        got = silt_events_follow(c, &q, on_event, g, e);
    end_line(g);
    if (got == 0)
        return silt_fail(e, SILT_GONE, "the stream ended before the clone did");
    return got > 0 ? 0 : -1;
}

int silt_cli_git_clone(int argc, char **argv)
{
    static struct clone g;
    static struct silt_client client;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "branch", .letter = 'b', .value = &g.branch},
                                      {.name = "depth", .value = &g.depth},
                                      {.name = "timeout", .value = &g.timeout}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&g.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (g.cli.plain.count < 2 || g.cli.plain.count > 3)
        return silt_cli_usage();
    g.live = isatty(STDERR_FILENO) == 1;
    if (silt_client_init(&client, g.cli.server, g.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    int got = clone(&g, &client, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED) {
        (void)fprintf(stderr, "silt: detached; the clone goes on in sandbox %s\n",
                      g.cli.plain.items[0]);
        return SILT_EXIT_INTERRUPTED;
    }
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
