/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/files.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

static int write_path(const struct silt_copy_target *p, char ret[PATH_MAX], struct silt_error *e)
{
    (void)snprintf(ret, PATH_MAX, "%s", p->path[0] == '/' ? "" : "/workspace");
    return silt_copy_target_add(ret, silt_slice_of(p->path), e);
}

/* /v1/sandboxes/ID/files?path=PATH<more> */
static int write_route(char out[SILT_FILES_PATH_SIZE], const struct silt_copy_target *p,
                       const char *more, struct silt_error *e)
{
    char path[PATH_MAX], before[SILT_ID_MAX + 64];
    if (write_path(p, path, e) < 0)
        return -1;
    (void)snprintf(before, sizeof(before), "/v1/sandboxes/%s/files?path=", p->id);
    return silt_cli_path(out, SILT_FILES_PATH_SIZE, before, path, more, e);
}

static unsigned take_mode(const struct silt_json *answer)
{
    struct silt_error e;
    char text[8] = "644";
    (void)silt_slice_to_cstr(silt_cli_text(answer, "mode"), text, sizeof(text), &e);
    return (unsigned)strtoul(text, NULL, 8) & 0777;
}

static bool is_nothing_there(const struct silt_client *c)
{
    return strcmp(c->code, "FILE_NOT_FOUND") == 0 || strcmp(c->code, "NOT_DIRECTORY") == 0;
}

int silt_files_look(struct silt_client *c, const struct silt_copy_target *p,
                    struct silt_files_look *ret, struct silt_error *e)
{
    silt_auto_arena a;
    silt_auto_buf body;
    const struct silt_json *answer;
    char path[PATH_MAX], route[SILT_ID_MAX + 64];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, SILT_FILES_PATH_SIZE * 2);
    if (write_path(p, path, e) < 0)
        return -1;
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "path", path);
    silt_json_close(&body, '}');
    (void)snprintf(route, sizeof(route), "/v1/sandboxes/%s/files/stat", p->id);
    struct silt_client_request q = silt_client_post(route, silt_buf_slice(&body));
    *ret = (struct silt_files_look){.kind = SILT_FILES_NOTHING, .mode = 0666};
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return is_nothing_there(c) ? 0 : silt_because(e, "look at %s", p->word);
    int64_t size = silt_cli_number(answer, "size");
    bool directory = silt_slice_eq(silt_cli_text(answer, "type"), SILT_LIT("directory"));
    *ret = (struct silt_files_look){.kind = directory ? SILT_FILES_DIRECTORY : SILT_FILES_FILE,
                                    .size = size > 0 ? (uint64_t)size : 0,
                                    .mode = take_mode(answer)};
    return 0;
}

int silt_files_get(struct silt_client *c, const struct silt_copy_target *p, bool directory,
                   struct silt_error *e)
{
    char route[SILT_FILES_PATH_SIZE];
    if (write_route(route, p, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET",
                                    .path = route,
                                    .accept = directory ? "application/x-tar" : NULL,
                                    .file = -1};
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    return c->head.status == 200 ? 0 : silt_client_fail(c, e);
}

int silt_files_put(struct silt_client *c, const struct silt_copy_target *p, bool directory,
                   unsigned mode, struct silt_client_request *q, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char route[SILT_FILES_PATH_SIZE], more[32] = "";
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (mode != SILT_FILES_KEEP_MODE)
        (void)snprintf(more, sizeof(more), "&mode=%o", mode & 0777);
    if (write_route(route, p, more, e) < 0)
        return -1;
    q->method = "PUT";
    q->path = route;
    q->content_type = directory ? "application/x-tar" : "application/octet-stream";
    return silt_client_call(c, q, &a, &answer, e);
}
