/* SPDX-License-Identifier: Apache-2.0 */
/* Small responses: ping, version, health. */
#include "api/core/api.h"
#include "base/clock.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"

#include <stdio.h>

enum { VERSION_MAX = 100 };

static const char database_full[] =
    "The machine's disk is full, and the database has no room for more: nothing can be created, "
    "everything else works. Free room on the disk.";

static void reply_text(struct silt_call *c)
{
    silt_http_reply(c->request, 200, SILT_LIT("text/plain; charset=utf-8"), (silt_slice){NULL, 0},
                    SILT_LIT("Hello from Silt: this sandbox is ready.\n"));
}

static void reply_ping(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, SILT_LIT("healthy"));
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, SILT_LIT("healthy"));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

/* Clients compare it with their own version and warn if they differ; an image may declare the
 * version it suits. */
static silt_slice find_version(const struct silt_sandbox *s)
{
    silt_slice given = silt_env_given(s, SILT_LIT("SANDBOX_VERSION"));
    return given.len > 0 && given.len <= VERSION_MAX ? given : SILT_LIT(SILT_VERSION);
}

static void reply_version(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("version"));
    silt_json_string(&b, find_version(c->sandbox));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static void reply_commands(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("availableCommands"));
    silt_json_raw(&b, SILT_LIT("[]"));
    silt_json_key(&b, SILT_LIT("count"));
    silt_json_i64(&b, 0);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind root_call = {.run = reply_text};
static const struct silt_call_kind ping_call = {.run = reply_ping};
static const struct silt_call_kind version_call = {.run = reply_version};
static const struct silt_call_kind commands_call = {.run = reply_commands};

SILT_HANDLER(silt_api_root)
{
    silt_call_begin(r, args, &root_call);
}

SILT_HANDLER(silt_api_ping)
{
    silt_call_begin(r, args, &ping_call);
}

SILT_HANDLER(silt_api_version)
{
    silt_call_begin(r, args, &version_call);
}

SILT_HANDLER(silt_api_commands)
{
    silt_call_begin(r, args, &commands_call);
}

/* For people who open the address, and programs that look what answers there. */
SILT_HANDLER(silt_api_index)
{
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 2048);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "name", "Silt");
    silt_json_add_text(&b, "version", SILT_VERSION);
    silt_json_add_text(&b, "api", "/v1");
    silt_json_add_text(&b, "docs", "/docs/api");
    silt_json_add_text(&b, "openapi", "/v1/openapi.json");
    silt_json_add_text(&b, "console", "/sandboxes/{id}/terminal");
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

SILT_HANDLER(silt_api_v1_version)
{
    silt_auto_buf b;
    (void)args;
    silt_buf_init(&b, 1024);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "version", SILT_VERSION);
    silt_json_add_text(&b, "api", "v1");
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* 503 if nothing can be written, so that a load balancer goes elsewhere. A full pool is no reason:
 * the sandboxes here can be used and deleted only here. */
SILT_HANDLER(silt_api_healthz)
{
    struct silt_pool_status pool;
    char said[SILT_DISK_POOL_TEXT], message[2 * SILT_DISK_POOL_TEXT];
    silt_auto_buf b;
    (void)args;
    bool full = silt_store_is_full(silt_api_of(r)->registry->store);
    silt_disk_pool_look(&silt_api_of(r)->registry->pool, &pool);
    silt_disk_pool_explain(&pool, said);
    (void)snprintf(message, sizeof(message), "%s%s%s", full ? database_full : "",
                   full && said[0] != 0 ? " " : "", said);
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "status",
                       message[0] == 0                 ? "ok"
                       : silt_disk_pool_is_down(&pool) ? "failed"
                                                       : "degraded");
    if (said[0] != 0)
        silt_json_add_text(&b, "disk", silt_disk_pool_name(&pool));
    if (full)
        silt_json_add_text(&b, "database", "full");
    if (message[0] != 0)
        silt_json_add_text(&b, "message", message);
    silt_json_close(&b, '}');
    silt_api_answer(r, silt_disk_pool_is_down(&pool) ? 503 : 200, &b);
}
