/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the Docker-compatible socket (docs/engine.md): its routes, the sidecars' listening
 * sockets, and the wire API that containers see on their port 3000. Runs in siltd; main owns it.
 * Needs no token: permission to open the socket is permission for everything. */
#pragma once

#include "api/core/api.h"
#include "sandbox/container/container.h"
#include "base/sock_diag.h"

#define SILT_ENGINE_API "1.47" /* the newest Docker API version accepted in paths */
#define SILT_ENGINE_API_MIN "1.24"

struct silt_engine {
    struct silt_api *api;             /* borrowed */
    struct silt_containers *all;      /* borrowed: the registry's */
    struct silt_http_server *server;  /* on the Docker-compatible socket */
    struct silt_http_server *wire;    /* on port 3000 of containers */
    struct silt_http_server *sidecar; /* requests to sidecars other than CONNECT */
    struct silt_link
        entries; /* struct entry: connections to sidecars whose first bytes have not arrived */
    size_t entry_count;
    size_t strangers;       /* how many of them will be rejected once their first bytes arrive */
    struct silt_link doors; /* struct door: listening sockets of sidecars */
    struct silt_link waits; /* struct standing: waits of clients of an earlier siltd */
    struct silt_link execs; /* struct silt_engine_exec, oldest first */
    size_t exec_count;
};

enum {
    SILT_ENGINE_STREAM = 1, /* the handler reads the body itself */
};
extern const struct silt_route silt_engine_routes[];
extern const size_t silt_engine_route_count;

/* One request; lives in its arena. The body has been read when the handler runs, unless the route
 * has SILT_ENGINE_STREAM. */
struct silt_engine_call {
    struct silt_engine *engine;
    const struct silt_route *route; /* NULL: no such path, or, if `known`, not with this method */
    bool known;
    silt_slice args[SILT_ROUTE_ARGS_MAX];
};
static inline struct silt_engine *silt_engine_of(const struct silt_http_request *r)
{
    return ((struct silt_engine_call *)r->owner)->engine;
}

void silt_engine_init(struct silt_engine *g, struct silt_api *api, struct silt_containers *all);
/* Takes listen_fd. */
int silt_engine_open(struct silt_engine *g, int listen_fd, const struct silt_http_limits *limits,
                     struct silt_error *e);
void silt_engine_drain(struct silt_engine *g, int64_t deadline_ms);
void silt_engine_free(struct silt_engine *g);

/* {"message":…} */
void silt_engine_refuse(struct silt_http_request *r, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void silt_engine_refuse_page(struct silt_http_request *r); /* 404: unknown path */
void silt_engine_refuse_error(struct silt_http_request *r, const struct silt_error *e);
void silt_engine_answer(struct silt_http_request *r, int status, const struct silt_buf *b);
void silt_engine_empty(struct silt_http_request *r, int status);
/* The decoded value of a query parameter; {NULL,0} if absent. */
silt_slice silt_engine_query(struct silt_http_request *r, const char *name);
bool silt_engine_query_bool(struct silt_http_request *r, const char *name);
/* The container named in the path; NULL: already answered with an error. */
struct silt_container *silt_engine_container(struct silt_http_request *r, silt_slice raw);
/* Applies the filters of a list request, in either spelling: true if there is no filter for `key`
 * or one of its values equals `value`. `part`: a substring of `value` is enough. */
bool silt_engine_passes(const struct silt_json *filters, const char *key, silt_slice value,
                        bool part);
bool silt_engine_take_filters(
    struct silt_http_request *r,
    const struct silt_json **ret); /* false: already answered with an error */

/* image.c: lists images; `all` includes unnamed ones */
void silt_engine_add_images(struct silt_buf *b, const struct silt_registry *registry, bool all);
/* container.c: lists all containers, and the files kept of removed ones */
void silt_engine_add_containers(struct silt_buf *b, struct silt_engine *g, struct silt_arena *a);
/* ingress.c */
void silt_ingress_open(struct silt_engine *g); /* starts watching the listening sockets */
void silt_ingress_listen(void *context, struct silt_container *c, int fd);
void silt_ingress_unlisten(void *context, struct silt_container *c);
void silt_ingress_cut(void *context, struct silt_container *c);
void silt_ingress_free(struct silt_engine *g);
/* sidecar.c: hooks of the HTTP server */
void silt_sidecar_on_request(void *context, struct silt_http_request *r);
/* wait.c */
void silt_engine_waits(void *context, struct silt_container *c, int fd);
void silt_engine_waits_free(struct silt_engine *g);
/* exec.c */
void silt_engine_execs_free(struct silt_engine *g);

SILT_HANDLER(silt_engine_ping);
SILT_HANDLER(silt_engine_version);
SILT_HANDLER(silt_engine_info);
SILT_HANDLER(silt_engine_network);
SILT_HANDLER(silt_engine_network_list);
SILT_HANDLER(silt_engine_container_create);
SILT_HANDLER(silt_engine_container_list);
SILT_HANDLER(silt_engine_container_inspect);
SILT_HANDLER(silt_engine_container_start);
SILT_HANDLER(silt_engine_container_wait);
SILT_HANDLER(silt_engine_container_kill);
SILT_HANDLER(silt_engine_container_stop);
SILT_HANDLER(silt_engine_container_remove);
SILT_HANDLER(silt_engine_container_logs);
SILT_HANDLER(silt_engine_container_attach);
SILT_HANDLER(silt_engine_container_stats);
SILT_HANDLER(silt_engine_container_prune);
SILT_HANDLER(silt_engine_image_prune);
SILT_HANDLER(silt_engine_build_prune);
SILT_HANDLER(silt_engine_network_prune);
SILT_HANDLER(silt_engine_volume_prune);
SILT_HANDLER(silt_engine_df);
SILT_HANDLER(silt_engine_docker_build);
SILT_HANDLER(silt_engine_archive_get);
SILT_HANDLER(silt_engine_archive_put);
SILT_HANDLER(silt_engine_volume_list);
SILT_HANDLER(silt_engine_volume_create);
SILT_HANDLER(silt_engine_volume_inspect);
SILT_HANDLER(silt_engine_volume_remove);
SILT_HANDLER(silt_engine_image_get);
SILT_HANDLER(silt_engine_image_load);
SILT_HANDLER(silt_engine_image_list);
SILT_HANDLER(silt_engine_image_tag);
SILT_HANDLER(silt_engine_image_create);
SILT_HANDLER(silt_engine_image_remove);
SILT_HANDLER(silt_engine_commit);
SILT_HANDLER(silt_engine_build);
SILT_HANDLER(silt_engine_exec_create);
SILT_HANDLER(silt_engine_exec_start);
SILT_HANDLER(silt_engine_exec_inspect);
SILT_HANDLER(silt_engine_exec_resize);
