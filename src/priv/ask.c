/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/ask.h"
#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_MS = 30000, SEAL_DEADLINE_MS = 30 * 60 * 1000 /* waits for the disk */ };

/*   WAITING --sent--> SENT --answer, timeout or end of the channel--> gone
 *       \---timeout---/   \--timeout of a change--> LATE --answer or end of the channel--> gone
 *
 * A late change has failed for its caller but may still be carried out: other changes of its slot
 * wait for it. */
struct question {
    struct silt_link link; /* in ask->waiting or ask->sent */
    struct silt_priv_ask *ask;
    struct silt_priv_request request;
    int fds[SILT_FDS_MAX];
    int nfds;
    bool sent;
    silt_priv_answered *on_answer; /* NULL: it is late */
    void *context;
    struct silt_timer deadline;
    struct silt_grave grave;
};

struct silt_priv_ask {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch;
    struct silt_link waiting; /* not sent yet, oldest first */
    struct silt_link sent;
    uint64_t next_seq;
};

static void free_question(struct silt_grave *g)
{
    free(silt_outer(g, struct question, grave));
}

static void close_fds(struct question *q)
{
    for (int i = 0; i < q->nfds; i++)
        silt_close_fd(&q->fds[i]);
    q->nfds = 0;
}

static void end(struct question *q)
{
    silt_list_remove(&q->link);
    silt_loop_cancel(q->ask->loop, &q->deadline);
    close_fds(q);
    silt_loop_bury(q->ask->loop, &q->grave);
}

/* True for requests whose order matters to the slot's sandbox. */
static bool is_change(const struct question *q)
{
    switch (q->request.op) {
    case SILT_PRIV_MAKE:
    case SILT_PRIV_ROLLBACK:
    case SILT_PRIV_CREATE:
    case SILT_PRIV_CLAIM:
    case SILT_PRIV_STOP:
    case SILT_PRIV_FREEZE:
    case SILT_PRIV_THAW:
    case SILT_PRIV_LIMIT:
    case SILT_PRIV_DESTROY:
    case SILT_PRIV_HANDLES:
    case SILT_PRIV_NETWORK:
        return true;
    default:
        return false;
    }
}

static void pump(struct silt_priv_ask *a);

static void answer(struct question *q, const struct silt_priv_answer *a, int *fds, int nfds)
{
    end(q);
    pump(q->ask); /* another change of the slot may have waited for it */
    q->on_answer(q->context, a, fds, nfds);
}

static void fail(struct question *q, enum silt_code code, const char *why)
{
    struct silt_priv_answer a = {.seq = q->request.seq, .slot = q->request.slot};
    (void)silt_fail(&a.body.error, code, "silt-priv: %s", why);
    answer(q, &a, NULL, 0);
}

static struct question *new_question(struct silt_priv_ask *a, const struct silt_priv_request *q);

static void on_late_stop(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    (void)context;
    (void)fds;
    (void)nfds;
    if (!a->ok)
        silt_log(SILT_LOG_ERROR, "priv.late", "slot=%u error=\"%s\"", a->slot, a->body.error.text);
}

/* A sandbox whose request timed out may run without an owner: it is stopped before anything else
 * happens to its slot. Its files stay: they may be from an earlier start. */
static void end_late(struct question *q, bool may_run)
{
    struct silt_priv_ask *a = q->ask;
    struct silt_priv_request stop = {.op = SILT_PRIV_STOP, .slot = q->request.slot};
    if (may_run && q->request.op == SILT_PRIV_CREATE) {
        struct question *first = new_question(a, &stop);
        first->on_answer = on_late_stop;
        silt_list_append(a->waiting.next, &first->link); /* before the first */
    }
    end(q);
    pump(a);
}

static void on_deadline(struct silt_timer *t)
{
    struct question *q = silt_outer(t, struct question, deadline);
    if (!q->sent || !is_change(q)) {
        fail(q, SILT_TIMEOUT, "no answer in time");
        return;
    }
    struct silt_priv_answer a = {.seq = q->request.seq, .slot = q->request.slot};
    silt_priv_answered *on_answer = q->on_answer;
    (void)silt_fail(&a.body.error, SILT_TIMEOUT, "silt-priv: no answer in time");
    q->on_answer = NULL;
    on_answer(q->context, &a, NULL, 0);
}

/* The list may change under us: callbacks may add new requests. */
static void fail_sent(struct silt_priv_ask *a)
{
    struct silt_link dead;
    silt_list_init(&dead);
    while (!silt_list_empty(&a->sent)) {
        struct silt_link *it = a->sent.next;
        silt_list_remove(it);
        silt_list_append(&dead, it);
    }
    while (!silt_list_empty(&dead)) {
        struct question *q = silt_outer(dead.next, struct question, link);
        if (q->on_answer == NULL)
            end_late(q, true);
        else
            fail(q, SILT_INTERRUPTED, "restarted before it answered");
    }
}

static void hang_up(struct silt_priv_ask *a)
{
    if (a->watch.fd < 0)
        return;
    silt_loop_forget(a->loop, &a->watch);
    silt_close_fd(&a->watch.fd);
    fail_sent(a);
}

/* 0: sent; -1: the channel is full or gone. */
static int send_one(struct silt_priv_ask *a, struct question *q)
{
    struct silt_parcel out = {.data = &q->request, .len = sizeof(q->request), .nfds = q->nfds};
    struct silt_error e;
    memcpy(out.fds, q->fds, sizeof(int) * (size_t)q->nfds);
    if (silt_fd_send(a->watch.fd, &out, &e) < 0)
        return -1;
    close_fds(q);
    silt_list_remove(&q->link);
    silt_list_append(&a->sent, &q->link);
    q->sent = true;
    return 0;
}

/* silt-priv's workers do not synchronize with each other. */
static bool must_wait(const struct silt_priv_ask *a, const struct question *q)
{
    if (!is_change(q))
        return false;
    silt_list_each(it, &a->sent)
    {
        const struct question *other = silt_outer(it, struct question, link);
        if (other->request.slot == q->request.slot && is_change(other))
            return true;
    }
    return false;
}

/* A closed channel is reported by EPOLLHUP: unsent requests wait for the next channel. */
static void pump(struct silt_priv_ask *a)
{
    if (a->watch.fd < 0)
        return;
    uint32_t events = EPOLLIN;
    silt_list_each(it, &a->waiting)
    {
        struct question *q = silt_outer(it, struct question, link);
        if (must_wait(a, q))
            continue;
        if (send_one(a, q) < 0) {
            events |= EPOLLOUT;
            break;
        }
    }
    silt_loop_watch(a->loop, &a->watch, events);
}

static struct question *find_sent(struct silt_priv_ask *a, uint64_t seq)
{
    silt_list_each(it, &a->sent)
    {
        struct question *q = silt_outer(it, struct question, link);
        if (q->request.seq == seq)
            return q;
    }
    return NULL;
}

/* If silt-priv does not find something, or finds it in its way, that is not the client's fault.
 * Only a log is requested by a number that may be outdated. */
static void translate(struct silt_error *e, uint32_t op)
{
    e->text[sizeof(e->text) - 1] = 0;
    switch (e->code) {
    case SILT_NOT_FOUND:
    case SILT_CONFLICT:
        if (op == SILT_PRIV_LOG)
            return;
        break;
    case SILT_LIMIT:
    case SILT_NO_SPACE:
    case SILT_TIMEOUT:
    case SILT_UNAVAILABLE:
    case SILT_INTERRUPTED:
        return;
    case SILT_OK:
    case SILT_INVALID:
    case SILT_DENIED:
    case SILT_GONE:
    case SILT_PROTOCOL:
    case SILT_INTERNAL:
    case SILT_CODE_MAX:
        break;
    }
    e->code = SILT_INTERNAL;
}

static void on_message(struct silt_priv_ask *a, struct silt_priv_answer *got,
                       struct silt_parcel *in)
{
    struct question *q = find_sent(a, got->seq);
    if (q == NULL || q->on_answer == NULL) { /* it has timed out */
        silt_parcel_close(in);
        if (q != NULL)
            end_late(q, got->ok);
        return;
    }
    int nfds = in->nfds;
    in->nfds = 0; /* now owned by the callee */
    if (!got->ok)
        translate(&got->body.error, q->request.op);
    answer(q, got, in->fds, nfds);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_priv_ask *a = silt_outer(w, struct silt_priv_ask, watch);
    if ((events & EPOLLIN) != 0) {
        struct silt_priv_answer got;
        struct silt_parcel in = {.data = &got, .len = sizeof(got)};
        struct silt_error e;
        int n = silt_fd_recv(w->fd, &in, &e);
        if (n > 0 && in.len == sizeof(got)) {
            on_message(a, &got, &in);
            return;
        }
        silt_parcel_close(&in);
        if (n < 0 && e.sys == EAGAIN)
            return;
        hang_up(a);
        return;
    }
    if ((events & (EPOLLHUP | EPOLLERR)) != 0)
        hang_up(a);
    else
        pump(a);
}

static int use(struct silt_priv_ask *a, int fd, struct silt_error *e)
{
    if (silt_fd_nonblock(fd, e) < 0) {
        silt_close_fd(&fd);
        return -1;
    }
    a->watch.fd = fd;
    pump(a);
    return 0;
}

int silt_priv_ask_open(struct silt_loop *loop, int fd, struct silt_priv_ask **ret,
                       struct silt_error *e)
{
    struct silt_priv_ask *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    *a = (struct silt_priv_ask){
        .loop = loop, .watch = {.fd = -1, .on_ready = on_ready}, .next_seq = 1};
    silt_list_init(&a->waiting);
    silt_list_init(&a->sent);
    if (use(a, fd, e) < 0) {
        free(a);
        return -1;
    }
    *ret = a;
    return 0;
}

static void end_all(struct silt_link *list)
{
    while (!silt_list_empty(list))
        end(silt_outer(list->next, struct question, link));
}

void silt_priv_ask_close(struct silt_priv_ask *a)
{
    if (a == NULL)
        return;
    end_all(&a->waiting);
    end_all(&a->sent);
    if (a->watch.fd >= 0) {
        silt_loop_forget(a->loop, &a->watch);
        silt_close_fd(&a->watch.fd);
    }
    free(a);
}

void silt_priv_ask_replace(struct silt_priv_ask *a, int fd)
{
    struct silt_error e;
    hang_up(a);
    if (use(a, fd, &e) < 0)
        silt_log(SILT_LOG_ERROR, "priv.channel", "error=\"%s\"", e.text);
}

/* Not in a list yet. */
static struct question *new_question(struct silt_priv_ask *a, const struct silt_priv_request *q)
{
    struct question *new = calloc(1, sizeof(*new));
    if (new == NULL)
        abort();
    *new = (struct question){.ask = a,
                             .request = *q,
                             .deadline = {.on_time = on_deadline},
                             .grave = {.free = free_question}};
    new->request.seq = a->next_seq++;
    silt_list_init(&new->link);
    silt_loop_after(a->loop, &new->deadline,
                    q->op == SILT_PRIV_SEAL ? SEAL_DEADLINE_MS : DEADLINE_MS);
    return new;
}

void silt_priv_ask(struct silt_priv_ask *a, const struct silt_priv_request *q, const int *fds,
                   int nfds, silt_priv_answered *on_answer, void *context)
{
    assert(nfds >= 0 && nfds <= SILT_FDS_MAX && on_answer != NULL);
    struct question *new = new_question(a, q);
    new->on_answer = on_answer;
    new->context = context;
    new->nfds = nfds;
    if (nfds > 0)
        memcpy(new->fds, fds, sizeof(int) * (size_t)nfds);
    silt_list_append(&a->waiting, &new->link);
    pump(a);
}
