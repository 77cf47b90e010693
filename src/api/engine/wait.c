/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that were waiting for the end of a container when an earlier siltd died: silt-super kept
 * their connections, and they have not noticed. Their requests were read to the end and not
 * answered. */
#include "api/engine/engine.h"
#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct standing {
    struct silt_engine *engine; /* borrowed */
    struct silt_container_wait wait;
    struct silt_watch watch;
    struct silt_link link;
    struct silt_grave grave;
};

static void free_standing(struct silt_grave *g)
{
    free(silt_outer(g, struct standing, grave));
}

static void let_go(struct standing *s)
{
    struct silt_loop *loop = s->engine->api->loop;
    silt_loop_forget(loop, &s->watch);
    silt_close_fd(&s->watch.fd);
    silt_list_remove(&s->link);
    silt_loop_bury(loop, &s->grave);
}

static void answer(struct standing *s, int32_t code)
{
    char body[64], text[256];
    int len = snprintf(body, sizeof(body), "{\"StatusCode\":%d}", code);
    int all = snprintf(text, sizeof(text),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
                       "%d\r\nApi-Version: " SILT_ENGINE_API "\r\nConnection: close\r\n\r\n%s",
                       len, body);
    (void)send(s->watch.fd, text, (size_t)all, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_done(struct silt_container_wait *w, int32_t code)
{
    struct standing *s = silt_outer(w, struct standing, wait);
    answer(s, code);
    let_go(s);
}

/* Bytes from the client are ignored: it has to wait for its response. */
static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct standing *s = silt_outer(w, struct standing, watch);
    char junk[4096];
    ssize_t n = w->fd >= 0 ? recv(w->fd, junk, sizeof(junk), MSG_DONTWAIT) : -1;
    if (w->fd < 0 || (n > 0 && (events & (EPOLLERR | EPOLLHUP)) == 0))
        return;
    silt_container_wait_leave(&s->wait);
    let_go(s);
}

void silt_engine_waits(void *context, struct silt_container *c, int fd)
{
    struct silt_engine *g = context;
    struct standing *s = calloc(1, sizeof(*s));
    int32_t code;
    if (s == NULL)
        abort();
    *s = (struct standing){.engine = g,
                           .wait = {.on_done = on_done},
                           .watch = {.fd = fd, .on_ready = on_ready},
                           .grave = {.free = free_standing}};
    silt_list_init(&s->link);
    silt_list_append(&g->waits, &s->link);
    silt_loop_watch(g->api->loop, &s->watch, EPOLLIN | EPOLLRDHUP);
    if (silt_container_wait(c, &s->wait, &code))
        on_done(&s->wait, code);
    else
        silt_container_wait_keep(&s->wait, -1);
}

void silt_engine_waits_free(struct silt_engine *g)
{
    while (!silt_list_empty(&g->waits)) {
        struct standing *s = silt_list_first(&g->waits, struct standing, link);
        silt_list_remove(&s->wait.link);
        let_go(s);
    }
}
