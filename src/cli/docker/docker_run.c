/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/docker_run.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/options.h"

#include <stdio.h>

enum { PATH_SIZE = 4096, BODY_MAX = 1 << 20, FRAME_MAX = 1 << 20, NOT_BEGUN = 125 };

struct frames {
    struct silt_buf held; /* an incomplete frame */
};

/* A frame: one byte for the stream, three of padding, four for the length, then the bytes. */
static int take_frames(struct frames *f, silt_slice piece, struct silt_error *e)
{
    silt_buf_add(&f->held, piece);
    if (f->held.broken)
        return silt_fail(e, SILT_PROTOCOL, "a frame of more than %d bytes", FRAME_MAX);
    while (f->held.len >= 8) {
        const unsigned char *h = (const unsigned char *)f->held.data;
        size_t len = (size_t)h[4] << 24 | (size_t)h[5] << 16 | (size_t)h[6] << 8 | h[7];
        if (f->held.len < 8 + len)
            break;
        FILE *out = h[0] == 2 ? stderr : stdout;
        (void)fwrite(f->held.data + 8, 1, len, out);
        (void)fflush(out);
        silt_buf_drop(&f->held, 8 + len);
    }
    return 0;
}

/* Prints the output until the end; the head of the response was read. */
static int print_frames(struct silt_client *c, struct silt_error *e)
{
    struct frames f;
    silt_slice piece;
    int got;
    silt_buf_init(&f.held, FRAME_MAX + 8);
    while ((got = silt_client_read(c, &piece, e)) > 0)
        if (take_frames(&f, piece, e) < 0) {
            got = -1;
            break;
        }
    silt_buf_fini(&f.held);
    return got;
}

static void add_escaped(struct silt_buf *b, const char *text)
{
    for (; *text != 0; text++)
        silt_buf_addf(b, "%%%02X", (unsigned char)*text);
}

int silt_docker_logs(struct silt_client *c, int argc, char **argv, struct silt_error *e)
{
    static struct silt_words plain, rest;
    static const char *tail;
    static bool follows, times;
    const struct silt_option table[] = {
        {.name = "follow", .letter = 'f', .flag = &follows},
        {.name = "timestamps", .letter = 't', .flag = &times},
        {.name = "tail", .letter = 'n', .value = &tail},
    };
    struct silt_options o = {
        .table = table, .count = SILT_COUNT(table), .plain_max = SILT_WORDS_MAX};
    silt_auto_buf path;
    silt_buf_init(&path, PATH_SIZE);
    if (silt_options_parse(&o, argc, argv, &plain, &rest, e) < 0)
        return -1;
    if (plain.count != 1)
        return silt_fail(e, SILT_INVALID, "logs needs a container");
    silt_buf_add(&path, SILT_LIT("/containers/"));
    add_escaped(&path, plain.items[0]);
    silt_buf_addf(&path, "/logs?stdout=1&stderr=1&follow=%d&timestamps=%d&tail=", follows, times);
    add_escaped(&path, tail != NULL ? tail : "all");
    silt_buf_add_byte(&path, 0);
    if (path.broken)
        return silt_fail(e, SILT_INVALID, "the name is too long");
    struct silt_client_request q = {.method = "GET", .path = path.data, .file = -1};
    c->timeout_ms = -1;
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    return c->head.status / 100 == 2 ? print_frames(c, e) : silt_client_fail(c, e);
}

/* run */

struct run {
    struct silt_words env, labels, plain, command;
    const char *name, *workdir, *user, *entrypoint;
    bool remove, detach;
    char id[128];
};

static int parse(struct run *x, int argc, char **argv, struct silt_error *e)
{
    static const char *ignored;
    static bool unheard;
    const struct silt_option table[] = {
        {.name = "rm", .flag = &x->remove},
        {.name = "detach", .letter = 'd', .flag = &x->detach},
        {.name = "name", .value = &x->name},
        {.name = "env", .letter = 'e', .words = &x->env},
        {.name = "label", .letter = 'l', .words = &x->labels},
        {.name = "workdir", .letter = 'w', .value = &x->workdir},
        {.name = "user", .letter = 'u', .value = &x->user},
        {.name = "entrypoint", .value = &x->entrypoint},
        {.name = "platform", .value = &ignored},
        {.name = "init", .flag = &unheard},
    };
    struct silt_options o = {.table = table, .count = SILT_COUNT(table), .plain_max = 1};
    int image = 0; /* the arguments after it belong to the program */
    while (image < argc && argv[image][0] == '-') {
        bool flag = strchr(argv[image], '=') != NULL;
        for (size_t i = 0; i < SILT_COUNT(table); i++)
            flag = flag
                   || (table[i].flag != NULL && strncmp(argv[image], "--", 2) == 0
                       && strcmp(argv[image] + 2, table[i].name) == 0)
                   || (table[i].flag != NULL && argv[image][1] == table[i].letter
                       && argv[image][1] != '-');
        image += flag ? 1 : 2;
    }
    if (image >= argc)
        return silt_fail(e, SILT_INVALID, "run needs an image");
    if (silt_options_parse(&o, image + 1, argv, &x->plain, &x->command, e) < 0)
        return -1;
    for (int i = image + 1; i < argc && x->command.count < SILT_WORDS_MAX; i++)
        x->command.items[x->command.count++] = argv[i];
    return 0;
}

static void add_list(struct silt_buf *b, const char *key, const struct silt_words *words)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_open(b, '[');
    for (size_t i = 0; i < words->count; i++)
        silt_json_string(b, silt_slice_of(words->items[i]));
    silt_json_close(b, ']');
}

static void write_body(const struct run *x, struct silt_buf *b)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"Image", x->plain.items[0]}, {"WorkingDir", x->workdir}, {"User", x->user}};
    silt_json_open(b, '{');
    for (size_t i = 0; i < SILT_COUNT(texts); i++)
        if (texts[i].value != NULL) {
            silt_json_key(b, silt_slice_of(texts[i].key));
            silt_json_string(b, silt_slice_of(texts[i].value));
        }
    add_list(b, "Env", &x->env);
    if (x->command.count > 0)
        add_list(b, "Cmd", &x->command);
    if (x->entrypoint != NULL)
        add_list(b, "Entrypoint", &(struct silt_words){.items = {x->entrypoint}, .count = 1});
    silt_json_key(b, SILT_LIT("Labels"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < x->labels.count; i++) {
        const char *equals = strchrnul(x->labels.items[i], '=');
        silt_json_key(b, (silt_slice){x->labels.items[i], (size_t)(equals - x->labels.items[i])});
        silt_json_string(b, silt_slice_of(*equals != 0 ? equals + 1 : ""));
    }
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("HostConfig"));
    silt_json_raw(b, x->remove ? SILT_LIT("{\"AutoRemove\":true}") : SILT_LIT("{}"));
    silt_json_close(b, '}');
}

static int create(struct silt_client *c, struct run *x, struct silt_error *e)
{
    const struct silt_json *made;
    silt_auto_buf body, path;
    silt_auto_arena a = {0};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    silt_buf_init(&path, PATH_SIZE);
    write_body(x, &body);
    silt_buf_add(&path, SILT_LIT("/containers/create"));
    if (x->name != NULL) {
        silt_buf_add(&path, SILT_LIT("?name="));
        add_escaped(&path, x->name);
    }
    silt_buf_add_byte(&path, 0);
    if (body.broken || path.broken)
        return silt_fail(e, SILT_LIMIT, "words and variables are too long");
    struct silt_client_request q = silt_client_post(path.data, silt_buf_slice(&body));
    if (silt_client_call(c, &q, &a, &made, e) < 0)
        return -1;
    return silt_slice_to_cstr(silt_cli_text(made, "Id"), x->id, sizeof(x->id), e);
}

static int ask(struct silt_client *c, const char *method, const struct run *x, const char *what,
               struct silt_error *e)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/containers/%s%s", x->id, what);
    struct silt_client_request q = {.method = method, .path = path, .file = -1};
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    return c->head.status / 100 == 2 ? 0 : silt_client_fail(c, e);
}

static void copy_client(struct silt_client *to, const struct silt_client *from)
{
    memcpy(to->address, from->address, sizeof(to->address));
    to->fd = to->timeout_ms = -1;
    silt_buf_init(&to->in, BODY_MAX);
}

/* Attaches and waits before the start: a container that removes itself leaves nothing to ask later.
 */
static int attend(struct silt_client *c, const struct run *x, int *ret_code, struct silt_error *e)
{
    static struct silt_client waiting, reading;
    struct silt_error ignored;
    const struct silt_json *end;
    silt_auto_arena a = {0};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    copy_client(&waiting, c);
    copy_client(&reading, c);
    if (ask(&waiting, "POST", x,
            x->remove ? "/wait?condition=removed" : "/wait?condition=next-exit", e)
            < 0
        || ask(&reading, "POST", x, "/attach?stream=1&stdout=1&stderr=1", e) < 0)
        return -1;
    if (ask(c, "POST", x, "/start", e) < 0) {
        if (x->remove)
            (void)ask(c, "DELETE", x, "?force=1", &ignored);
        return -1;
    }
    (void)print_frames(&reading, &ignored);
    int done = silt_client_json(&waiting, &a, &end, e);
    if (done == 0)
        *ret_code = (int)silt_cli_number(end, "StatusCode");
    silt_client_fini(&waiting);
    silt_client_fini(&reading);
    return done;
}

int silt_docker_run(struct silt_client *c, int argc, char **argv, int *ret_code,
                    struct silt_error *e)
{
    static struct run x;
    *ret_code = NOT_BEGUN;
    if (parse(&x, argc, argv, e) < 0 || create(c, &x, e) < 0)
        return -1;
    if (!x.detach)
        return attend(c, &x, ret_code, e);
    if (ask(c, "POST", &x, "/start", e) < 0)
        return -1;
    (void)puts(x.id);
    *ret_code = 0;
    return 0;
}
