/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/box.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"

bool silt_box_is_missing(const struct silt_client *c)
{
    return strcmp(c->code, "SANDBOX_NOT_FOUND") == 0;
}

enum {
    FULL_PERCENT = 90,
    PATH_SIZE = 512,
    ORPHAN_S = 60, /* an own sandbox that is paused and that nobody destroyed stops after this */
};

static int create(struct silt_client *c, const char *id, bool own, struct silt_error *e)
{
    silt_auto_arena a;
    silt_auto_buf body;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, 1024);
    silt_json_open(&body, '{');
    silt_command_add_text(&body, "id", id);
    if (own) {
        silt_json_add_u64(&body, "stopAfter", ORPHAN_S);
        silt_json_key(&body, SILT_LIT("removeAfterStop"));
        silt_json_bool(&body, true);
    }
    silt_json_close(&body, '}');
    struct silt_client_request q = silt_client_post("/v1/sandboxes", silt_buf_slice(&body));
    c->code[0] = 0;
    return silt_client_call(c, &q, &a, &answer, e);
}

static bool exists_already(const struct silt_client *c)
{
    return strcmp(c->code, "SANDBOX_ALREADY_EXISTS") == 0;
}

int silt_box_make(struct silt_client *c, const char *id, struct silt_error *e)
{
    if (create(c, id, false, e) < 0)
        return exists_already(c) ? 0 : -1;
    (void)fprintf(stderr, "silt: created sandbox %s\n", id);
    return 0;
}

int silt_box_make_own(struct silt_client *c, const char *id, struct silt_error *e)
{
    if (create(c, id, true, e) == 0)
        return 0;
    return exists_already(c) ? silt_fail(e, SILT_CONFLICT,
                                         "sandbox %s exists, and --rm destroys only a new one: "
                                         "use another id",
                                         id)
                             : -1;
}

int silt_box_remove(struct silt_client *c, const char *id, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE];
    struct silt_client_request q = {.method = "DELETE", .path = path, .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    return silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "", e) < 0
                   || silt_client_call(c, &q, &a, &answer, e) < 0
               ? silt_because(e, "destroy sandbox %s", id)
               : 0;
}

void silt_box_explain(struct silt_client *c, const char *id)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    struct silt_error e;
    char path[PATH_SIZE];
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "", &e) < 0
        || silt_client_call(c, &q, &a, &answer, &e) < 0)
        return;
    int64_t used = silt_cli_number(silt_json_get(answer, SILT_LIT("usage")), "pids");
    int64_t limit = silt_cli_number(silt_json_get(answer, SILT_LIT("limits")), "pids");
    if (limit > 0 && used * 100 >= limit * FULL_PERCENT)
        (void)fprintf(stderr,
                      "silt: sandbox %s has %lld of %lld processes: silt kill %s --all ends them\n",
                      id, (long long)used, (long long)limit, id);
}
