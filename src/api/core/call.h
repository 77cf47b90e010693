/* SPDX-License-Identifier: Apache-2.0 */
/* call: the walk of one request on a sandbox, from its head to the handler that answers it. A route
 * describes its part as a struct silt_call_kind; the order of the steps is in call.c and nowhere
 * else. Runs in siltd; a call lives in the request's arena until the request is answered or its
 * client leaves, which may happen at every step. */
#pragma once

#include "http/router.h"
#include "sandbox/core/registry.h"

struct silt_call;
struct silt_json;
struct silt_process;
struct silt_session;

enum silt_call_step {
    SILT_CALL_READING,  /* waits for the JSON body */
    SILT_CALL_PARSING,  /* the route's parse: body and query become its own struct */
    SILT_CALL_FINDING,  /* looks the sandbox up; below /v1 an unknown id is refused with 404, unless
                           the query says create=true */
    SILT_CALL_WAKING,   /* waits until it runs; creates or starts it if needed */
    SILT_CALL_CHOOSING, /* the route's choose: the session or process in the sandbox */
    SILT_CALL_RUNNING,  /* the route's run: does the work and answers */
};

enum silt_call_body { SILT_BODY_NONE, SILT_BODY_OPTIONAL, SILT_BODY_REQUIRED };
enum silt_call_sandbox {
    SILT_CALL_WAKES, /* creates the sandbox or starts it */
    SILT_CALL_LOOKS, /* neither: c->sandbox is NULL if there is none, and may be stopped */
    SILT_CALL_NO_SANDBOX,
};

/* A route's part of the walk; the functions may be NULL, except for run. Those that return bool
 * return false if they have answered the request, or if they wait and call silt_call_go later. */
struct silt_call_kind {
    enum silt_call_body body;
    enum silt_call_sandbox sandbox;
    bool native; /* below /v1 */
    int variant; /* the route's own, where several share their functions */
    bool (*parse)(struct silt_call *c);
    bool (*choose)(struct silt_call *c);
    void (*run)(struct silt_call *c); /* owns the request from here on */
};

struct silt_call {
    const struct silt_call_kind *kind; /* parse may replace it */
    enum silt_call_step step;
    bool creates; /* the sandbox does not exist, and the query wants it */
    struct silt_http_request *request;
    struct silt_api *api;
    silt_slice id, arg, arg2;     /* parts of the path */
    const struct silt_json *body; /* an object, or NULL */
    struct silt_waiter waiter;
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_session *session; /* borrowed; set by choose */
    struct silt_process *process; /* borrowed; set by choose */
    void *own;                    /* the route's */
};

/* In a handler: the whole walk. */
void silt_call_begin(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                     const struct silt_call_kind *kind);
/* The same in two parts. NULL: the id was refused. */
struct silt_call *silt_call_new(struct silt_http_request *r,
                                const silt_slice args[SILT_ROUTE_ARGS_MAX],
                                const struct silt_call_kind *kind);
/* Repeats the step that returned false, then goes on. */
void silt_call_go(struct silt_call *c);
