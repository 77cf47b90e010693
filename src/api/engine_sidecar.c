/* SPDX-License-Identifier: Apache-2.0 */
/* What workerd says to a sidecar beside CONNECT: where traffic that comes out goes, and which certificate to trust. */
#include "api/engine.h"
#include "json/json.h"

enum { BODY_MAX = 256 << 10 };

static int read_egress(struct silt_http_request *r, uint16_t *ret_port, struct silt_error *e)
{
    const struct silt_json *o, *port;
    if (silt_json_read(r->arena, r->body, &o, e) < 0)
        return -1;
    port = silt_json_get(o, SILT_LIT("port"));
    const struct silt_json *internet = silt_json_get(o, SILT_LIT("internet")), *dns = silt_json_get(o, SILT_LIT("dns"));
    if (o->type != SILT_JSON_OBJECT || (port == NULL && internet == NULL && dns == NULL))
        return silt_fail(e, SILT_INVALID, "it must be an object with port, internet or dns");
    if (port != NULL && (port->type != SILT_JSON_INT || port->integer < 1 || port->integer > UINT16_MAX))
        return silt_fail(e, SILT_INVALID, "port must be a number between 1 and 65535");
    *ret_port = port != NULL ? (uint16_t)port->integer : 0;
    return 0;
}

static void on_egress(struct silt_http_request *r)
{
    struct silt_container *c = r->tag;
    struct silt_error e;
    uint16_t port;
    if (read_egress(r, &port, &e) < 0) {
        silt_engine_refuse_error(r, &e);
        return;
    }
    if (port != 0)
        c->egress = port;
    silt_engine_empty(r, 204);
}

void silt_sidecar_on_request(void *context, struct silt_http_request *r)
{
    const struct silt_http_head *h = r->head;
    (void)context;
    if (silt_slice_eq(h->path, SILT_LIT("/egress")) && silt_slice_eq(h->method, SILT_LIT("PUT")))
        silt_http_collect(r, BODY_MAX, on_egress);
    else if (silt_slice_eq(h->path, SILT_LIT("/ca")) && silt_slice_eq(h->method, SILT_LIT("GET")))
        silt_engine_refuse(r, 503, "there is no certificate authority");
    else
        silt_engine_refuse(r, 404, "page not found");
}
