/* SPDX-License-Identifier: Apache-2.0 */
/* silt expose, unexpose, ports and open: preview URLs for the ports of a sandbox. */
#include "base/own.h"
#include "cli/core/cli.h"

#include <sys/wait.h>

enum { PATH_SIZE = 1024, BODY_MAX = 8192 };

struct wanted {
    const char *name, *token;
    bool locked;
};

/* The request body that these commands share: the port, checked. */
static int write_wanted(struct silt_buf *b, const char *port, const struct wanted *w,
                        struct silt_error *e)
{
    uint64_t number;
    if (silt_slice_to_u64(silt_slice_of(port), 1, 65535, &number, e) < 0)
        return silt_because(e, "port %s", port);
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("port"));
    silt_json_u64(b, number);
    if (w->name != NULL) {
        silt_json_key(b, SILT_LIT("name"));
        silt_json_string(b, silt_slice_of(w->name));
    }
    if (w->token != NULL) {
        silt_json_key(b, SILT_LIT("token"));
        silt_json_string(b, silt_slice_of(w->token));
    }
    if (w->locked) {
        silt_json_key(b, SILT_LIT("private"));
        silt_json_bool(b, true);
    }
    silt_json_close(b, '}');
    return b->broken ? silt_fail(e, SILT_LIMIT, "name or token is too long") : 0;
}

static int ask_expose(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                      struct silt_arena *a, const struct silt_json **ret, struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_buf body = {0};
    silt_buf_init(&body, BODY_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", cli->plain.items[0], "/ports", e) < 0
        || write_wanted(&body, cli->plain.items[1], w, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    return silt_client_call(c, &q, a, ret, e);
}

/* "/v1/sandboxes/ID/ports/PORT" and what follows */
static int port_path(const struct silt_cli *cli, const char *after, char out[PATH_SIZE],
                     struct silt_error *e)
{
    char base[PATH_SIZE];
    if (silt_cli_path(base, sizeof(base), "/v1/sandboxes/", cli->plain.items[0], "/ports/", e) < 0)
        return -1;
    return silt_cli_path(out, PATH_SIZE, base, cli->plain.items[1], after, e);
}

static void print_url(const struct silt_json *answer)
{
    silt_cli_print(silt_cli_text(answer, "url"));
    (void)printf("\n");
}

static int expose(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                  struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (ask_expose(cli, w, c, &a, &answer, e) < 0)
        return -1;
    if (cli->json)
        silt_cli_print_json(answer);
    else
        print_url(answer);
    if (!cli->json && silt_cli_true(answer, "private"))
        (void)fprintf(stderr, "silt: only signed URLs lead to it; silt open %s %s makes one\n",
                      cli->plain.items[0], cli->plain.items[1]);
    return 0;
}

static int unexpose(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                    struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    (void)w;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (port_path(cli, "", path, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json)
        silt_cli_print_json(answer);
    return 0;
}

static void print_ports(const struct silt_json *ports)
{
    (void)printf("%-6s %-8s %-16s %s\n", "PORT", "ACCESS", "NAME", "URL");
    if (ports == NULL || ports->type != SILT_JSON_ARRAY)
        return;
    for (const struct silt_json *p = ports->items.first; p != NULL; p = p->next) {
        silt_slice name = silt_cli_text(p, "name");
        (void)printf("%-6lld %-8s ", (long long)silt_cli_number(p, "port"),
                     silt_cli_true(p, "private") ? "private" : "url");
        silt_cli_print(name.len > 0 ? name : SILT_LIT("-"));
        (void)printf("%*s ", name.len < 16 ? (int)(16 - (name.len > 0 ? name.len : 1)) : 0, "");
        print_url(p);
    }
}

static int list(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    (void)w;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", cli->plain.items[0], "/ports", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json)
        silt_cli_print_json(answer);
    else
        print_ports(silt_json_get(answer, SILT_LIT("ports")));
    return 0;
}

/* Only on a desktop. A failure is ignored: the URL is printed anyway. */
static void show_in_browser(silt_slice url)
{
    char text[1024];
    struct silt_error e;
    if ((getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL)
        || silt_slice_to_cstr(url, text, sizeof(text), &e) < 0)
        return;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("xdg-open", "xdg-open", text, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
}

/* A private port needs a signed URL. */
static int open_it(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                   struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (ask_expose(cli, w, c, &a, &answer, e) < 0 || port_path(cli, "/sign", path, e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, SILT_LIT("{}"));
    if (silt_cli_true(answer, "private") && silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json)
        silt_cli_print_json(answer);
    else
        print_url(answer);
    show_in_browser(silt_cli_text(answer, "url"));
    return 0;
}

static int run(int argc, char **argv, size_t words,
               int (*deed)(const struct silt_cli *, const struct wanted *, struct silt_client *,
                           struct silt_error *))
{
    static struct silt_cli cli;
    static struct silt_client client;
    static struct wanted wanted;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "name", .value = &wanted.name},
                                      {.name = "token", .value = &wanted.token},
                                      {.name = "private", .flag = &wanted.locked}};
    const struct silt_options options = {.table = own,
                                         .count = deed == expose ? SILT_COUNT(own) : 0};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != words || cli.rest.count > 0)
        return silt_cli_usage();
    if (silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = deed(&cli, &wanted, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

int silt_cli_expose(int argc, char **argv)
{
    return run(argc, argv, 2, expose);
}

int silt_cli_unexpose(int argc, char **argv)
{
    return run(argc, argv, 2, unexpose);
}

int silt_cli_ports(int argc, char **argv)
{
    return run(argc, argv, 1, list);
}

int silt_cli_open(int argc, char **argv)
{
    return run(argc, argv, 2, open_it);
}
