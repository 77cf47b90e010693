/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: stop, start, restart, pause and resume of a sandbox. Each is idempotent and answers
 * with the sandbox in its new state. A client that leaves does not undo it. */
#include "api/sandbox/view.h"
#include "sandbox/core/sandbox.h"

#include <stdlib.h>

/*   STOPPING --stopped--> (answer), or with `again` STARTING
 *   STARTING --running--> (answer), or with `rest` PAUSING
 *   PAUSING  --paused, or does not freeze--> (answer) */
enum step { STOPPING, STARTING, PAUSING };

struct change {
    struct silt_waiter waiter;
    struct silt_api *api;
    struct silt_http_request *request; /* NULL: the client has left */
    enum step step;
    bool again; /* start it after the stop */
    bool rest;  /* pause it after the start, in which it was found */
};

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e);

static void take(struct change *x, enum step step, struct silt_sandbox *s)
{
    x->step = step;
    x->waiter.on_ready = on_ready;
    if (step == STOPPING)
        silt_sandbox_halt(s, &x->waiter);
    else if (step == STARTING)
        silt_sandbox_wait(s, &x->waiter);
    else
        silt_sandbox_pause(s, &x->waiter);
}

static void finish(struct change *x, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_http_request *r = x->request;
    struct silt_api *api = x->api;
    bool pausing = x->step == PAUSING;
    free(x);
    if (r == NULL)
        return;
    r->on_gone = NULL;
    if (e != NULL && pausing && e->code == SILT_TIMEOUT)
        silt_api_refuse(r, SILT_API_NOT_PAUSED, (silt_slice){NULL, 0}, "%s", e->text);
    else if (e != NULL)
        silt_api_refuse_error(r, e);
    else
        silt_api_show_sandbox(api, r, s, 200);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct change *x = silt_outer(w, struct change, waiter);
    if (s != NULL && x->step == STOPPING && x->again)
        take(x, STARTING, s);
    else if (s != NULL && x->step == STARTING && x->rest)
        take(x, PAUSING, s);
    else
        finish(x, s, e);
}

static void on_gone(struct silt_http_request *r)
{
    struct change *x = r->owner;
    x->request = NULL;
}

/* NULL: refused. */
static struct silt_sandbox *find(struct silt_http_request *r, silt_slice id)
{
    struct silt_error e;
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return NULL;
    }
    struct silt_sandbox *s = silt_registry_find(silt_api_of(r)->registry, id);
    if (s != NULL && s->state != SILT_SANDBOX_DESTROYING)
        return s;
    silt_api_refuse_missing(r, id);
    return NULL;
}

static struct change *begin(struct silt_http_request *r)
{
    struct change *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    x->api = silt_api_of(r);
    x->request = r;
    r->owner = x;
    r->on_gone = on_gone;
    return x;
}

SILT_HANDLER(silt_api_sandbox_stop)
{
    struct silt_sandbox *s = find(r, args[0]);
    if (s != NULL)
        take(begin(r), STOPPING, s);
}

SILT_HANDLER(silt_api_sandbox_start)
{
    struct silt_sandbox *s = find(r, args[0]);
    if (s != NULL)
        take(begin(r), STARTING, s);
}

SILT_HANDLER(silt_api_sandbox_restart)
{
    struct silt_sandbox *s = find(r, args[0]);
    if (s == NULL)
        return;
    struct change *x = begin(r);
    x->again = true;
    take(x, STOPPING, s);
}

SILT_HANDLER(silt_api_sandbox_pause)
{
    struct silt_sandbox *s = find(r, args[0]);
    if (s == NULL)
        return;
    if (s->state == SILT_SANDBOX_STOPPED || s->state == SILT_SANDBOX_STOPPING) {
        silt_api_refuse(r, SILT_API_SANDBOX_STOPPED, (silt_slice){NULL, 0},
                        "Sandbox '%s' is stopped and has no processes to pause", s->row.id);
        return;
    }
    struct change *x = begin(r);
    x->rest = true;
    take(x, s->state == SILT_SANDBOX_STARTING ? STARTING : PAUSING, s);
}
