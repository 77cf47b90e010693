/* SPDX-License-Identifier: Apache-2.0 */
/* api: siltd's HTTP API: authentication, routing to handlers, and the helpers all handlers share.
 * One struct silt_api per daemon; main owns it. A failed request is answered with the error
 * envelope of core/reply.h. */
#pragma once

#include "api/core/call.h"
#include "api/core/idempotency.h"
#include "api/core/reply.h"
#include "sandbox/core/exec.h"
#include "sandbox/core/registry.h"

enum {
    SILT_TOKEN_MAX = 256,
    SILT_BODY_MAX = 128 << 20,
    SILT_ENV_MAX = 2 << 20, /* of one command or session: the kernel takes no more at exec */
    SILT_SANDBOX_ENV_MAX = 128 << 10, /* of a sandbox, which keeps it */
    SILT_ENV_COUNT_MAX = 8192,
};

struct silt_api {
    struct silt_registry *registry;  /* borrowed */
    struct silt_loop *loop;          /* borrowed */
    struct silt_http_server *server; /* borrowed; NULL until it serves */
    silt_slice token;                /* borrowed */
    uint64_t answered[6];            /* by hundreds of the status */
    uint64_t answer_us;
    int64_t started_ms;
    uint64_t watchdog_aborts; /* so many siltds were ended because they stood still */
    bool git_local_remotes;   /* the setting */
    bool sandbox_metrics;     /* the setting metrics.sandboxes */
    const char *cors_origins; /* the setting; borrowed */
    struct silt_idempotency idempotency;
    struct silt_timer log_flush; /* lines of the access log leave together */
    struct silt_link watchings;  /* streams of file events */
    struct silt_link followers;  /* streams of the journal */
    struct silt_link guests;     /* struct silt_ws_client: clients with a WebSocket */
};

/* Once, after loop is set. */
void silt_api_init(struct silt_api *api);
/* The daemon is to end: streams that would never end by themselves say so and end. */
void silt_api_stop_watches(struct silt_api *api);
void silt_api_stop_followers(struct silt_api *api);
void silt_api_part_with_guests(struct silt_api *api);

enum {
    SILT_ROUTE_OPEN = 1,   /* needs no token */
    SILT_ROUTE_LOGIN = 2,  /* the cookie of a login will do, from a page of ours */
    SILT_ROUTE_SIGNED = 8, /* a signature of its URL will do (signature.h) */
    SILT_ROUTE_KEYED = 4,  /* takes an Idempotency-Key (idempotency.h) */
};
extern const struct silt_route silt_routes[];
extern const size_t silt_route_count;

/* Hooks of the server; `context` is the api. */
void silt_api_on_request(void *context, struct silt_http_request *r);
/* A request of somebody who may come in: the same handlers. */
void silt_api_route(struct silt_api *api, struct silt_http_request *r);
void silt_api_on_refusal(void *context, int status, struct silt_buf *ret_body);
void silt_api_on_answered(void *context, const struct silt_http_request *r, int status, int64_t us);

/* In a handler, before it sets r->owner to something else. */
static inline struct silt_api *silt_api_of(const struct silt_http_request *r)
{
    return r->owner;
}

/* Whoever streams has said all with the head: what comes behind it is for nobody, and the next
 * request waits. */
static inline bool silt_api_is_head(const struct silt_http_request *r)
{
    return silt_slice_eq(r->head->method, SILT_LIT("HEAD"));
}

/* Fields of a body. Absent (or null) is fine: the result keeps its value. On a wrong type the
 * request is refused with 400 and false comes back. */
bool silt_body_string(struct silt_call *c, const char *name, silt_slice *ret);
bool silt_body_bool(struct silt_call *c, const char *name, bool *ret);
bool silt_body_ms(struct silt_call *c, const char *name, uint32_t *ret);
/* An object of strings as NAME=value\0…, of at most `max` bytes; null values are left out. */
bool silt_body_env(struct silt_call *c, const char *name, size_t max, silt_slice *ret);
bool silt_is_blank(silt_slice s);         /* nothing but white space */
silt_slice silt_trim_blank(silt_slice s); /* without white space at its ends */
/* %XX and +; the result is in the arena; false: a bad escape. */
bool silt_query_decode(struct silt_http_request *r, silt_slice raw, silt_slice *ret);
silt_slice silt_query(const struct silt_http_request *r,
                      silt_slice name); /* raw; {NULL,0} if absent */
/* Reads true, 1, false or 0; *ret is unchanged if absent. False: already answered with an error. */
bool silt_query_flag(struct silt_http_request *r, const char *name, bool *ret);

/* "digest":"sha256:…" */
void silt_api_digest(struct silt_buf *b, silt_slice key, const uint8_t digest[SILT_DIGEST_SIZE]);

/* Handlers, one file per noun. */
#define SILT_HANDLER(name)                                                                         \
    void name(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX])
struct silt_build_options;
bool silt_api_build_options(struct silt_http_request *r,
                            struct silt_build_options *ret); /* of the query; false: refused */

SILT_HANDLER(silt_api_root);
SILT_HANDLER(silt_api_index);
SILT_HANDLER(silt_api_docs);
SILT_HANDLER(silt_api_ping);
SILT_HANDLER(silt_api_version);
SILT_HANDLER(silt_api_commands);
SILT_HANDLER(silt_api_healthz);
SILT_HANDLER(silt_api_metrics);
SILT_HANDLER(silt_api_openapi);
SILT_HANDLER(silt_api_openapi_compat);
SILT_HANDLER(silt_api_session_create);
SILT_HANDLER(silt_api_session_list);
SILT_HANDLER(silt_api_session_delete);
SILT_HANDLER(silt_api_v1_session_create);
SILT_HANDLER(silt_api_v1_session_list);
SILT_HANDLER(silt_api_v1_session_get);
SILT_HANDLER(silt_api_v1_session_change);
SILT_HANDLER(silt_api_v1_session_delete);
SILT_HANDLER(silt_api_execute);
SILT_HANDLER(silt_api_execute_stream);
SILT_HANDLER(silt_api_v1_exec);
SILT_HANDLER(silt_api_file_exists);
SILT_HANDLER(silt_api_file_delete);
SILT_HANDLER(silt_api_file_rename);
SILT_HANDLER(silt_api_file_move);
SILT_HANDLER(silt_api_file_mkdir);
SILT_HANDLER(silt_api_file_read);
SILT_HANDLER(silt_api_file_read_stream);
SILT_HANDLER(silt_api_file_write);
SILT_HANDLER(silt_api_file_list);
SILT_HANDLER(silt_api_process_start);
SILT_HANDLER(silt_api_process_list);
SILT_HANDLER(silt_api_process_get);
SILT_HANDLER(silt_api_process_kill);
SILT_HANDLER(silt_api_process_kill_all);
SILT_HANDLER(silt_api_process_logs);
SILT_HANDLER(silt_api_process_stream);
SILT_HANDLER(silt_api_native_get);
SILT_HANDLER(silt_api_native_put);
SILT_HANDLER(silt_api_native_delete);
SILT_HANDLER(silt_api_native_stat);
SILT_HANDLER(silt_api_native_list);
SILT_HANDLER(silt_api_native_mkdir);
SILT_HANDLER(silt_api_native_move);
SILT_HANDLER(silt_api_native_chmod);
SILT_HANDLER(silt_api_native_chown);
SILT_HANDLER(silt_api_native_symlink);
SILT_HANDLER(silt_api_native_readlink);
SILT_HANDLER(silt_api_native_truncate);
SILT_HANDLER(silt_api_native_search);
SILT_HANDLER(silt_api_file_sign);
SILT_HANDLER(silt_api_v1_process_list);
SILT_HANDLER(silt_api_v1_process_start);
SILT_HANDLER(silt_api_v1_process_get);
SILT_HANDLER(silt_api_v1_process_kill);
SILT_HANDLER(silt_api_v1_process_kill_all);
SILT_HANDLER(silt_api_v1_process_signal);
SILT_HANDLER(silt_api_v1_process_logs);
SILT_HANDLER(silt_api_v1_process_stream);
SILT_HANDLER(silt_api_v1_process_stdin);
SILT_HANDLER(silt_api_v1_process_wait);
SILT_HANDLER(silt_api_sandbox_list);
SILT_HANDLER(silt_api_sandbox_create);
SILT_HANDLER(silt_api_sandbox_get);
SILT_HANDLER(silt_api_sandbox_destroy);
SILT_HANDLER(silt_api_sandbox_update);
SILT_HANDLER(silt_api_sandbox_put);
SILT_HANDLER(silt_api_sandbox_stop);
SILT_HANDLER(silt_api_sandbox_start);
SILT_HANDLER(silt_api_sandbox_restart);
SILT_HANDLER(silt_api_sandbox_pause);
SILT_HANDLER(silt_api_events);
SILT_HANDLER(silt_api_sandbox_fork);
SILT_HANDLER(silt_api_sandbox_rollback);
SILT_HANDLER(silt_api_sandbox_history);
SILT_HANDLER(silt_api_sandbox_undo);
SILT_HANDLER(silt_api_snapshot_take);
SILT_HANDLER(silt_api_snapshot_list);
SILT_HANDLER(silt_api_snapshot_list_of);
SILT_HANDLER(silt_api_snapshot_get);
SILT_HANDLER(silt_api_snapshot_delete);
SILT_HANDLER(silt_api_network_get);
SILT_HANDLER(silt_api_network_put);
SILT_HANDLER(silt_api_git_checkout);
SILT_HANDLER(silt_api_backup_create);
SILT_HANDLER(silt_api_backup_restore);
SILT_HANDLER(silt_api_backup_upload);
SILT_HANDLER(silt_api_git_clone);
SILT_HANDLER(silt_api_port_watch);
SILT_HANDLER(silt_api_port_wait);
SILT_HANDLER(silt_api_ws);
SILT_HANDLER(silt_api_rpc);
SILT_HANDLER(silt_api_port_expose);
SILT_HANDLER(silt_api_port_list);
SILT_HANDLER(silt_api_port_unexpose);
SILT_HANDLER(silt_api_port_sign);
SILT_HANDLER(silt_api_pty);
SILT_HANDLER(silt_api_terminal_page);
SILT_HANDLER(silt_api_terminal_login);
SILT_HANDLER(silt_api_asset);
SILT_HANDLER(silt_api_port_direct);
SILT_HANDLER(silt_api_watch);
SILT_HANDLER(silt_api_watch_check);
SILT_HANDLER(silt_api_watch_native);
SILT_HANDLER(silt_api_interpreter_health);
SILT_HANDLER(silt_api_context_create);
SILT_HANDLER(silt_api_context_list);
SILT_HANDLER(silt_api_context_delete);
SILT_HANDLER(silt_api_code);
SILT_HANDLER(silt_api_v1_context_create);
SILT_HANDLER(silt_api_v1_context_list);
SILT_HANDLER(silt_api_v1_context_get);
SILT_HANDLER(silt_api_v1_context_delete);
SILT_HANDLER(silt_api_v1_context_interrupt);
SILT_HANDLER(silt_api_v1_context_restart);
SILT_HANDLER(silt_api_v1_context_input);
SILT_HANDLER(silt_api_v1_code);
SILT_HANDLER(silt_api_v1_run_stream);
SILT_HANDLER(silt_api_port_get);
SILT_HANDLER(silt_api_preview);
SILT_HANDLER(silt_api_v1_watch_check);
SILT_HANDLER(silt_api_v1_run);
SILT_HANDLER(silt_api_languages);
SILT_HANDLER(silt_api_v1_version);
SILT_HANDLER(silt_api_v1_terminal);
SILT_HANDLER(silt_api_v1_terminal_end);
SILT_HANDLER(silt_api_image_list);
SILT_HANDLER(silt_api_image_build);
SILT_HANDLER(silt_api_image_pull);
SILT_HANDLER(silt_api_image_prune);
SILT_HANDLER(silt_api_image_seal);
SILT_HANDLER(silt_api_image_get);
SILT_HANDLER(silt_api_image_tag);
SILT_HANDLER(silt_api_image_export);
SILT_HANDLER(silt_api_image_import);
SILT_HANDLER(silt_api_image_put);
SILT_HANDLER(silt_api_image_remove);

/* Without a route, for calls that come in another form (rpc_method.c). Of the files: the arguments
 * are the sandbox, the path and the session, in the arena of the request. */
SILT_HANDLER(silt_api_file_raw);  /* the bytes as they are */
SILT_HANDLER(silt_api_file_feed); /* the body becomes the file, all or nothing */
SILT_HANDLER(silt_api_watch_anywhere);
SILT_HANDLER(silt_api_watch_check_anywhere);
