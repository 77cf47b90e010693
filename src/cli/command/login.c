/* SPDX-License-Identifier: Apache-2.0 */
/* silt login and context: which daemon commands go to, and the token that lets them in. */
#include "base/fd.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/context.h"
#include "cli/core/find.h"

#include <termios.h>
#include <unistd.h>

struct wishes {
    struct silt_cli cli;
    const char *name, *authorities;
};

/* From the terminal without showing it, or the first line of standard input. */
static int read_token(char ret[SILT_CLIENT_TOKEN_SIZE], struct silt_error *e)
{
    struct termios before, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (terminal) {
        quiet = before;
        quiet.c_lflag &= (tcflag_t)~ECHO;
        (void)fputs("Token: ", stderr);
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    const char *got = fgets(ret, SILT_CLIENT_TOKEN_SIZE, stdin);
    if (terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        (void)fputc('\n', stderr);
    }
    if (got != NULL)
        ret[strcspn(ret, "\r\n")] = 0;
    return got != NULL && ret[0] != 0
               ? 0
               : silt_fail(e, SILT_INVALID,
                           "no token on standard input\nOn the server, sudo silt token prints it.");
}

/* The host of the URL. */
static void name_after(const char *url, char out[SILT_CONTEXT_NAME_MAX + 1])
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    (void)snprintf(out, SILT_CONTEXT_NAME_MAX + 1, "%.*s", (int)strcspn(host, ":/"), host);
}

/* Only what works is stored. */
static int try_it(const struct silt_context *one, struct silt_error *e)
{
    static struct silt_client c;
    silt_auto_arena a;
    const struct silt_json *answer;
    struct silt_client_request q = {.method = "GET", .path = "/v1/sandboxes?limit=1", .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_client_init_at(&c, one, e) < 0)
        return -1;
    int got = silt_client_call(&c, &q, &a, &answer, e);
    silt_client_fini(&c);
    return got;
}

static int log_in(const struct wishes *w, const char *url, struct silt_error *e)
{
    static struct silt_contexts all;
    char name[SILT_CONTEXT_NAME_MAX + 1], place[PATH_MAX] = "", token[SILT_CLIENT_TOKEN_SIZE];
    struct silt_context *one;
    name_after(url, name);
    if (w->authorities != NULL && realpath(w->authorities, place) == NULL)
        return silt_fail_errno(e, "%s", w->authorities);
    if (silt_contexts_load(&all, e) < 0
        || silt_contexts_put(&all, w->name != NULL ? w->name : name, &one, e) < 0
        || silt_slice_to_cstr(silt_slice_of(url), one->url, sizeof(one->url), e) < 0
        || (w->cli.token_file != NULL ? silt_find_token(w->cli.token_file, token, e)
                                      : read_token(token, e))
               < 0)
        return -1;
    (void)snprintf(one->token, sizeof(one->token), "%s", token);
    (void)snprintf(one->authorities, sizeof(one->authorities), "%s", place);
    if (try_it(one, e) < 0)
        return silt_because(e, "log in to %s", url);
    (void)snprintf(all.current, sizeof(all.current), "%s", one->name);
    if (silt_contexts_save(&all, e) < 0)
        return -1;
    (void)fprintf(stderr, "silt: commands now go to %s (context %s)\n", url, one->name);
    return 0;
}

int silt_cli_login(int argc, char **argv)
{
    static struct wishes w;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "name", .value = &w.name},
                                      {.name = "ca", .value = &w.authorities}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&w.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (w.cli.plain.count != 1)
        return silt_cli_usage();
    return log_in(&w, w.cli.plain.items[0], &e) < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

static int list(const struct silt_contexts *all)
{
    (void)printf("%-2s%-24s %s\n", "", "NAME", "URL");
    for (size_t i = 0; i < all->count; i++) {
        const struct silt_context *one = &all->items[i];
        (void)printf("%-2s%-24s ", strcmp(one->name, all->current) == 0 ? "*" : "", one->name);
        silt_cli_print(silt_slice_of(one->url));
        (void)putchar('\n');
    }
    return 0;
}

static int change(struct silt_contexts *all, const char *verb, const char *name,
                  struct silt_error *e)
{
    struct silt_context *one = silt_contexts_find(all, name);
    bool local = strcmp(verb, "use") == 0 && strcmp(name, "local") == 0 && one == NULL;
    if (one == NULL && !local)
        return silt_fail(e, SILT_NOT_FOUND, "no context %s\nSee: silt context ls", name);
    if (strcmp(verb, "rm") == 0)
        silt_contexts_drop(all, one);
    else
        (void)snprintf(all->current, sizeof(all->current), "%s", local ? "" : name);
    return silt_contexts_save(all, e);
}

int silt_cli_context(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_contexts all;
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    const char *verb = cli.plain.items[0];
    bool lists = strcmp(verb, "ls") == 0;
    if (cli.plain.count != (lists ? 1 : 2))
        return silt_cli_usage();
    if (silt_contexts_load(&all, &e) < 0
        || (lists ? list(&all) : change(&all, verb, cli.plain.items[1], &e)) < 0)
        return silt_cli_fail(&e);
    return EXIT_SUCCESS;
}
