/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the Docker-compatible socket (docs/engine.md): its routes, the sidecars' listening sockets, and the wire API that containers
 * have on their port 3000. Whoever may open the socket may do everything; no token is asked for. */
#pragma once

#include "api/api.h"
#include "sandbox/container.h"
#include "base/diag.h"

#define SILT_ENGINE_API "1.47" /* the newest version whose paths we take */
#define SILT_ENGINE_API_MIN "1.24"

struct silt_engine {
    struct silt_api *api;            /* borrowed */
    struct silt_containers *all;     /* borrowed: the registry's */
    struct silt_http_server *server; /* the socket */
    struct silt_http_server *wire;   /* port 3000 of containers */
    struct silt_http_server *sidecar; /* what is said to sidecars beside CONNECT */
    struct silt_link entries;        /* struct entry: connections to sidecars that have not said what they want */
    size_t entry_count;
    size_t strangers;       /* of them: who is turned away as soon as it has said something */
    struct silt_link doors; /* struct door: listening sockets of sidecars */
    struct silt_link waits; /* struct standing: of clients of an earlier siltd */
    struct silt_link execs; /* struct silt_engine_exec, oldest first */
    size_t exec_count;
};

enum {
    SILT_ENGINE_STREAM = 1, /* the handler takes the body itself */
};
extern const struct silt_route silt_engine_routes[];
extern const size_t silt_engine_route_count;

/* A request: lives in its arena. In a handler its body is there, unless the route has SILT_ENGINE_STREAM. */
struct silt_engine_call {
    struct silt_engine *engine;
    const struct silt_route *route; /* NULL: none has this path, or `known`: with another method */
    bool known;
    silt_slice args[SILT_ROUTE_ARGS_MAX];
};
static inline struct silt_engine *silt_engine_of(const struct silt_http_request *r)
{
    return ((struct silt_engine_call *)r->owner)->engine;
}

void silt_engine_init(struct silt_engine *g, struct silt_api *api, struct silt_containers *all);
/* Takes listen_fd. */
int silt_engine_open(struct silt_engine *g, int listen_fd, const struct silt_http_limits *limits, struct silt_error *e);
void silt_engine_drain(struct silt_engine *g, int64_t deadline_ms);
void silt_engine_free(struct silt_engine *g);

/* {"message":…} */
void silt_engine_refuse(struct silt_http_request *r, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void silt_engine_refuse_page(struct silt_http_request *r); /* 404: nothing of ours has this path */
void silt_engine_refuse_error(struct silt_http_request *r, const struct silt_error *e);
void silt_engine_answer(struct silt_http_request *r, int status, const struct silt_buf *b);
void silt_engine_empty(struct silt_http_request *r, int status);
/* The decoded value of a query parameter; {NULL,0}: it is absent. */
silt_slice silt_engine_query(struct silt_http_request *r, const char *name);
bool silt_engine_query_bool(struct silt_http_request *r, const char *name);
/* The one named by the path; NULL: it was refused. */
struct silt_container *silt_engine_container(struct silt_http_request *r, silt_slice raw);
/* The filters of a list, both spellings: whether `key` is not filtered for, or `value` is one of what it may be. `part`: it may be a part. */
bool silt_engine_passes(const struct silt_json *filters, const char *key, silt_slice value, bool part);
bool silt_engine_take_filters(struct silt_http_request *r, const struct silt_json **ret); /* false: they were refused */

/* engine_image.c: a list; `all`: also those without a name */
void silt_engine_add_images(struct silt_buf *b, const struct silt_registry *registry, bool all);
/* engine_container.c: a list of all, with the files that were kept */
void silt_engine_add_containers(struct silt_buf *b, struct silt_engine *g, struct silt_arena *a);
/* engine_ingress.c */
void silt_ingress_open(struct silt_engine *g); /* doors are watched from now on */
void silt_ingress_listen(void *context, struct silt_container *c, int fd);
void silt_ingress_unlisten(void *context, struct silt_container *c);
void silt_ingress_cut(void *context, struct silt_container *c);
void silt_ingress_free(struct silt_engine *g);
/* engine_sidecar.c: hooks of the server */
void silt_sidecar_on_request(void *context, struct silt_http_request *r);
/* engine_wait.c */
void silt_engine_waits(void *context, struct silt_container *c, int fd);
void silt_engine_waits_free(struct silt_engine *g);
/* engine_exec.c */
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
