/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/tunnel.h"
#include "proxy/core/relay.h"

#include <stdlib.h>

enum { LAST_PIECES = 64 };

struct tunnel {
    struct silt_pool *pool;   /* borrowed */
    struct silt_route *route; /* borrowed; NULL: dropped */
    struct silt_route_user user;
    struct silt_grave grave;
    struct silt_relay relay;  /* the server is the service inside */
    struct silt_buf up, down; /* pending for the service, for the client */
};

static void free_tunnel(struct silt_grave *g)
{
    struct tunnel *t = silt_outer(g, struct tunnel, grave);
    silt_buf_fini(&t->up);
    silt_buf_fini(&t->down);
    free(t);
}

static void on_over(struct silt_relay *r, bool broken)
{
    struct tunnel *t = silt_outer(r, struct tunnel, relay);
    (void)broken;
    t->pool->open -= SILT_RELAY_ENDS;
    if (t->route != NULL)
        silt_route_unuse(t->route, &t->user);
    silt_loop_bury(r->loop, &t->grave);
}

/* The container has ended: its last bytes are still delivered, as far as the client accepts them.
 */
static void on_drop(struct silt_route_user *u)
{
    struct tunnel *t = silt_outer(u, struct tunnel, user);
    t->route = NULL;
    silt_relay_push(&t->relay, SILT_RELAY_CLIENT);
    for (int i = 0; i < LAST_PIECES && !t->relay.over; i++)
        if (!silt_relay_pull(&t->relay, SILT_RELAY_SERVER))
            break;
    silt_relay_break(&t->relay);
}

void silt_tunnel_start(struct silt_pool *pool, struct silt_route *route, int visitor, int inside)
{
    static const struct silt_relay_owner owner = {.on_over = on_over};
    struct tunnel *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    pool->open += SILT_RELAY_ENDS;
    *t = (struct tunnel){
        .pool = pool, .route = route, .user = {.on_drop = on_drop}, .grave = {.free = free_tunnel}};
    silt_list_init(&t->user.link);
    silt_buf_init(&t->up, 2 * SILT_RELAY_PIECE);
    silt_buf_init(&t->down, 2 * SILT_RELAY_PIECE);
    silt_relay_init(&t->relay, pool->loop, &owner);
    t->relay.eager = true;
    silt_relay_attach(&t->relay, SILT_RELAY_CLIENT, visitor, &t->down, NULL);
    silt_relay_attach(&t->relay, SILT_RELAY_SERVER, inside, &t->up, NULL);
    silt_route_use(route, &t->user);
    silt_relay_settle(&t->relay);
}
