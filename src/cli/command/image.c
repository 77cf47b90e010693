/* SPDX-License-Identifier: Apache-2.0 */
/* silt image ls, build, import, export, tag, commit, prune, rm. `build` of base and host is the
 * only command that needs root: it runs a recipe that makes a tar, and imports it like any other.
 */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/docker/docker_build.h"
#include "cli/core/find.h"
#include "cli/command/pull.h"
#include "cli/docker/image_archive.h"
#include "cli/core/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PATH_SIZE = 512, IMPORT_TIMEOUT_MS = 30 * 60 * 1000, NAME_WIDTH = 20 };

static void print_row(const struct silt_json *i, int width)
{
    silt_slice name = silt_cli_text(i, "name"), kind = silt_cli_text(i, "kind");
    silt_slice digest = silt_cli_text(i, "digest"), created = silt_cli_text(i, "createdAt");
    char size[SILT_CLI_SIZE_TEXT];
    (void)printf("%-*.*s %-5.*s %10s  %-19.*s  %.*s\n", width, (int)name.len, name.data,
                 (int)kind.len, kind.data, silt_cli_size(silt_cli_number(i, "sizeBytes"), size),
                 (int)(created.len < 19 ? created.len : 19), created.data,
                 (int)(digest.len < 19 ? digest.len : 19), digest.data);
}

static int list(const struct silt_cli *cli, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    int width = NAME_WIDTH;
    struct silt_client_request q = {.method = "GET", .path = "/v1/images", .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    const struct silt_json *images = silt_json_get(answer, SILT_LIT("images"));
    if (images == NULL || images->type != SILT_JSON_ARRAY)
        return silt_fail(e, SILT_PROTOCOL, "answer without images");
    if (cli->json) {
        silt_cli_print_json(images);
        return 0;
    }
    for (const struct silt_json *i = images->items.first; i != NULL; i = i->next)
        width = silt_cli_widen(width, silt_cli_text(i, "name"));
    (void)printf("%-*s %-5s %10s  %-19s  %s\n", width, "NAME", "KIND", "SIZE", "CREATED (UTC)",
                 "DIGEST");
    for (const struct silt_json *i = images->items.first; i != NULL; i = i->next)
        print_row(i, width);
    return 0;
}

static int forget(const char *name, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/images/", name, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (!silt_cli_true(answer, "deleted"))
        return silt_fail(e, SILT_NOT_FOUND, "no image %s", name);
    (void)puts(name);
    return 0;
}

/* build */

#define BUILTIN "%7B%22Labels%22%3A%7B%22silt.control%22%3A%22builtin%22%7D%7D"

static int import(const char *name, const char *tar, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    struct silt_progress progress;
    struct stat st;
    char path[PATH_SIZE];
    silt_auto_fd file = open(tar, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) < 0)
        return silt_fail_errno(e, "open %s", tar);
    bool host = strcmp(name, "host") == 0; /* a skeleton over this machine's /usr */
    /* {"Labels":{"silt.control":"builtin"}}: the API of its sandboxes needs no server in it */
    const char *query = host ? "?kind=host&config=" BUILTIN : "?config=" BUILTIN;
    if (silt_cli_path(path, sizeof(path), "/v1/images/", name, query, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "PUT",
                                    .path = path,
                                    .content_type = "application/x-tar",
                                    .file = file,
                                    .progress = &progress};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    c->timeout_ms = IMPORT_TIMEOUT_MS;
    silt_progress_start(&progress, name, (uint64_t)st.st_size);
    int got = silt_client_call(c, &q, &a, &answer, e);
    silt_progress_end(&progress);
    if (got < 0)
        return silt_because(e, "import image %s", name);
    silt_slice digest = silt_cli_text(answer, "digest");
    (void)printf("%s %.*s\n", name, (int)digest.len, digest.data);
    return 0;
}

/* `option`, unless NULL, goes before `argument`. */
static int run_program(const char *program, const char *option, const char *argument,
                       struct silt_error *e)
{
    int status;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork");
    if (pid == 0) {
        silt_wait_leave_interrupt();
        if (option != NULL)
            (void)execl(program, program, option, argument, (char *)NULL);
        else
            (void)execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return silt_fail_errno(e, "wait for %s", program);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SILT_EXIT_INTERRUPTED)
        return silt_fail(e, SILT_INTERRUPTED, "interrupted");
    if (status != 0)
        return silt_fail(e, SILT_INTERNAL, "%s did not finish", program);
    return 0;
}

/* Root has built the image, so its Python may be kept warm; silt-trust unpacks it as root. Runs
 * before the import, which then finds the files. A failure does not matter: the image works without
 * it. */
static void trust(const char *tar)
{
    const struct silt_config *config;
    struct silt_error e;
    char program[PATH_MAX], images[PATH_MAX + 16];
    if (silt_find_config(&config, &e) == 0 && silt_find_program("silt-trust", program, &e) == 0) {
        (void)snprintf(images, sizeof(images), "--images=%s", config->images);
        if (run_program(program, images, tar, &e) == 0)
            return;
    }
    (void)fprintf(stderr, "silt: no Python of this image is kept warm: %s\n", e.text);
}

/* Recipes read the package source from the environment, as script/up passes it. */
static int pass_source(struct silt_error *e)
{
    const struct silt_config *config;
    if (silt_find_config(&config, e) < 0)
        return -1;
    if (config->image_apt_source[0] != 0
        && setenv("SILT_IMAGE_APT_SOURCE", config->image_apt_source, 1) < 0)
        return silt_fail_errno(e, "set SILT_IMAGE_APT_SOURCE");
    return 0;
}

static int build(const char *name, bool refresh, struct silt_client *c, struct silt_error *e)
{
    char recipe[PATH_MAX], directory[PATH_MAX], tar[PATH_MAX + 16];
    const char *cache = getenv("SILT_CACHE");
    if (geteuid() != 0)
        return silt_fail(e, SILT_DENIED, "a recipe runs as root\nTry: sudo silt image build %s",
                         name);
    if (silt_find_recipe(name, recipe, e) < 0 || pass_source(e) < 0
        || silt_wait_catch_interrupt(e) < 0)
        return -1;
    cache = cache != NULL ? cache : "/var/cache/silt";
    if (mkdir(cache, 0755) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make directory %s", cache);
    (void)snprintf(directory, sizeof(directory), "%s/build-XXXXXX", cache);
    if (mkdtemp(directory) == NULL)
        return silt_fail_errno(e, "make directory %s", directory);
    (void)snprintf(tar, sizeof(tar), "%s/image.tar", directory);
    int got = run_program(recipe, refresh ? "--refresh" : NULL, tar, e);
    if (got == 0) {
        trust(tar);
        got = import(name, tar, c, e);
    }
    (void)unlink(tar);
    (void)rmdir(directory);
    return got;
}

/* A Dockerfile: the arguments of `silt-docker build`. */

struct wishes {
    bool refresh, no_cache;
    const char *file, *target, *network;
    const char *image, *format, *output;
    struct silt_words names, args;
    struct silt_cli_pull pull;
};

static void add_word(struct silt_words *w, const char *word)
{
    if (word != NULL && w->count < SILT_WORDS_MAX)
        w->items[w->count++] = word;
}

static void add_option(struct silt_words *w, const char *name, const char *value)
{
    if (value == NULL)
        return;
    add_word(w, name);
    add_word(w, value);
}

static int build_file(const struct wishes *x, const char *directory, struct silt_client *c,
                      struct silt_error *e)
{
    static struct silt_words w;
    static char *argv[SILT_WORDS_MAX + 1];
    if (x->network != NULL && strcmp(x->network, "public") != 0 && strcmp(x->network, "none") != 0)
        return silt_fail(e, SILT_INVALID, "--network %s: must be public or none", x->network);
    for (size_t i = 0; i < x->names.count; i++)
        add_option(&w, "-t", x->names.items[i]);
    for (size_t i = 0; i < x->args.count; i++)
        add_option(&w, "--build-arg", x->args.items[i]);
    add_option(&w, "--file", x->file);
    add_option(&w, "--target", x->target);
    add_option(&w, "--network", x->network);
    add_word(&w, x->no_cache ? "--no-cache" : NULL);
    add_word(&w, directory);
    if (w.count == SILT_WORDS_MAX)
        return silt_fail(e, SILT_LIMIT, "too many words");
    for (size_t i = 0; i < w.count; i++)
        if ((argv[i] = strdup(w.items[i])) == NULL)
            abort();
    int got = silt_docker_build(c, (int)w.count, argv, e);
    for (size_t i = 0; i < w.count; i++)
        free(argv[i]);
    return got;
}

static int make(const struct wishes *x, const char *what, struct silt_client *c,
                struct silt_error *e)
{
    struct stat st;
    if (x->names.count > 0 || strchr(what, '/') != NULL || what[0] == '.')
        return build_file(x, what, c, e);
    if (strcmp(what, "base") != 0 && strcmp(what, "host") != 0 && stat(what, &st) == 0
        && S_ISDIR(st.st_mode))
        return build_file(x, what, c, e);
    return build(what, x->refresh, c, e);
}

static int pull(const struct wishes *x, const char *reference, struct silt_client *c,
                struct silt_error *e)
{
    struct silt_cli_pull wanted = x->pull;
    wanted.reference = reference;
    return silt_cli_pull(&wanted, c, e);
}

/* names */

static int tag(const char *name, const char *other, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE], more[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_path(more, sizeof(more), "/tag?name=", other, "", e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/images/", name, more, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "POST", .path = path, .file = -1};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    silt_slice digest = silt_cli_text(answer, "digest");
    (void)printf("%s %.*s\n", other, (int)digest.len, digest.data);
    return 0;
}

static int commit(const char *id, const char *name, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_auto_buf body;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, PATH_SIZE);
    silt_json_open(&body, '{');
    silt_json_key(&body, SILT_LIT("name"));
    silt_json_string(&body, silt_slice_of(name));
    silt_json_close(&body, '}');
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "/image", e) < 0)
        return -1;
    struct silt_client_request q = silt_client_post(path, silt_buf_slice(&body));
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    silt_slice digest = silt_cli_text(answer, "digest");
    (void)printf("%s %.*s\n", name, (int)digest.len, digest.data);
    return 0;
}

static int prune(struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *answer;
    struct silt_client_request q = {.method = "POST", .path = "/v1/images/prune", .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    (void)printf("%lld steps forgotten\n", (long long)silt_cli_number(answer, "steps"));
    return 0;
}

/* [NAME] PATH */
static int import_archive(const struct wishes *x, const struct silt_words *w, struct silt_client *c,
                          struct silt_error *e)
{
    struct silt_image_archive a = {.name = w->count == 3 ? w->items[1] : NULL,
                                   .path = w->items[w->count - 1],
                                   .image = x->image,
                                   .format = x->format};
    return silt_image_import(c, &a, e);
}

static int export_archive(const struct wishes *x, const char *name, struct silt_client *c,
                          struct silt_error *e)
{
    struct silt_image_archive a = {
        .name = name, .path = x->output != NULL ? x->output : "-", .format = x->format};
    return silt_image_export(c, &a, e);
}

/* Goes on with the other names after a failure. */
static int forget_all(const struct silt_words *w, struct silt_client *c, struct silt_error *e)
{
    struct silt_error why;
    int got = 0;
    for (size_t i = 1; i < w->count; i++) {
        if (forget(w->items[i], c, &why) == 0)
            continue;
        if (got < 0)
            (void)silt_cli_fail(e);
        got = -1;
        *e = why; /* the caller reports the last one */
    }
    return got;
}

static int dispatch(const struct silt_cli *cli, const struct wishes *x, struct silt_client *c,
                    struct silt_error *e)
{
    const struct silt_words *w = &cli->plain;
    if (w->count == 1 && strcmp(w->items[0], "ls") == 0)
        return list(cli, c, e);
    if (w->count == 2 && strcmp(w->items[0], "build") == 0)
        return make(x, w->items[1], c, e);
    if ((w->count == 2 || w->count == 3) && strcmp(w->items[0], "import") == 0)
        return import_archive(x, w, c, e);
    if (w->count == 2 && strcmp(w->items[0], "export") == 0)
        return export_archive(x, w->items[1], c, e);
    if (w->count == 2 && strcmp(w->items[0], "pull") == 0)
        return pull(x, w->items[1], c, e);
    if (w->count == 3 && strcmp(w->items[0], "tag") == 0)
        return tag(w->items[1], w->items[2], c, e);
    if (w->count == 3 && strcmp(w->items[0], "commit") == 0)
        return commit(w->items[1], w->items[2], c, e);
    if (w->count == 1 && strcmp(w->items[0], "prune") == 0)
        return prune(c, e);
    if (w->count >= 2 && strcmp(w->items[0], "rm") == 0)
        return forget_all(w, c, e);
    return silt_cli_misused(e);
}

int silt_cli_image(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct silt_error e;
    static struct wishes x;
    const struct silt_option own[] = {
        {.name = "refresh", .flag = &x.refresh},
        {.name = "tag", .letter = 't', .words = &x.names},
        {.name = "file", .letter = 'f', .value = &x.file},
        {.name = "build-arg", .words = &x.args},
        {.name = "target", .value = &x.target},
        {.name = "network", .value = &x.network},
        {.name = "no-cache", .flag = &x.no_cache},
        {.name = "image", .value = &x.image},
        {.name = "format", .value = &x.format},
        {.name = "output", .letter = 'o', .value = &x.output},
        {.name = "name", .value = &x.pull.name},
        {.name = "user", .value = &x.pull.user},
        {.name = "password-stdin", .flag = &x.pull.password},
    };
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0
        || silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = dispatch(&cli, &x, &client, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED)
        return SILT_EXIT_INTERRUPTED;
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
