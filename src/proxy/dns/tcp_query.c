/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_query: a sandbox's DNS connection over TCP. Queries are handled one at a time, each on its
 * own connection to a resolver. */
#include "base/own.h"
#include "proxy/dns/dns.h"
#include "proxy/dns/wire.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PREFIX = 2, /* length prefix of each message */
    QUESTION_MAX = 1024,
    ANSWER_MAX = PREFIX + 65535,
    CALLS_MAX = 128,
    CALLS_OF_ONE = 8, /* of one sandbox */
    CALLS_FEW = 1,
    CALL_MS = 10000,
};

/*  LISTENING --a whole question--> ASKING --sent--> WAITING --a whole answer--> ANSWERING --sent-->
 *  LISTENING; anything that goes wrong, the deadline, the sandbox's end: gone                  */
enum state { LISTENING, ASKING, WAITING, ANSWERING };

struct call {
    struct silt_link link;
    struct silt_dns *dns; /* borrowed */
    struct silt_name_policy_asker asker;
    struct silt_dns_question parsed; /* the question */
    struct silt_watch sandbox, resolver;
    struct silt_timer late;
    struct silt_grave grave;
    enum state state;
    size_t turn;                     /* whose turn it is among the resolvers */
    size_t done;                     /* bytes of what is being read or sent */
    size_t question_len, answer_len; /* with the prefix */
    char question[PREFIX + QUESTION_MAX];
    char answer[ANSWER_MAX];
};

static void free_call(struct silt_grave *g)
{
    free(silt_outer(g, struct call, grave));
}

static void close_watch(struct call *c, struct silt_watch *w)
{
    if (w->fd < 0)
        return;
    silt_loop_forget(c->dns->loop, w);
    silt_close_fd(&w->fd);
}

static void end(struct call *c)
{
    close_watch(c, &c->sandbox);
    close_watch(c, &c->resolver);
    silt_loop_cancel(c->dns->loop, &c->late);
    silt_list_remove(&c->link);
    c->dns->ncalls--;
    silt_loop_bury(c->dns->loop, &c->grave);
}

static void on_late(struct silt_timer *t)
{
    end(silt_outer(t, struct call, late));
}

/* The only place that assigns the state, and says what is waited for in it. */
static void enter(struct call *c, enum state next)
{
    struct silt_loop *l = c->dns->loop;
    c->state = next;
    c->done = 0;
    switch (next) {
    case LISTENING:
        silt_loop_after(l, &c->late, CALL_MS);
        silt_loop_watch(l, &c->sandbox, EPOLLIN);
        return;
    case ASKING:
        silt_loop_watch(l, &c->sandbox, 0);
        silt_loop_watch(l, &c->resolver, EPOLLOUT);
        return;
    case WAITING:
        silt_loop_watch(l, &c->resolver, EPOLLIN);
        return;
    case ANSWERING:
        close_watch(c, &c->resolver);
        silt_loop_watch(l, &c->sandbox, EPOLLOUT);
        return;
    }
}

static size_t wanted(const char *buffer, size_t done)
{
    return done < PREFIX ? PREFIX : PREFIX + (size_t)silt_dns_id(buffer); /* as big-endian */
}

/* 1: a complete message; 0: not yet; -1: malformed or closed. */
static int read_some(int fd, char *buffer, size_t room, size_t *done)
{
    size_t want = wanted(buffer, *done);
    if (want > room)
        return -1;
    ssize_t n = recv(fd, buffer + *done, want - *done, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    *done += (size_t)n;
    return *done > PREFIX && *done == wanted(buffer, *done);
}

static int write_some(int fd, const char *buffer, size_t len, size_t *done)
{
    ssize_t n = send(fd, buffer + *done, len - *done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    *done += (size_t)n;
    return *done == len;
}

static void put_size(char *buffer, size_t len)
{
    silt_dns_set_id(buffer, (uint16_t)len); /* as big-endian */
}

static void on_answer(struct call *c)
{
    size_t len = c->done - PREFIX;
    if (silt_dns_id(c->answer + PREFIX) == silt_dns_id(c->question + PREFIX))
        len = silt_name_policy_answer(&c->asker, &c->parsed, c->answer + PREFIX, len,
                                      sizeof(c->answer) - PREFIX);
    else
        len = 0;
    put_size(c->answer, len);
    c->answer_len = PREFIX + len;
    if (len == 0)
        end(c);
    else
        enter(c, ANSWERING);
}

static void on_resolver(struct silt_watch *w, uint32_t events)
{
    struct call *c = silt_outer(w, struct call, resolver);
    (void)events;
    int got = c->state == ASKING ? write_some(w->fd, c->question, c->question_len, &c->done)
                                 : read_some(w->fd, c->answer, sizeof(c->answer), &c->done);
    if (got < 0) {
        end(c);
    } else if (got > 0 && c->state == ASKING) {
        enter(c, WAITING);
    } else if (got > 0) {
        on_answer(c);
    }
}

static int dial(struct call *c)
{
    struct silt_resolvers *r = c->dns->resolvers;
    silt_resolvers_refresh(r);
    if (r->count == 0)
        return -1;
    const struct silt_resolver *to = &r->list[c->turn++ % r->count];
    int fd = socket(to->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    c->resolver = (struct silt_watch){.fd = fd, .on_ready = on_resolver};
    if (connect(fd, (const struct sockaddr *)&to->address, to->len) < 0 && errno != EINPROGRESS) {
        silt_close_fd(&c->resolver.fd);
        return -1;
    }
    enter(c, ASKING);
    return 0;
}

static void answer_at_once(struct call *c, unsigned code)
{
    size_t len = silt_dns_answer_empty(c->question + PREFIX, &c->parsed, code);
    memcpy(c->answer + PREFIX, c->question + PREFIX, len);
    put_size(c->answer, len);
    c->answer_len = PREFIX + len;
    enter(c, ANSWERING);
}

/* Without any resolver the connection is closed. */
static void on_question(struct call *c)
{
    struct silt_error e;
    silt_slice text = {c->question + PREFIX, c->done - PREFIX};
    if (silt_dns_parse(text, &c->parsed, &e) < 0) {
        end(c);
        return;
    }
    int code = silt_name_policy_ask(&c->asker, &c->parsed, c->question + PREFIX, &text.len);
    if (code != SILT_NAME_POLICY_ASK) {
        answer_at_once(c, (unsigned)code);
        return;
    }
    put_size(c->question, text.len);
    c->question_len = PREFIX + text.len;
    if (dial(c) < 0)
        end(c);
}

static void on_sandbox(struct silt_watch *w, uint32_t events)
{
    struct call *c = silt_outer(w, struct call, sandbox);
    (void)events;
    int got = c->state == LISTENING ? read_some(w->fd, c->question, sizeof(c->question), &c->done)
                                    : write_some(w->fd, c->answer, c->answer_len, &c->done);
    if (got < 0)
        end(c);
    else if (got > 0 && c->state == LISTENING)
        on_question(c);
    else if (got > 0)
        enter(c, LISTENING);
}

static bool has_room(const struct silt_dns *d, uint32_t link)
{
    static const struct silt_places places = {
        .most = CALLS_MAX, .each = CALLS_OF_ONE, .few = CALLS_FEW};
    size_t own = 0;
    silt_list_each(it, &d->calls)
    {
        own += silt_outer(it, struct call, link)->asker.link == link;
    }
    return silt_places_left(&places, d->ncalls, own);
}

void silt_dns_on_connection(struct silt_watch *w, uint32_t events)
{
    struct silt_dns_listener *l = silt_outer(w, struct silt_dns_listener, tcp);
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);
    (void)events;
    silt_auto_fd fd = accept4(w->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct silt_name_policy_asker asker = silt_dns_asker(l, &from);
    if (!has_room(l->dns, asker.link))
        return;
    struct call *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->dns = l->dns;
    c->asker = asker;
    c->resolver.fd = -1;
    c->sandbox = (struct silt_watch){.fd = silt_take_fd(&fd), .on_ready = on_sandbox};
    c->late.on_time = on_late;
    c->grave.free = free_call;
    silt_list_init(&c->link);
    silt_list_append(&l->dns->calls, &c->link);
    l->dns->ncalls++;
    enter(c, LISTENING);
}
