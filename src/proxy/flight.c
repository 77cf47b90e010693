/* SPDX-License-Identifier: Apache-2.0 */
/* flight: one question by UDP, from the sandbox to a resolver and its answer back. */
#include "base/own.h"
#include "proxy/dns.h"
#include "proxy/message.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    QUESTION_MAX = 1024, /* a name has 255 bytes; the rest is for options */
    ANSWER_MAX = 65535,
    FLIGHTS_MAX = 1024,
    FLIGHTS_OF_ONE = 64, /* of one sandbox */
    FLIGHTS_FEW = 4,
    TRIES = 3,
    TRY_MS = 2000,
    BATCH = 32, /* datagrams in one turn */
};

struct flight {
    struct silt_link link;
    struct silt_dns_listener *listener; /* borrowed */
    struct silt_watch resolver;         /* a connected socket: only that resolver can answer */
    struct silt_timer late;
    struct silt_grave grave;
    struct sockaddr_storage from;
    socklen_t from_len;
    uint16_t id; /* the sandbox's; on the way out it has another */
    unsigned tries;
    struct silt_dns_question question;
    struct silt_names_asker asker;
    char text[QUESTION_MAX];
    size_t len;
};

static void free_flight(struct silt_grave *g)
{
    free(silt_container_of(g, struct flight, grave));
}

static void hang_up(struct flight *f)
{
    if (f->resolver.fd < 0)
        return;
    silt_loop_forget(f->listener->dns->loop, &f->resolver);
    silt_close_fd(&f->resolver.fd);
}

static void end(struct flight *f)
{
    struct silt_dns *d = f->listener->dns;
    hang_up(f);
    silt_loop_cancel(d->loop, &f->late);
    silt_list_remove(&f->link);
    d->nflights--;
    silt_loop_bury(d->loop, &f->grave);
}

static void reply(struct flight *f, char *answer, size_t len)
{
    silt_dns_set_id(answer, f->id);
    (void)sendto(f->listener->udp.fd, answer, len, MSG_NOSIGNAL, (struct sockaddr *)&f->from,
                 f->from_len);
    end(f);
}

static void fail(struct flight *f)
{
    reply(f, f->text, silt_dns_answer_empty(f->text, &f->question, SILT_DNS_SERVFAIL));
}

static void on_answer(struct silt_watch *w, uint32_t events)
{
    static char answer[ANSWER_MAX];
    struct flight *f = silt_container_of(w, struct flight, resolver);
    (void)events;
    ssize_t n = recv(w->fd, answer, sizeof(answer), 0);
    size_t len = 0;
    if (n >= SILT_DNS_HEAD && silt_dns_id(answer) == silt_dns_id(f->text))
        len = silt_names_answer(&f->asker, &f->question, answer, (size_t)n);
    if (len > 0) {
        reply(f, answer, len);
        return;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        hang_up(f); /* nobody is there: the next one, soon */
        silt_loop_after(f->listener->dns->loop, &f->late, 1);
    }
}

/* -1: there is nobody to ask. */
static int ask(struct flight *f)
{
    struct silt_dns *d = f->listener->dns;
    struct silt_resolvers *r = d->resolvers;
    uint16_t id;
    hang_up(f);
    if (r->count == 0 || f->tries >= TRIES || getrandom(&id, sizeof(id), 0) != sizeof(id))
        return -1;
    const struct silt_resolver *to = &r->list[f->tries++ % r->count];
    int fd = socket(to->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    f->resolver = (struct silt_watch){.fd = fd, .on_ready = on_answer};
    silt_loop_watch(d->loop, &f->resolver, EPOLLIN);
    silt_loop_after(d->loop, &f->late, TRY_MS);
    silt_dns_set_id(f->text, id);
    if (connect(fd, (const struct sockaddr *)&to->address, to->len) < 0
        || send(fd, f->text, f->len, MSG_NOSIGNAL) < 0)
        silt_loop_after(d->loop, &f->late, 1);
    return 0;
}

static void on_late(struct silt_timer *t)
{
    struct flight *f = silt_container_of(t, struct flight, late);
    if (ask(f) < 0)
        fail(f);
}

static bool has_room(const struct silt_dns *d, uint32_t link)
{
    static const struct silt_places places = {
        .most = FLIGHTS_MAX, .each = FLIGHTS_OF_ONE, .few = FLIGHTS_FEW};
    size_t own = 0;
    silt_list_each(it, &d->flights)
    {
        own += silt_container_of(it, struct flight, link)->asker.link == link;
    }
    return silt_places_left(&places, d->nflights, own);
}

static void take_off(struct silt_dns_listener *l, const struct flight *model)
{
    struct silt_dns *d = l->dns;
    struct flight *f = malloc(sizeof(*f));
    if (f == NULL)
        abort();
    *f = *model;
    silt_list_init(&f->link);
    silt_list_append(&d->flights, &f->link);
    d->nflights++;
    silt_resolvers_refresh(d->resolvers);
    if (ask(f) < 0)
        fail(f);
}

static void answer_at_once(struct silt_dns_listener *l, struct flight *model, unsigned code)
{
    size_t len = silt_dns_answer_empty(model->text, &model->question, code);
    (void)sendto(l->udp.fd, model->text, len, MSG_NOSIGNAL, (struct sockaddr *)&model->from,
                 model->from_len);
}

/* What cannot be understood is not answered: its sender may be a lie. Too many at once neither: the
 * sender asks again. */
static void consider(struct silt_dns_listener *l, struct flight *model)
{
    struct silt_error e;
    silt_slice text = {model->text, model->len};
    if (silt_dns_parse(text, &model->question, &e) < 0) {
        if (e.code == SILT_INVALID)
            answer_at_once(l, model, SILT_DNS_NOTIMP);
        return;
    }
    model->id = model->question.id;
    model->asker = silt_dns_asker(l, &model->from);
    int code = silt_names_ask(&model->asker, &model->question, model->text, &model->len);
    if (code != SILT_NAMES_ASK)
        answer_at_once(l, model, (unsigned)code);
    else if (has_room(l->dns, model->asker.link))
        take_off(l, model);
}

void silt_dns_on_datagram(struct silt_watch *w, uint32_t events)
{
    struct silt_dns_listener *l = silt_container_of(w, struct silt_dns_listener, udp);
    static struct flight model;
    (void)events;
    for (int i = 0; i < BATCH; i++) {
        model = (struct flight){.listener = l,
                                .resolver = {.fd = -1},
                                .late = {.on_time = on_late},
                                .grave = {.free = free_flight},
                                .from_len = sizeof(model.from)};
        ssize_t n = recvfrom(w->fd, model.text, sizeof(model.text), MSG_TRUNC | MSG_DONTWAIT,
                             (struct sockaddr *)&model.from, &model.from_len);
        if (n < 0)
            return;
        model.len = (size_t)n;
        if (model.len <= sizeof(model.text))
            consider(l, &model);
    }
}
