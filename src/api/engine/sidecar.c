/* SPDX-License-Identifier: Apache-2.0 */
/* workerd's requests to a sidecar other than CONNECT: where outgoing traffic goes, and which
 * certificate to trust. */
#include "api/engine/engine.h"
#include "sandbox/network/intercept.h"

#include <assert.h>

struct asking {
    struct silt_intercept_ask ask;
    struct silt_http_request *request;
};

static void on_gone(struct silt_http_request *r)
{
    struct asking *q = r->owner;
    silt_intercept_leave(&q->ask);
}

static void on_done(struct silt_intercept_ask *a, silt_slice pem, const struct silt_error *e)
{
    struct silt_http_request *r = silt_outer(a, struct asking, ask)->request;
    if (e != NULL)
        silt_engine_refuse(r, 503, "%s", e->text);
    else if (pem.len > 0)
        silt_http_reply(r, 200, SILT_LIT("application/x-pem-file"), (silt_slice){NULL, 0}, pem);
    else
        silt_engine_empty(r, 204);
}

static struct asking *new_asking(struct silt_http_request *r)
{
    struct asking *q = silt_arena_alloc(r->arena, sizeof(*q));
    assert(q != NULL);
    *q = (struct asking){.ask = {.on_done = on_done}, .request = r};
    r->owner = q;
    r->on_gone = on_gone;
    return q;
}

static void on_egress(struct silt_http_request *r)
{
    const struct silt_container *c = r->tag;
    struct silt_intercept_change change;
    struct silt_error e;
    if (silt_intercept_read(r->arena, r->body, &change, &e) < 0)
        silt_engine_refuse_error(r, &e);
    else
        silt_intercept_set(c->all->registry, c->row.number, &change, &new_asking(r)->ask);
}

void silt_sidecar_on_request(void *context, struct silt_http_request *r)
{
    const struct silt_http_head *h = r->head;
    const struct silt_container *c = r->tag;
    (void)context;
    if (silt_http_field(h, SILT_LIT("origin")).data != NULL)
        silt_engine_refuse(
            r, 403,
            "pages of a browser are not served"); /* the browser's user may be ours, and a page's
                                                     own host name may resolve to this address */
    else if (silt_slice_eq(h->path, SILT_LIT("/egress"))
             && silt_slice_eq(h->method, SILT_LIT("PUT")))
        silt_http_collect(r, SILT_INTERCEPT_BODY_MAX, on_egress);
    else if (silt_slice_eq(h->path, SILT_LIT("/ca")) && silt_slice_eq(h->method, SILT_LIT("GET")))
        silt_intercept_ca(c->all->registry, c->row.number, &new_asking(r)->ask);
    else
        silt_engine_refuse(r, 404, "page not found");
}
