/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/ask.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

enum { DEADLINE_MS = 30000 };

struct question {
    struct silt_link link; /* in `unsent` or `sent` */
    struct silt_priv_ask *ask; /* borrowed */
    struct silt_priv_request request;
    int fds[SILT_FDS_MAX];
    int nfds;
    silt_priv_answered *on_answer;
    void *context;
    struct silt_timer deadline;
    struct silt_grave grave;
};

struct silt_priv_ask {
    struct silt_loop *loop; /* borrowed */
    struct silt_watch watch; /* fd -1: no channel now */
    struct silt_link unsent;
    struct silt_link sent;
    uint64_t next_seq;
};

static void free_question(struct silt_grave *g)
{
    free(silt_container_of(g, struct question, grave));
}

static void close_fds(struct question *q)
{
    for (int i = 0; i < q->nfds; i++)
        silt_close_fd(&q->fds[i]);
    q->nfds = 0;
}

/* The last thing that happens to a question. */
static void answer(struct question *q, const struct silt_priv_answer *a, int *fds, int nfds)
{
    silt_list_remove(&q->link);
    silt_loop_cancel(q->ask->loop, &q->deadline);
    close_fds(q);
    silt_loop_bury(q->ask->loop, &q->grave);
    q->on_answer(q->context, a, fds, nfds);
}

static void fail(struct question *q, enum silt_code code, const char *why)
{
    struct silt_priv_answer a = {.seq = q->request.seq, .slot = q->request.slot};
    (void)silt_fail(&a.body.error, code, "%s", why);
    answer(q, &a, NULL, 0);
}

static void on_deadline(struct silt_timer *t)
{
    fail(silt_container_of(t, struct question, deadline), SILT_TIMEOUT,
         "silt-priv did not answer within 30 seconds");
}

static void lose_channel(struct silt_priv_ask *a)
{
    struct silt_link lost;
    silt_loop_forget(a->loop, &a->watch);
    silt_close_fd(&a->watch.fd);
    silt_list_init(&lost); /* answers may ask again: those questions wait for the new channel */
    silt_list_each(it, &a->sent) {
        silt_list_remove(it);
        silt_list_append(&lost, it);
    }
    while (!silt_list_empty(&lost))
        fail(silt_container_of(lost.next, struct question, link), SILT_INTERRUPTED,
             "silt-priv was restarted meanwhile");
}

static void send_unsent(struct silt_priv_ask *a)
{
    struct silt_error e;
    while (a->watch.fd >= 0 && !silt_list_empty(&a->unsent)) {
        struct question *q = silt_container_of(a->unsent.next, struct question, link);
        struct silt_parcel p = {.data = &q->request, .len = sizeof(q->request), .nfds = q->nfds};
        memcpy(p.fds, q->fds, sizeof(p.fds));
        if (silt_fd_send(a->watch.fd, &p, &e) < 0) {
            if (e.sys == EAGAIN)
                silt_loop_watch(a->loop, &a->watch, EPOLLIN | EPOLLOUT);
            return; /* a dead channel shows itself by EPOLLHUP */
        }
        close_fds(q);
        silt_list_remove(&q->link);
        silt_list_append(&a->sent, &q->link);
    }
    if (a->watch.fd >= 0)
        silt_loop_watch(a->loop, &a->watch, EPOLLIN);
}

static struct question *find_sent(struct silt_priv_ask *a, uint64_t seq)
{
    silt_list_each(it, &a->sent) {
        struct question *q = silt_container_of(it, struct question, link);
        if (q->request.seq == seq)
            return q;
    }
    return NULL;
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_priv_ask *a = silt_container_of(w, struct silt_priv_ask, watch);
    struct silt_priv_answer got;
    struct silt_error e;
    if (events & EPOLLOUT)
        send_unsent(a);
    for (;;) {
        struct silt_parcel p = {.data = &got, .len = sizeof(got)};
        int rc = w->fd >= 0 ? silt_fd_recv(w->fd, &p, &e) : 0;
        if (w->fd < 0 || (rc < 0 && e.sys == EAGAIN))
            return;
        if (rc <= 0 || p.len != sizeof(got)) {
            silt_parcel_close(&p);
            lose_channel(a);
            return;
        }
        struct question *q = find_sent(a, got.seq);
        if (q == NULL) { /* came after its deadline */
            silt_parcel_close(&p);
            continue;
        }
        if (!got.ok)
            got.body.error.text[sizeof(got.body.error.text) - 1] = 0;
        answer(q, &got, p.fds, p.nfds);
    }
}

static int use_channel(struct silt_priv_ask *a, int fd, struct silt_error *e)
{
    a->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    if (silt_fd_nonblock(fd, e) < 0)
        return -1;
    silt_loop_watch(a->loop, &a->watch, EPOLLIN);
    return 0;
}

int silt_priv_ask_open(struct silt_loop *loop, int fd, struct silt_priv_ask **ret, struct silt_error *e)
{
    struct silt_priv_ask *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    a->loop = loop;
    silt_list_init(&a->unsent);
    silt_list_init(&a->sent);
    if (use_channel(a, fd, e) < 0) {
        silt_close_fd(&fd);
        free(a);
        return -1;
    }
    *ret = a;
    return 0;
}

static void drop(struct silt_priv_ask *a, struct silt_link *questions)
{
    while (!silt_list_empty(questions)) {
        struct question *q = silt_container_of(questions->next, struct question, link);
        silt_list_remove(&q->link);
        silt_loop_cancel(a->loop, &q->deadline);
        close_fds(q);
        free(q);
    }
}

void silt_priv_ask_close(struct silt_priv_ask *a)
{
    if (a == NULL)
        return;
    if (a->watch.fd >= 0)
        silt_loop_forget(a->loop, &a->watch);
    silt_close_fd(&a->watch.fd);
    drop(a, &a->unsent);
    drop(a, &a->sent);
    free(a);
}

void silt_priv_ask_replace(struct silt_priv_ask *a, int fd)
{
    struct silt_error e;
    if (a->watch.fd >= 0)
        lose_channel(a);
    if (use_channel(a, fd, &e) == 0)
        send_unsent(a);
}

void silt_priv_ask(struct silt_priv_ask *a, const struct silt_priv_request *request, const int *fds, int nfds,
                   silt_priv_answered *on_answer, void *context)
{
    struct question *q = calloc(1, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct question){.ask = a,
                           .request = *request,
                           .nfds = nfds,
                           .on_answer = on_answer,
                           .context = context,
                           .deadline = {.on_time = on_deadline},
                           .grave = {.free = free_question}};
    q->request.seq = ++a->next_seq;
    for (int i = 0; i < nfds; i++)
        q->fds[i] = fds[i];
    silt_loop_after(a->loop, &q->deadline, DEADLINE_MS);
    bool first = silt_list_empty(&a->unsent);
    silt_list_append(&a->unsent, &q->link);
    if (first)
        send_unsent(a);
}
