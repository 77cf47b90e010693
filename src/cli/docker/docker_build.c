/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/docker_build.h"
#include "base/fd.h"
#include "cli/core/cli.h"
#include "cli/docker/build_context.h"
#include "cli/core/sse.h"
#include "cli/docker/wrangler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUERY_MAX = 64 << 10, DOCKERFILE_MAX = 1 << 20, BUILD_TIMEOUT_MS = 60 * 60 * 1000 };

struct build {
    struct silt_words tags, args, labels, plain, rest;
    const char *file, *target, *network;
    bool no_cache, quiet;
    char in_context[PATH_MAX]; /* path of the Dockerfile in the context */
    struct silt_buf text;      /* text of a Dockerfile outside the context */
    struct silt_wrangler_size size;
};

static void add_escaped(struct silt_buf *b, silt_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        silt_buf_addf(b, "%%%02X", (unsigned char)text.data[i]);
}

static void add_parameter(struct silt_buf *b, const char *name, silt_slice value)
{
    silt_buf_add_byte(b, memchr(b->data, '?', b->len) != NULL ? '&' : '?');
    silt_buf_add(b, silt_slice_of(name));
    silt_buf_add_byte(b, '=');
    add_escaped(b, value);
}

/* NAME=value, or NAME with its value from the environment. */
static void write_args(const struct build *x, struct silt_buf *b)
{
    silt_json_open(b, '{');
    for (size_t i = 0; i < x->args.count; i++) {
        const char *equals = strchr(x->args.items[i], '=');
        const char *value = equals != NULL ? equals + 1 : getenv(x->args.items[i]);
        if (value == NULL)
            continue;
        size_t len =
            equals != NULL ? (size_t)(equals - x->args.items[i]) : strlen(x->args.items[i]);
        silt_json_key(b, (silt_slice){x->args.items[i], len});
        silt_json_string(b, silt_slice_of(value));
    }
    silt_json_close(b, '}');
}

/* NAME=value, or NAME with an empty value. */
static void write_labels(const struct build *x, struct silt_buf *b)
{
    silt_json_open(b, '{');
    for (size_t i = 0; i < x->labels.count; i++) {
        const char *equals = strchrnul(x->labels.items[i], '=');
        silt_json_key(b, (silt_slice){x->labels.items[i], (size_t)(equals - x->labels.items[i])});
        silt_json_string(b, silt_slice_of(*equals != 0 ? equals + 1 : ""));
    }
    silt_json_close(b, '}');
}

static void add_size(const struct build *x, struct silt_buf *b)
{
    char count[24];
    (void)snprintf(count, sizeof(count), "%llu", (unsigned long long)x->size.max_instances);
    if (x->size.type != NULL)
        add_parameter(b, "type", silt_slice_of(x->size.type));
    if (x->size.max_instances > 0)
        add_parameter(b, "max_instances", silt_slice_of(count));
}

static int write_path(const struct build *x, struct silt_buf *b, struct silt_error *e)
{
    silt_auto_buf args, labels;
    silt_buf_init(&args, QUERY_MAX);
    silt_buf_init(&labels, QUERY_MAX);
    silt_buf_add(b, SILT_LIT("/v1/images/build"));
    for (size_t i = 0; i < x->tags.count; i++)
        add_parameter(b, "t", silt_slice_of(x->tags.items[i]));
    add_parameter(b, "dockerfile",
                  x->text.data != NULL ? SILT_LIT(SILT_BUILD_CONTEXT_DOCKERFILE)
                                       : silt_slice_of(x->in_context));
    if (x->target != NULL)
        add_parameter(b, "target", silt_slice_of(x->target));
    if (x->network != NULL && strcmp(x->network, "none") == 0)
        add_parameter(b, "network", SILT_LIT("none"));
    if (x->no_cache)
        add_parameter(b, "nocache", SILT_LIT("1"));
    if (x->args.count > 0) {
        write_args(x, &args);
        add_parameter(b, "buildargs", silt_buf_slice(&args));
    }
    if (x->labels.count > 0) {
        write_labels(x, &labels);
        add_parameter(b, "labels", silt_buf_slice(&labels));
    }
    add_size(x, b);
    silt_buf_add_byte(b, 0);
    return b->broken || args.broken || labels.broken
               ? silt_fail(e, SILT_LIMIT, "names and arguments are too long")
               : 0;
}

/* The Dockerfile */

static int read_all(int fd, struct silt_buf *b, struct silt_error *e)
{
    for (;;) {
        char *room = silt_buf_room(b, 4096);
        if (room == NULL)
            return silt_fail(e, SILT_LIMIT, "a Dockerfile of more than %d bytes", DOCKERFILE_MAX);
        ssize_t n = read(fd, room, 4096);
        if (n < 0)
            return silt_fail_errno(e, "read the Dockerfile");
        if (n == 0)
            return 0;
        b->len += (size_t)n;
    }
}

/* Inside the context the request names its path; from elsewhere, or from standard input, its text
 * is sent. */
static int find_dockerfile(struct build *x, const char *directory, struct silt_error *e)
{
    char *whole, *base;
    if (x->file != NULL && strcmp(x->file, "-") == 0)
        return read_all(STDIN_FILENO, &x->text, e);
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s%s%s", x->file != NULL ? "" : directory,
                   x->file != NULL ? "" : "/", x->file != NULL ? x->file : "Dockerfile");
    whole = realpath(path, NULL);
    int why = errno; /* of the first that fails */
    base = realpath(directory, NULL);
    why = whole != NULL ? errno : why;
    if (whole == NULL || base == NULL) {
        errno = why;
        int failed = silt_fail_errno(e, "%s", whole == NULL ? path : directory);
        if (why == ENOENT && x->file == NULL && access(directory, F_OK) == 0)
            failed = silt_fail(e, SILT_NOT_FOUND, "no Dockerfile in %s\n-f FILE names another one",
                               directory);
        free(whole);
        free(base);
        return failed;
    }
    size_t len = strlen(base);
    bool inside = strncmp(whole, base, len) == 0 && (whole[len] == '/' || len == 1);
    (void)snprintf(x->in_context, sizeof(x->in_context), "%s",
                   inside ? whole + len + (len > 1) : "");
    int done = 0;
    if (!inside) {
        silt_auto_fd fd = open(whole, O_RDONLY | O_CLOEXEC);
        done = fd < 0 ? silt_fail_errno(e, "open %s", whole) : read_all(fd, &x->text, e);
    }
    free(whole);
    free(base);
    return done;
}

/* Progress, on standard error as in docker. */

static int on_event(const struct build *x, const struct silt_json *v, bool *ret_done,
                    struct silt_error *e)
{
    silt_slice type = silt_cli_text(v, "type"), text = silt_cli_text(v, "text");
    if (text.len == 0)
        text = silt_cli_text(v, "data").len > 0 ? silt_cli_text(v, "data")
                                                : silt_cli_text(v, "message");
    if (silt_slice_eq(type, SILT_LIT("error")))
        return silt_fail(e, SILT_INVALID, "%.*s", (int)(text.len < 400 ? text.len : 400),
                         text.data);
    if (silt_slice_eq(type, SILT_LIT("done"))) {
        *ret_done = true;
        silt_cli_print(silt_cli_text(v, "id"));
        (void)putchar('\n');
    } else if (x->quiet) {
        return 0;
    } else if (silt_slice_eq(type, SILT_LIT("step"))) {
        (void)fprintf(stderr, "[%lld/%lld] %.*s%s\n", (long long)silt_cli_number(v, "step"),
                      (long long)silt_cli_number(v, "total"), (int)text.len, text.data,
                      silt_cli_true(v, "cached") ? "  (cached)" : "");
    } else if (silt_slice_eq(type, SILT_LIT("output"))) {
        (void)fwrite(text.data, 1, text.len, stderr);
    } else if (silt_slice_eq(type, SILT_LIT("notice"))) {
        (void)fprintf(stderr, "%.*s\n", (int)text.len, text.data);
    }
    return 0;
}

static int follow(struct silt_client *c, const struct build *x, struct silt_error *e)
{
    struct silt_sse sse;
    silt_slice piece, data;
    bool done = false;
    int got, result = 0;
    silt_sse_init(&sse);
    while (result == 0 && (got = silt_client_read(c, &piece, e)) != 0) {
        result = got < 0 ? -1 : 0;
        while (result == 0 && (got = silt_sse_next(&sse, &piece, &data, e)) != 0) {
            silt_auto_arena a;
            const struct silt_json *v;
            silt_arena_init(&a, SILT_CLI_ARENA_MAX);
            result = got < 0 || silt_json_read(&a, data, &v, e) < 0 ? -1 : on_event(x, v, &done, e);
        }
    }
    silt_sse_fini(&sse);
    if (result == 0 && !done)
        return silt_fail(e, SILT_GONE, "the daemon broke the build off");
    return result;
}

static int parse(struct build *x, int argc, char **argv, struct silt_error *e)
{
    static const char *ignored;
    static bool unheard;
    const struct silt_option table[] = {
        {.name = "tag", .letter = 't', .words = &x->tags},
        {.name = "file", .letter = 'f', .value = &x->file},
        {.name = "build-arg", .words = &x->args},
        {.name = "label", .words = &x->labels},
        {.name = "target", .value = &x->target},
        {.name = "network", .value = &x->network},
        {.name = "no-cache", .flag = &x->no_cache},
        {.name = "quiet", .letter = 'q', .flag = &x->quiet},
        {.name = "load", .flag = &unheard},
        {.name = "pull", .flag = &unheard},
        {.name = "platform", .value = &ignored},
        {.name = "provenance", .value = &ignored},
        {.name = "progress", .value = &ignored},
        {.name = "output", .letter = 'o', .value = &ignored},
    };
    struct silt_options o = {
        .table = table, .count = SILT_COUNT(table), .plain_max = SILT_WORDS_MAX};
    if (silt_options_parse(&o, argc, argv, &x->plain, &x->rest, e) < 0)
        return -1;
    if (x->plain.count != 1)
        return silt_fail(e, SILT_INVALID, "build needs the directory of its context");
    return 0;
}

int silt_docker_build(struct silt_client *c, int argc, char **argv, struct silt_error *e)
{
    static struct build x;
    static struct silt_build_context context = {.fd = -1};
    silt_auto_buf path;
    silt_auto_arena arena = {0};
    struct silt_error ignored;
    silt_buf_init(&path, QUERY_MAX);
    silt_buf_init(&x.text, DOCKERFILE_MAX);
    silt_arena_init(&arena, SILT_CLI_ARENA_MAX);
    if (parse(&x, argc, argv, e) < 0)
        return -1;
    if (silt_wrangler_size(&arena, x.tags.count > 0 ? x.tags.items[0] : "", &x.size, &ignored) < 0)
        (void)fprintf(stderr, "instance_type and max_instances are not known: %s\n", ignored.text);
    if (find_dockerfile(&x, x.plain.items[0], e) < 0 || write_path(&x, &path, e) < 0)
        return -1;
    struct silt_build_context_options o = {.directory = x.plain.items[0],
                                           .dockerfile = silt_buf_slice(&x.text),
                                           .dockerfile_path = x.in_context,
                                           .quiet = x.quiet};
    if (silt_build_context_open(&context, &o, e) < 0)
        return -1;
    struct silt_client_request q = {.method = "POST",
                                    .path = path.data,
                                    .content_type = "application/x-tar",
                                    .file = -1,
                                    .source = &context.source,
                                    .progress = &context.progress};
    c->timeout_ms = BUILD_TIMEOUT_MS;
    int done = silt_client_ask(c, &q, e);
    (void)silt_build_context_close(&context, &ignored);
    if (done == 0)
        done = c->head.status / 100 == 2 ? follow(c, &x, e) : silt_client_fail(c, e);
    silt_buf_fini(&x.text);
    return done;
}
