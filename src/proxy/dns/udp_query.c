/* SPDX-License-Identifier: Apache-2.0 */
/* udp_query: one DNS query over UDP, from the sandbox to a resolver and back. */
#include "base/own.h"
#include "proxy/dns/dns.h"
#include "proxy/dns/wire.h"

#include <errno.h>
#include <netinet/in.h>
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
    CONTROL_MAX = 256,
    ORIGINAL_DST6 = 74, /* IPV6_ORIGDSTADDR, which not every libc has */
};

struct flight {
    struct silt_link link;
    struct silt_dns_listener *listener; /* borrowed */
    struct silt_watch resolver;         /* a connected socket: only that resolver can answer */
    struct silt_timer late;
    struct silt_grave grave;
    struct sockaddr_storage from;
    socklen_t from_len;
    struct sockaddr_storage asked; /* intercepted: the resolver it addressed */
    uint16_t id;                   /* the sandbox's id; the forwarded query has another */
    unsigned tries;
    struct silt_dns_question question;
    struct silt_name_policy_asker asker;
    char text[QUESTION_MAX];
    size_t len;
};

static void free_flight(struct silt_grave *g)
{
    free(silt_outer(g, struct flight, grave));
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

/* Answers come from the address that was queried; the namespace's rules restore the port. */
static void put_source(struct msghdr *m, const struct sockaddr_storage *asked)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    struct in_pktinfo four = {.ipi_spec_dst =
                                  ((const struct sockaddr_in *)(const void *)asked)->sin_addr};
    struct in6_pktinfo six = {.ipi6_addr =
                                  ((const struct sockaddr_in6 *)(const void *)asked)->sin6_addr};
    bool is_four = asked->ss_family == AF_INET;
    size_t size = is_four ? sizeof(four) : sizeof(six);
    *c = (struct cmsghdr){.cmsg_level = is_four ? IPPROTO_IP : IPPROTO_IPV6,
                          .cmsg_type = is_four ? IP_PKTINFO : IPV6_PKTINFO,
                          .cmsg_len = CMSG_LEN(size)};
    if (is_four)
        memcpy(CMSG_DATA(c), &four, size);
    else
        memcpy(CMSG_DATA(c), &six, size);
    m->msg_controllen = CMSG_SPACE(size);
}

static void send_back(const struct silt_dns_listener *l, struct flight *f, char *answer, size_t len)
{
    char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
    struct iovec part = {answer, len};
    struct msghdr m = {
        .msg_name = &f->from, .msg_namelen = f->from_len, .msg_iov = &part, .msg_iovlen = 1};
    if (l->captive != 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        put_source(&m, &f->asked);
    }
    (void)sendmsg(l->udp.fd, &m, MSG_NOSIGNAL);
}

static void reply(struct flight *f, char *answer, size_t len)
{
    silt_dns_set_id(answer, f->id);
    send_back(f->listener, f, answer, len);
    end(f);
}

static void fail(struct flight *f)
{
    reply(f, f->text, silt_dns_answer_empty(f->text, &f->question, SILT_DNS_SERVFAIL));
}

static void on_answer(struct silt_watch *w, uint32_t events)
{
    static char answer[ANSWER_MAX];
    struct flight *f = silt_outer(w, struct flight, resolver);
    (void)events;
    ssize_t n = recv(w->fd, answer, sizeof(answer), 0);
    size_t len = 0;
    if (n >= SILT_DNS_HEAD && silt_dns_id(answer) == silt_dns_id(f->text))
        len = silt_name_policy_answer(&f->asker, &f->question, answer, (size_t)n, sizeof(answer));
    if (len > 0) {
        reply(f, answer, len);
        return;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        hang_up(f); /* no server there: try the next resolver soon */
        silt_loop_after(f->listener->dns->loop, &f->late, 1);
    }
}

/* -1: no resolver. */
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
    struct flight *f = silt_outer(t, struct flight, late);
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
        own += silt_outer(it, struct flight, link)->asker.link == link;
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
    send_back(l, model, model->text, len);
}

/* Malformed queries get no answer, since the source may be spoofed. Neither do those above the
 * limit: the client retries. */
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
    int code = silt_name_policy_ask(&model->asker, &model->question, model->text, &model->len);
    if (code == SILT_NAME_POLICY_ANSWERED)
        send_back(l, model, model->text, model->len);
    else if (code != SILT_NAME_POLICY_ASK)
        answer_at_once(l, model, (unsigned)code);
    else if (has_room(l->dns, model->asker.link))
        take_off(l, model);
}

void silt_dns_end_flights(struct silt_dns_listener *l)
{
    silt_list_each(it, &l->dns->flights)
    {
        struct flight *f = silt_outer(it, struct flight, link);
        if (f->listener == l)
            end(f);
    }
}

/* The resolver that an intercepted sandbox addressed. false: it addressed us directly, which is not
 * expected. */
static bool find_asked(struct msghdr *m, struct sockaddr_storage *ret)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        bool four = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR;
        bool six = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == ORIGINAL_DST6;
        if (!four && !six)
            continue;
        memcpy(ret, CMSG_DATA(c), four ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        return silt_link_table_port(ret) == SILT_RESOLVERS_PORT;
    }
    return false;
}

/* true: more may be pending. */
static bool receive(struct silt_dns_listener *l, struct flight *model)
{
    char control[CONTROL_MAX];
    struct iovec part = {model->text, sizeof(model->text)};
    struct msghdr m = {.msg_name = &model->from,
                       .msg_namelen = sizeof(model->from),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(l->udp.fd, &m, MSG_TRUNC | MSG_DONTWAIT);
    if (n < 0)
        return false;
    model->len = (size_t)n;
    model->from_len = m.msg_namelen;
    bool good = l->captive == 0 || find_asked(&m, &model->asked);
    if (good && model->len <= sizeof(model->text))
        consider(l, model);
    return true;
}

void silt_dns_on_datagram(struct silt_watch *w, uint32_t events)
{
    struct silt_dns_listener *l = silt_outer(w, struct silt_dns_listener, udp);
    static struct flight model;
    bool more = true;
    (void)events;
    for (int i = 0; i < BATCH && more; i++) {
        model = (struct flight){.listener = l,
                                .resolver = {.fd = -1},
                                .late = {.on_time = on_late},
                                .grave = {.free = free_flight}};
        more = receive(l, &model);
    }
}
