/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sandboxes/{id}/proxy/{port}/… (and, until clients have moved, …/ports/{port}/…): any request
 * to any port of a sandbox, for clients with the API token. /v1/previews/{port}/{id}/{token}/…: a
 * preview for a program that stands between it and the visitor. siltd authenticates it and rewrites
 * its head; silt-proxy serves it and owns the connection from then on. */
#include "api/core/api.h"
#include "base/fd.h"
#include "sandbox/preview/preview_channel.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>
#include <sys/mman.h>

struct direct {
    struct silt_api *api;
    silt_slice id;
    uint16_t port;
    silt_slice token; /* of a preview; else empty */
    silt_slice head;  /* in the arena */
};

/* The exposed port with that token; NULL: none. */
static struct silt_exposed_port *find_preview(const struct silt_sandbox *s, uint16_t port,
                                              silt_slice token)
{
    struct silt_exposed_port *x = silt_exposed_port_find(s, port);
    return x != NULL && silt_slice_eq_secret(token, silt_slice_of(x->row.token)) ? x : NULL;
}

/* Those of the service: ours carry the token of a browser. */
static void write_protocols(silt_slice list, struct silt_buf *b)
{
    silt_slice one;
    bool any = false;
    while (list.len > 0 && silt_slice_split(&list, ',', &one)) {
        one = silt_slice_trim(one);
        if (silt_slice_eq(one, SILT_LIT("silt")) || silt_slice_starts(one, SILT_LIT("silt.")))
            continue;
        silt_buf_add(b, any ? SILT_LIT(", ") : SILT_LIT("Sec-WebSocket-Protocol: "));
        silt_buf_add(b, one);
        any = true;
    }
    if (any)
        silt_buf_add(b, SILT_LIT("\r\n"));
}

/* The service sees the path after the port, and never the token. */
static void write_head(const struct silt_http_request *r, silt_slice rest, struct silt_buf *b)
{
    const struct silt_http_head *h = r->head;
    silt_buf_add(b, h->method);
    silt_buf_add(b, SILT_LIT(" /"));
    silt_buf_add(b, rest);
    if (silt_slice_has_byte(h->target, '?')) {
        silt_buf_add_byte(b, '?');
        silt_buf_add(b, h->query);
    }
    silt_buf_add(b, h->minor == 0 ? SILT_LIT(" HTTP/1.0\r\n") : SILT_LIT(" HTTP/1.1\r\n"));
    for (size_t i = 0; i < h->count; i++) {
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("authorization")))
            continue;
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("sec-websocket-protocol"))) {
            write_protocols(h->fields[i].value, b);
            continue;
        }
        silt_buf_add(b, h->fields[i].name);
        silt_buf_add(b, SILT_LIT(": "));
        silt_buf_add(b, h->fields[i].value);
        silt_buf_add(b, SILT_LIT("\r\n"));
    }
    silt_buf_add(b, SILT_LIT("\r\n"));
}

static int remember(const struct direct *d, silt_slice read, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt-visitor", MFD_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "create memfd");
    if (silt_fd_write_all(fd, d->head, e) < 0
        || (read.len > 0 && silt_fd_write_all(fd, read, e) < 0))
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* If the exposed port or silt-proxy is gone by now, the connection is closed without a response. */
static void on_taken(struct silt_http_request *r, int fd, silt_slice read)
{
    const struct direct *d = r->owner;
    struct silt_sandbox *s = silt_registry_find(d->api->registry, d->id);
    bool is_there = s != NULL && s->state != SILT_SANDBOX_DESTROYING;
    struct silt_exposed_port *x = !is_there          ? NULL
                                  : d->token.len > 0 ? find_preview(s, d->port, d->token)
                                                     : silt_exposed_port_direct(s, d->port);
    unsigned cage = d->token.len > 0 ? 0U : SILT_PREVIEW_CAGED;
    struct silt_preview_visitor v = {.connection = fd,
                                     .said = -1,
                                     .bytes = (uint32_t)(d->head.len + read.len),
                                     .flags = cage | SILT_PREVIEW_LOCALHOST};
    struct silt_error e;
    if (x == NULL || remember(d, read, &v.said, &e) < 0)
        silt_close_fd(&v.connection);
    else
        (void)silt_preview_hand_over(x, v, &e);
}

static void hand_over(struct silt_http_request *r, struct direct from, silt_slice rest)
{
    struct direct *d = silt_arena_alloc(r->arena, sizeof(*d));
    silt_auto_buf head = {0};
    silt_buf_init(&head, SILT_HTTP_HEAD_MAX * 2);
    write_head(r, rest, &head);
    assert(d != NULL
           && !head.broken); /* as long as the original, except for one space after each colon */
    *d = from;
    d->head = (silt_slice){silt_arena_dup(r->arena, silt_buf_slice(&head)), head.len};
    assert(d->head.data != NULL);
    r->owner = d;
    silt_http_take_over(r, on_taken);
}

static const char *refusal(struct silt_api *api, silt_slice id, uint16_t port,
                           enum silt_api_code *ret)
{
    struct silt_sandbox *s = silt_registry_find(api->registry, id);
    *ret = SILT_API_SANDBOX_NOT_FOUND;
    if (s == NULL || s->state == SILT_SANDBOX_DESTROYING)
        return "The sandbox does not exist";
    *ret = SILT_API_PORT_OPERATION;
    if (api->registry->preview->watch.fd < 0)
        return "silt-proxy is being restarted; try again";
    *ret = SILT_API_LIMIT_REACHED;
    return silt_exposed_port_direct(s, port) == NULL ? "Too many ports of the sandbox are in use"
                                                     : NULL;
}

SILT_HANDLER(silt_api_port_direct)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    enum silt_api_code code;
    uint64_t port;
    if (silt_id_check(args[0], &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return;
    }
    if (silt_slice_to_u64(args[1], 1, UINT16_MAX, &port, &e) < 0) {
        silt_api_refuse(r, SILT_API_INVALID_PORT_NUMBER, (silt_slice){NULL, 0},
                        "Invalid port number: it is not between 1 and 65535");
        return;
    }
    const char *why = refusal(api, args[0], (uint16_t)port, &code);
    if (why != NULL) {
        silt_api_refuse(r, code, (silt_slice){NULL, 0}, "%s", why);
        return;
    }
    hand_over(r, (struct direct){.api = api, .id = args[0], .port = (uint16_t)port}, args[2]);
}

/* Whoever is wrong about the id, the port or the token gets the same answer. */
SILT_HANDLER(silt_api_preview)
{
    struct silt_api *api = silt_api_of(r);
    struct silt_error e;
    uint64_t port = 0;
    bool good = silt_slice_to_u64(args[0], 1, UINT16_MAX, &port, &e) == 0
                && silt_id_check(args[1], &e) == 0;
    struct silt_sandbox *s = good ? silt_registry_find(api->registry, args[1]) : NULL;
    if (s == NULL || find_preview(s, (uint16_t)port, args[2]) == NULL)
        silt_api_refuse(r, SILT_API_INVALID_TOKEN, (silt_slice){NULL, 0},
                        "No preview has this sandbox, port and token");
    else if (s->state == SILT_SANDBOX_DESTROYING)
        silt_api_refuse(r, SILT_API_STALE_PREVIEW, (silt_slice){NULL, 0},
                        "The sandbox of this preview is being destroyed");
    else if (api->registry->preview->watch.fd < 0)
        silt_api_refuse(r, SILT_API_PORT_OPERATION, (silt_slice){NULL, 0},
                        "silt-proxy is being restarted; try again");
    else
        hand_over(
            r, (struct direct){.api = api, .id = args[1], .port = (uint16_t)port, .token = args[2]},
            args[3]);
}
