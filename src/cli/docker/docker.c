/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/docker.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/docker/docker_build.h"
#include "cli/docker/docker_run.h"
#include "cli/core/find.h"
#include "cli/docker/image_archive.h"
#include "cli/docker/template.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096,
    OUTPUT_MAX = 64 << 20,
    PROGRESS_MAX = 1 << 20,
    PULL_TIMEOUT_MS = 60 * 60 * 1000
};

struct docker {
    struct silt_client client;
    struct silt_arena arena;
    const char *host;   /* --host */
    const char *format; /* --format; NULL: none */
    const char *file;   /* -o of save, -i of load; NULL: none */
    bool all, force, quiet, no_trunc;
    struct silt_words filters, plain;
    int code; /* exit status */
};

/* The socket */

static int take_socket(const char *text, char ret[SILT_CLIENT_ADDRESS_SIZE], struct silt_error *e)
{
    const char *path = strncmp(text, "unix://", 7) == 0 ? text + 7
                       : strncmp(text, "unix:", 5) == 0 ? text + 5
                                                        : text;
    if (path[0] != '/' && path[0] != '.')
        return silt_fail(e, SILT_INVALID, "%s is no unix socket: Silt has no other", text);
    return silt_slice_to_cstr(silt_slice_of(path), ret, SILT_CLIENT_ADDRESS_SIZE, e);
}

int silt_docker_find_socket(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE],
                            struct silt_error *e)
{
    const struct silt_config *config;
    const char *const places[] = {option, getenv("WRANGLER_DOCKER_HOST"), getenv("DOCKER_HOST")};
    for (size_t i = 0; i < SILT_COUNT(places); i++)
        if (places[i] != NULL && places[i][0] != 0)
            return take_socket(places[i], ret, e);
    if (silt_find_config(&config, e) < 0)
        return -1;
    if (config->engine_socket[0] != 0)
        return take_socket(config->engine_socket, ret, e);
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/engine.sock", config->run);
    return take_socket(path, ret, e);
}

/* Requests */

static void add_escaped(struct silt_buf *b, const char *text)
{
    for (; *text != 0; text++) {
        bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z')
                     || (*text >= '0' && *text <= '9') || silt_is_any(*text, "-._~");
        if (plain)
            silt_buf_add_byte(b, *text);
        else
            silt_buf_addf(b, "%%%02X", (unsigned char)*text);
    }
}

/* The path's parts come in pairs: one as it stands, one to escape. `ret` may be NULL: no body
 * expected. */
static int call(struct docker *d, const char *method, const char *const *parts,
                const struct silt_json **ret, struct silt_error *e)
{
    silt_auto_buf path;
    silt_buf_init(&path, PATH_SIZE);
    for (size_t i = 0; parts[i] != NULL; i++)
        if (i % 2 == 0)
            silt_buf_add(&path, silt_slice_of(parts[i]));
        else
            add_escaped(&path, parts[i]);
    silt_buf_add_byte(&path, 0);
    if (path.broken)
        return silt_fail(e, SILT_INVALID, "the name is too long");
    struct silt_client_request q = {.method = method, .path = path.data, .file = -1};
    if (ret != NULL)
        return silt_client_call(&d->client, &q, &d->arena, ret, e);
    if (silt_client_ask(&d->client, &q, e) < 0)
        return -1;
    return d->client.head.status / 100 == 2 ? 0 : silt_client_fail(&d->client, e);
}

#define CALL(d, method, ret, e, ...)                                                               \
    call(d, method, (const char *const[]){__VA_ARGS__, NULL}, ret, e)

/* Output */

static int print(const struct docker *d, const char *usual, const struct silt_json *value,
                 struct silt_error *e)
{
    silt_auto_buf out;
    const char *format = d->format != NULL ? d->format : usual;
    silt_buf_init(&out, OUTPUT_MAX);
    if (silt_template_write(silt_slice_of(format), value, &out, e) < 0)
        return -1;
    if (out.broken)
        return silt_fail(e, SILT_LIMIT, "more than %d bytes to print", OUTPUT_MAX);
    (void)fwrite(out.data, 1, out.len, stdout);
    if (out.len == 0 || out.data[out.len - 1] != '\n')
        (void)putchar('\n');
    return 0;
}

/* Verbs: 0 or -1. */

static int run_info(struct docker *d, struct silt_error *e)
{
    const struct silt_json *v;
    if (CALL(d, "GET", &v, e, "/info") < 0)
        return -1;
    return print(d,
                 "Server: Silt {{.ServerVersion}}\nContainers: {{.Containers}}\n Running: "
                 "{{.ContainersRunning}}\nOperating System: {{.OperatingSystem}}\n",
                 v, e);
}

static int run_version(struct docker *d, struct silt_error *e)
{
    const struct silt_json *v;
    silt_auto_buf b;
    silt_buf_init(&b, OUTPUT_MAX);
    if (CALL(d, "GET", &v, e, "/version") < 0)
        return -1;
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("Client"));
    silt_json_raw(&b, SILT_LIT("{\"Version\":\"" SILT_VERSION "\",\"ApiVersion\":\"1.47\"}"));
    silt_json_key(&b, SILT_LIT("Server"));
    silt_json_value(&b, v);
    silt_json_close(&b, '}');
    if (silt_json_read(&d->arena, silt_buf_slice(&b), &v, e) < 0)
        return -1;
    return print(d,
                 "Client: Silt {{.Client.Version}}\nServer: Silt {{.Server.Version}}\n API "
                 "version: {{.Server.ApiVersion}}\n",
                 v, e);
}

static silt_slice filter_key(const struct docker *d, size_t i, silt_slice *ret_value)
{
    silt_slice key = {NULL, 0};
    *ret_value = silt_slice_of(d->filters.items[i]);
    (void)silt_slice_split(ret_value, '=', &key);
    return key;
}

/* {"label":["x","y"]} of --filter label=x --filter label=y */
static int write_filters(const struct docker *d, struct silt_buf *b, struct silt_error *e)
{
    silt_slice value;
    silt_json_open(b, '{');
    for (size_t i = 0; i < d->filters.count; i++) {
        silt_slice key = filter_key(d, i, &value);
        bool seen = false;
        if (value.data == NULL)
            return silt_fail(e, SILT_INVALID, "--filter %s is not KEY=VALUE", d->filters.items[i]);
        for (size_t k = 0; k < i; k++)
            seen = seen || silt_slice_eq(filter_key(d, k, &value), key);
        if (seen)
            continue;
        silt_json_key(b, key);
        silt_json_open(b, '[');
        for (size_t k = i; k < d->filters.count; k++)
            if (silt_slice_eq(filter_key(d, k, &value), key) && value.data != NULL)
                silt_json_string(b, value);
        silt_json_close(b, ']');
    }
    silt_json_close(b, '}');
    silt_buf_add_byte(b, 0);
    return b->broken ? silt_fail(e, SILT_INVALID, "the filters are too long") : 0;
}

/* With the names of `docker ps`. */
static void write_row(struct silt_buf *b, const struct silt_json *c, bool whole)
{
    silt_slice id = silt_cli_text(c, "Id"), name = {"", 0};
    const struct silt_json *names = silt_json_get(c, SILT_LIT("Names"));
    if (names != NULL && names->type == SILT_JSON_ARRAY && names->items.first != NULL
        && names->items.first->type == SILT_JSON_STRING)
        name = names->items.first->string;
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    if (!whole && id.len > 12)
        id.len = 12;
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("ID"));
    silt_json_string(b, id);
    silt_json_key(b, SILT_LIT("Names"));
    silt_json_string(b, name);
    static const char *const same[] = {"Image", "Command", "State", "Status"};
    for (size_t i = 0; i < SILT_COUNT(same); i++) {
        silt_json_key(b, silt_slice_of(same[i]));
        silt_json_string(b, silt_cli_text(c, same[i]));
    }
    silt_json_close(b, '}');
}

/* The format of a list: expands \t and \n; a table has no header line. */
static int read_row_format(struct docker *d, struct silt_error *e)
{
    const char *from = strncmp(d->format, "table ", 6) == 0 ? d->format + 6 : d->format;
    char *copy = silt_arena_dup(&d->arena, silt_slice_of(from)), *to = copy;
    if (copy == NULL)
        return silt_fail(e, SILT_LIMIT, "the format is too long");
    for (; *from != 0; from++) {
        bool escaped = from[0] == '\\' && (from[1] == 't' || from[1] == 'n');
        from += escaped;
        *to++ = escaped ? (*from == 't' ? '\t' : '\n') : *from;
    }
    *to = 0;
    d->format = copy;
    return 0;
}

static int run_ps(struct docker *d, struct silt_error *e)
{
    const struct silt_json *list, *row;
    silt_auto_buf filters;
    silt_buf_init(&filters, PATH_SIZE);
    if (d->format != NULL && read_row_format(d, e) < 0)
        return -1;
    if (write_filters(d, &filters, e) < 0
        || CALL(d, "GET", &list, e,
                d->all ? "/containers/json?all=1&filters=" : "/containers/json?filters=",
                filters.data)
               < 0)
        return -1;
    if (d->format == NULL && !d->quiet)
        (void)puts("CONTAINER ID   IMAGE   STATUS   NAMES");
    for (const struct silt_json *c = list->type == SILT_JSON_ARRAY ? list->items.first : NULL;
         c != NULL; c = c->next) {
        silt_auto_buf b;
        silt_buf_init(&b, OUTPUT_MAX);
        write_row(&b, c, d->no_trunc);
        char *text = silt_arena_dup(&d->arena, silt_buf_slice(&b));
        if (text == NULL || silt_json_read(&d->arena, (silt_slice){text, b.len}, &row, e) < 0
            || print(d, d->quiet ? "{{.ID}}" : "{{.ID}}   {{.Image}}   {{.Status}}   {{.Names}}",
                     row, e)
                   < 0)
            return -1;
    }
    return 0;
}

static void complain(const char *who, const struct silt_error *e)
{
    (void)fputs(who, stderr);
    for (const char *p = e->text; *p != 0; p++)
        (void)fputc(((unsigned char)*p < ' ' && *p != '\n') || *p == 0x7f ? '?' : (unsigned char)*p,
                    stderr);
    (void)fputc('\n', stderr);
}

/* Goes on after a failure; reports the last one. */
static int each(struct docker *d, const char *method, const char *before, const char *after,
                struct silt_error *e)
{
    int done = 0;
    if (d->plain.count == 0)
        return silt_fail(e, SILT_INVALID, "a name is missing");
    for (size_t i = 0; i < d->plain.count; i++) {
        if (CALL(d, method, NULL, e, before, d->plain.items[i], after) < 0) {
            complain("Error response from daemon: ", e);
            done = -1;
        } else {
            (void)puts(d->plain.items[i]);
        }
    }
    return done < 0 ? silt_fail(e, SILT_INVALID, "not all of it was done") : 0;
}

static int run_rm(struct docker *d, struct silt_error *e)
{
    return each(d, "DELETE", "/containers/", d->force ? "?force=1" : "", e);
}

static int run_rmi(struct docker *d, struct silt_error *e)
{
    return each(d, "DELETE", "/images/", "", e);
}

static int run_kill(struct docker *d, struct silt_error *e)
{
    return each(d, "POST", "/containers/", "/kill", e);
}

static int run_stop(struct docker *d, struct silt_error *e)
{
    return each(d, "POST", "/containers/", "/stop", e);
}

static int inspect(struct docker *d, const char *before, struct silt_error *e)
{
    const struct silt_json *v;
    if (d->plain.count == 0)
        return silt_fail(e, SILT_INVALID, "a name is missing");
    if (d->format == NULL)
        (void)putchar('[');
    for (size_t i = 0; i < d->plain.count; i++) {
        if (CALL(d, "GET", &v, e, before, d->plain.items[i], "/json") < 0)
            return -1;
        if (d->format == NULL && i > 0)
            (void)putchar(',');
        if (print(d, "{{json .}}", v, e) < 0)
            return -1;
    }
    if (d->format == NULL)
        (void)puts("]");
    return 0;
}

static int run_image_inspect(struct docker *d, struct silt_error *e)
{
    return inspect(d, "/images/", e);
}

static int run_inspect(struct docker *d, struct silt_error *e)
{
    return inspect(d, "/containers/", e);
}

/* With the names of `docker images`: one row per name. */
static void write_image_row(struct silt_buf *b, const struct silt_json *image, silt_slice name,
                            bool whole)
{
    char size[SILT_CLI_SIZE_TEXT];
    silt_slice id = silt_cli_text(image, "Id"), tag = {"<none>", 6}, repository = {"<none>", 6};
    const char *colon = name.len > 0 ? memrchr(name.data, ':', name.len) : NULL;
    if (colon != NULL) {
        repository = (silt_slice){name.data, (size_t)(colon - name.data)};
        tag = (silt_slice){colon + 1, name.len - repository.len - 1};
    }
    if (!whole && id.len > 19)
        id = (silt_slice){id.data + 7, 12};
    const struct {
        const char *key;
        silt_slice value;
    } cells[] = {{"Repository", repository},
                 {"Tag", tag},
                 {"ID", id},
                 {"Size", silt_slice_of(silt_cli_size(silt_cli_number(image, "Size"), size))}};
    silt_json_open(b, '{');
    for (size_t i = 0; i < SILT_COUNT(cells); i++) {
        silt_json_key(b, silt_slice_of(cells[i].key));
        silt_json_string(b, cells[i].value);
    }
    silt_json_close(b, '}');
}

static int print_image(struct docker *d, const struct silt_json *image, silt_slice name,
                       struct silt_error *e)
{
    const struct silt_json *row;
    silt_auto_buf b;
    silt_buf_init(&b, OUTPUT_MAX);
    write_image_row(&b, image, name, d->no_trunc);
    char *text = silt_arena_dup(&d->arena, silt_buf_slice(&b));
    if (text == NULL || silt_json_read(&d->arena, (silt_slice){text, b.len}, &row, e) < 0)
        return text == NULL ? silt_fail(e, SILT_LIMIT, "too many images") : -1;
    if (d->format != NULL || d->quiet)
        return print(d, "{{.ID}}", row, e);
    (void)printf("%-40.*s %-20.*s %-14.*s %.*s\n", (int)silt_cli_text(row, "Repository").len,
                 silt_cli_text(row, "Repository").data, (int)silt_cli_text(row, "Tag").len,
                 silt_cli_text(row, "Tag").data, (int)silt_cli_text(row, "ID").len,
                 silt_cli_text(row, "ID").data, (int)silt_cli_text(row, "Size").len,
                 silt_cli_text(row, "Size").data);
    return 0;
}

static int run_images(struct docker *d, struct silt_error *e)
{
    const struct silt_json *list;
    if (d->format != NULL && read_row_format(d, e) < 0)
        return -1;
    if (CALL(d, "GET", &list, e, "/images/json") < 0)
        return -1;
    if (d->format == NULL && !d->quiet)
        (void)printf("%-40s %-20s %-14s %s\n", "REPOSITORY", "TAG", "IMAGE ID", "SIZE");
    for (const struct silt_json *i = list->type == SILT_JSON_ARRAY ? list->items.first : NULL;
         i != NULL; i = i->next) {
        const struct silt_json *tags = silt_json_get(i, SILT_LIT("RepoTags"));
        const struct silt_json *name =
            tags != NULL && tags->type == SILT_JSON_ARRAY ? tags->items.first : NULL;
        if (name == NULL && d->all && print_image(d, i, (silt_slice){"", 0}, e) < 0)
            return -1;
        for (; name != NULL; name = name->next)
            if (print_image(d, i, name->string, e) < 0)
                return -1;
    }
    return 0;
}

static int64_t sum_of(const struct silt_json *list, const char *key)
{
    int64_t sum = 0;
    for (const struct silt_json *i =
             list != NULL && list->type == SILT_JSON_ARRAY ? list->items.first : NULL;
         i != NULL; i = i->next)
        sum += silt_cli_number(i, key);
    return sum;
}

static int run_df(struct docker *d, struct silt_error *e)
{
    static const char *const kinds[] = {"Images", "Containers", "Volumes"};
    const struct silt_json *v;
    char size[SILT_CLI_SIZE_TEXT];
    if (CALL(d, "GET", &v, e, "/system/df") < 0)
        return -1;
    if (d->format != NULL)
        return print(d, d->format, v, e);
    (void)printf("%-15s %-9s %s\n", "TYPE", "TOTAL", "SIZE");
    for (size_t i = 0; i < SILT_COUNT(kinds); i++) {
        const struct silt_json *list = silt_json_get(v, silt_slice_of(kinds[i]));
        int64_t bytes = i == 0 ? silt_cli_number(v, "LayersSize") : sum_of(list, "SizeRw");
        (void)printf("%-15s %-9zu %s\n", kinds[i],
                     list != NULL && list->type == SILT_JSON_ARRAY ? list->items.count : 0,
                     silt_cli_size(bytes, size));
    }
    return 0;
}

/* Removes only what nobody needs again: ended containers that belong to no Worker, and cached build
 * steps. */
static int run_prune(struct docker *d, struct silt_error *e)
{
    const struct silt_json *gone, *ignored;
    if (CALL(d, "POST", &gone, e, "/containers/prune") < 0
        || CALL(d, "POST", &ignored, e, "/images/prune") < 0
        || CALL(d, "POST", &ignored, e, "/build/prune") < 0)
        return -1;
    const struct silt_json *list = silt_json_get(gone, SILT_LIT("ContainersDeleted"));
    for (const struct silt_json *i =
             list != NULL && list->type == SILT_JSON_ARRAY ? list->items.first : NULL;
         i != NULL; i = i->next)
        (void)printf("%.*s\n", (int)i->string.len, i->string.data);
    (void)puts(
        "Steps of earlier builds are forgotten; what nothing uses any more goes in the background");
    return 0;
}

/* A colon after the last slash begins the tag. */
static void split_name(const char *name, char repo[PATH_SIZE], const char **ret_tag)
{
    const char *slash = strrchr(name, '/'), *colon = strrchr(slash != NULL ? slash : name, ':');
    *ret_tag = colon != NULL ? colon + 1 : "latest";
    (void)snprintf(repo, PATH_SIZE, "%.*s",
                   (int)(colon != NULL ? (size_t)(colon - name) : strlen(name)), name);
}

static int run_tag(struct docker *d, struct silt_error *e)
{
    char repo[PATH_SIZE];
    const char *tag;
    if (d->plain.count != 2)
        return silt_fail(e, SILT_INVALID, "tag needs an image and a name");
    split_name(d->plain.items[1], repo, &tag);
    return CALL(d, "POST", NULL, e, "/images/", d->plain.items[0], "/tag?repo=", repo,
                "&tag=", tag);
}

/* One line of progress. It may come from a registry: control characters must not reach the
 * terminal. */
static int on_progress(silt_slice line, struct silt_error *e)
{
    silt_auto_arena a = {0};
    const struct silt_json *v;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_slice_trim(line).len == 0)
        return 0;
    if (silt_json_read(&a, line, &v, e) < 0)
        return -1;
    silt_slice error = silt_cli_text(v, "error");
    if (error.len > 0)
        return silt_fail(e, SILT_INVALID, "%.*s", (int)(error.len < 400 ? error.len : 400),
                         error.data);
    silt_cli_print(silt_cli_text(v, "status"));
    (void)putchar('\n');
    (void)fflush(stdout);
    return 0;
}

static int follow_pull(struct docker *d, struct silt_error *e)
{
    silt_slice piece, line;
    int got;
    silt_auto_buf held;
    silt_buf_init(&held, PROGRESS_MAX);
    while ((got = silt_client_read(&d->client, &piece, e)) > 0) {
        const char *end;
        silt_buf_add(&held, piece);
        if (held.broken)
            return silt_fail(e, SILT_LIMIT, "a line of more than %d bytes", PROGRESS_MAX);
        while (held.len > 0 && (end = memchr(held.data, '\n', held.len)) != NULL) {
            line = (silt_slice){held.data, (size_t)(end - held.data)};
            if (on_progress(line, e) < 0)
                return -1;
            silt_buf_drop(&held, line.len + 1);
        }
    }
    return got;
}

/* The image that wrangler pulls for its own sidecar is never used here, whatever its name. */
static int run_pull(struct docker *d, struct silt_error *e)
{
    const char *sidecar = getenv("MINIFLARE_CONTAINER_EGRESS_IMAGE");
    if (d->plain.count != 1)
        return silt_fail(e, SILT_INVALID, "pull needs a name");
    if (sidecar != NULL && strcmp(sidecar, d->plain.items[0]) == 0) {
        (void)puts("Nothing to fetch: Silt serves the sidecar itself");
        return 0;
    }
    d->client.timeout_ms = PULL_TIMEOUT_MS;
    if (CALL(d, "POST", NULL, e, "/images/create?fromImage=", d->plain.items[0]) < 0
        || follow_pull(d, e) < 0)
        return silt_because(e, "Failed to pull container image %s",
                            d->plain.items[0]); /* wrangler shows this message and adds no reason */
    return 0;
}

static int run_save(struct docker *d, struct silt_error *e)
{
    if (d->plain.count != 1)
        return silt_fail(e, SILT_INVALID, "save needs one image: an archive of Silt holds one");
    struct silt_image_archive a = {
        .name = d->plain.items[0], .path = d->file != NULL ? d->file : "-", .format = "docker"};
    return silt_image_export(&d->client, &a, e);
}

static int run_load(struct docker *d, struct silt_error *e)
{
    if (d->plain.count != 0)
        return silt_fail(e, SILT_INVALID, "load takes its archive by -i, or on standard input");
    struct silt_image_archive a = {.path = d->file != NULL ? d->file : "-", .as_docker = true};
    return silt_image_import(&d->client, &a, e);
}

static int run_context(struct docker *d, struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, PATH_SIZE);
    if (d->plain.count > 0 && strcmp(d->plain.items[0], "show") == 0) {
        (void)puts("silt");
        return 0;
    }
    if (d->plain.count != 1 || strcmp(d->plain.items[0], "ls") != 0)
        return silt_fail(e, SILT_INVALID, "there are `context ls` and `context show`");
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("Current"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("Description"));
    silt_json_string(&b, SILT_LIT("the engine socket of Silt"));
    silt_json_key(&b, SILT_LIT("DockerEndpoint"));
    char endpoint[SILT_CLIENT_ADDRESS_SIZE + 8];
    (void)snprintf(endpoint, sizeof(endpoint), "unix://%s", d->client.address);
    silt_json_string(&b, silt_slice_of(endpoint));
    silt_json_key(&b, SILT_LIT("Error"));
    silt_json_string(&b, SILT_LIT(""));
    silt_json_key(&b, SILT_LIT("Name"));
    silt_json_string(&b, SILT_LIT("silt"));
    silt_json_close(&b, '}');
    const struct silt_json *v;
    return silt_json_read(&d->arena, silt_buf_slice(&b), &v, e) < 0
               ? -1
               : print(d, "{{.Name}} *   {{.DockerEndpoint}}", v, e);
}

/* The credentials are not used: reads and discards them. */
static int run_login(struct docker *d, struct silt_error *e)
{
    char junk[256];
    (void)d;
    (void)e;
    while (read(STDIN_FILENO, junk, sizeof(junk)) > 0)
        continue;
    (void)puts("Login Succeeded (the password is not kept: private images come by `silt image pull "
               "--user`)");
    return 0;
}

static int run_nothing(struct docker *d, struct silt_error *e)
{
    (void)d;
    (void)e;
    return 0;
}

/* Arguments */

static const struct verb {
    const char *name, *second; /* `image inspect` */
    int (*run)(struct docker *d, struct silt_error *e);
    bool offline; /* needs no daemon */
} verbs[] = {
    {"info", NULL, run_info, false},
    {"version", NULL, run_version, false},
    {"ps", NULL, run_ps, false},
    {"container", "ls", run_ps, false},
    {"rm", NULL, run_rm, false},
    {"container", "rm", run_rm, false},
    {"kill", NULL, run_kill, false},
    {"stop", NULL, run_stop, false},
    {"inspect", NULL, run_inspect, false},
    {"container", "inspect", run_inspect, false},
    {"image", "inspect", run_image_inspect, false},
    {"image", "ls", run_images, false},
    {"images", NULL, run_images, false},
    {"image", "rm", run_rmi, false},
    {"rmi", NULL, run_rmi, false},
    {"system", "df", run_df, false},
    {"system", "prune", run_prune, false},
    {"tag", NULL, run_tag, false},
    {"image", "tag", run_tag, false},
    {"pull", NULL, run_pull, false},
    {"image", "pull", run_pull, false},
    {"save", NULL, run_save, false},
    {"image", "save", run_save, false},
    {"load", NULL, run_load, false},
    {"image", "load", run_load, false},
    {"context", NULL, run_context, true},
    {"login", NULL, run_login, true},
    {"logout", NULL, run_nothing, true},
};

/* Options before the verb: --host X, -H X, --host=X and others with a value. */
static int skip_globals(struct docker *d, int argc, char **argv)
{
    static const char *const valued[] = {"--host", "-H",          "--config", "--context",
                                         "-c",     "--log-level", "-l"};
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        bool takes = false;
        for (size_t i = 0; i < SILT_COUNT(valued); i++)
            takes = takes || strcmp(argv[at], valued[i]) == 0;
        if (takes && at + 1 < argc
            && (strcmp(argv[at], "--host") == 0 || strcmp(argv[at], "-H") == 0))
            d->host = argv[at + 1];
        if (strncmp(argv[at], "--host=", 7) == 0)
            d->host = argv[at] + 7;
        at += takes ? 2 : 1;
    }
    return at;
}

static const struct verb *find_verb(int argc, char **argv, int *ret_used)
{
    for (size_t i = 0; i < SILT_COUNT(verbs); i++) {
        if (argc < 1 || strcmp(argv[0], verbs[i].name) != 0)
            continue;
        if (verbs[i].second != NULL && (argc < 2 || strcmp(argv[1], verbs[i].second) != 0))
            continue;
        *ret_used = verbs[i].second != NULL ? 2 : 1;
        return &verbs[i];
    }
    return NULL;
}

static int parse(struct docker *d, int argc, char **argv, struct silt_error *e)
{
    static const char *ignored;
    static bool unheard;
    const struct silt_option table[] = {
        {.name = "format", .letter = 'F', .value = &d->format},
        {.name = "filter", .letter = 'f', .words = &d->filters},
        {.name = "all", .letter = 'a', .flag = &d->all},
        {.name = "force", .flag = &d->force},
        {.name = "quiet", .letter = 'q', .flag = &d->quiet},
        {.name = "no-trunc", .flag = &d->no_trunc},
        {.name = "output", .letter = 'o', .value = &d->file},
        {.name = "input", .letter = 'i', .value = &d->file},
        {.name = "platform", .value = &ignored},
        {.name = "username", .letter = 'u', .value = &ignored},
        {.name = "password", .letter = 'p', .value = &ignored},
        {.name = "password-stdin", .flag = &unheard},
        {.name = "volumes", .letter = 'v', .flag = &unheard},
        {.name = "no-prune", .flag = &unheard},
        {.name = "signal", .letter = 's', .value = &ignored},
        {.name = "time", .letter = 't', .value = &ignored},
    };
    struct silt_options o = {
        .table = table, .count = SILT_COUNT(table), .plain_max = SILT_WORDS_MAX};
    static struct silt_words rest;
    return silt_options_parse(&o, argc, argv, &d->plain, &rest, e);
}

/* `rm -f` and `rmi -f` force, `info -f X` formats, elsewhere -f filters. */
static void spell_f(const char *verb, int argc, char **argv)
{
    static char force[] = "--force", format[] = "--format";
    static const char *const forces[] = {"rm", "rmi", "prune"}, *const formats[] = {
                                                                    "info", "version", "inspect"};
    char *meant = NULL;
    for (size_t i = 0; i < SILT_COUNT(forces); i++)
        meant = strcmp(verb, forces[i]) == 0 ? force : meant;
    for (size_t i = 0; i < SILT_COUNT(formats); i++)
        meant = strcmp(verb, formats[i]) == 0 ? format : meant;
    for (int i = 0; meant != NULL && i < argc; i++)
        if (strcmp(argv[i], "-f") == 0)
            argv[i] = meant;
}

#define USAGE                                                                                      \
    "usage: silt-docker build | run | logs | pull | tag | images | image ls, inspect, rm, tag, "   \
    "pull, save, load | save | load | ps | rm | rmi | kill | stop | inspect | system df, prune | " \
    "info | version | context | login | logout"

static bool is_asked_for(const char *what, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], what) == 0)
            return true;
    return false;
}

static int run(struct docker *d, int argc, char **argv, struct silt_error *e)
{
    int used = 0, at = skip_globals(d, argc, argv);
    silt_buf_init(&d->client.in, OUTPUT_MAX);
    d->client.fd = -1;
    if (is_asked_for("--help", argc, argv) || is_asked_for("--version", at, argv)
        || is_asked_for("-v", at, argv)) {
        (void)puts("silt-docker " SILT_VERSION
                   " stands in for docker where wrangler calls it\n" USAGE);
        return 0;
    }
    d->client.timeout_ms = 120000;
    if (silt_docker_find_socket(d->host, d->client.address, e) < 0)
        return -1;
    argc -= at;
    argv += at;
    if (argc > 1
        && (strcmp(argv[0], "buildx") == 0 || strcmp(argv[0], "image") == 0
            || strcmp(argv[0], "builder") == 0)
        && strcmp(argv[1], "build") == 0) {
        argc--;
        argv++;
    }
    if (argc > 1 && strcmp(argv[0], "container") == 0
        && (strcmp(argv[1], "run") == 0 || strcmp(argv[1], "logs") == 0)) {
        argc--;
        argv++;
    }
    if (argc > 0 && strcmp(argv[0], "build") == 0)
        return silt_docker_build(&d->client, argc - 1, argv + 1, e);
    if (argc > 0 && strcmp(argv[0], "run") == 0)
        return silt_docker_run(&d->client, argc - 1, argv + 1, &d->code, e);
    if (argc > 0 && strcmp(argv[0], "logs") == 0)
        return silt_docker_logs(&d->client, argc - 1, argv + 1, e);
    const struct verb *v = find_verb(argc, argv, &used);
    if (v == NULL)
        return silt_fail(e, SILT_INVALID, "%s%s\n" USAGE,
                         argc > 0 ? "no command " : "stands in for docker where wrangler calls it",
                         argc > 0 ? argv[0] : "");
    spell_f(v->second != NULL ? v->second : v->name, argc - used, argv + used);
    if (parse(d, argc - used, argv + used, e) < 0)
        return -1;
    return v->run(d, e);
}

int silt_docker_main(int argc, char **argv)
{
    static struct docker d;
    struct silt_error e;
    silt_arena_init(&d.arena, SILT_CLI_ARENA_MAX);
    int done = run(&d, argc, argv, &e);
    if (done < 0)
        complain("silt-docker: ", &e);
    silt_arena_fini(&d.arena);
    silt_client_fini(&d.client);
    (void)fflush(stdout);
    return done < 0 && d.code == 0 ? EXIT_FAILURE : d.code;
}
