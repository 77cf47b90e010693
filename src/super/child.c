/* SPDX-License-Identifier: Apache-2.0 */
#include "super/child.h"
#include "base/fd.h"
#include "base/log.h"
#include "super/listen.h"
#include "super/patience.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

/* Messages to the programs. */

/* false: the channel is full. A channel whose peer is gone accepts everything: its end will be
 * noticed soon. */
static bool tell(struct silt_child *p, const struct silt_super_note *said,
                 const struct silt_parcel *fds)
{
    struct silt_super_note note = *said;
    struct silt_parcel parcel = fds != NULL ? *fds : (struct silt_parcel){0};
    struct silt_error e;
    parcel.data = &note;
    parcel.len = sizeof(note);
    return silt_fd_send(p->channel, &parcel, &e) == 0 || e.sys != EAGAIN;
}

/* Sends one message, chosen by next_kept and next_context. */
static bool tell_one_kept(struct silt_super *s, struct silt_child *siltd)
{
    const struct silt_kept *k = &s->keep.items[s->next_kept];
    struct silt_super_note note = {.type = SILT_SUPER_KEPT, .key = s->next_kept};
    struct silt_parcel fds = {.fds = {k->channel, k->pidfd}, .nfds = 2};
    if (s->next_context > 0) {
        const struct silt_kept_context *c = &k->contexts[s->next_context - 1];
        note.number = c->number;
        fds.nfds = SILT_SUPER_CONTEXT_FDS;
        memcpy(fds.fds, c->fds, sizeof(c->fds));
    }
    return tell(siltd, &note, &fds);
}

static bool tell_listeners(struct silt_super *s, struct silt_child *siltd)
{
    for (; s->next_listener < s->keep.listener_count; s->next_listener++) {
        const struct silt_kept_listener *l = &s->keep.listeners[s->next_listener];
        struct silt_super_note note = {.type = SILT_SUPER_LISTENER, .number = l->number};
        struct silt_parcel fds = {.fds = {l->fd}, .nfds = 1};
        if (!tell(siltd, &note, &fds))
            return false;
    }
    return true;
}

static bool tell_kept(struct silt_super *s, struct silt_child *siltd)
{
    const struct silt_super_note all = {.type = SILT_SUPER_KEPT_ALL};
    if (s->next_kept <= s->keep.count && !tell_listeners(s, siltd))
        return false;
    for (; s->next_kept < s->keep.count; s->next_kept++, s->next_context = 0) {
        const struct silt_kept *k = &s->keep.items[s->next_kept];
        for (; k->channel >= 0 && s->next_context <= k->context_count; s->next_context++)
            if (!tell_one_kept(s, siltd))
                return false;
    }
    if (s->next_kept == s->keep.count) {
        if (!tell(siltd, &all, NULL))
            return false;
        s->next_kept++;
    }
    return true;
}

static bool tell_peers(struct silt_child *p)
{
    for (uint32_t pair = 0; pair < SILT_SUPER_PAIR_MAX; pair++) {
        const struct silt_super_note peer = {.type = SILT_SUPER_PEER, .key = pair};
        struct silt_parcel fds = {.fds = {p->ends[pair]}, .nfds = 1};
        if (p->ends[pair] < 0)
            continue;
        if (!tell(p, &peer, &fds))
            return false;
        silt_close_fd(&p->ends[pair]);
    }
    return true;
}

/* Without descriptors: the files could not be opened. */
static bool tell_certificate(struct silt_child *p)
{
    const struct silt_super_note note = {.type = SILT_SUPER_CERTIFICATE};
    struct silt_certificate *c = &p->super->certificate;
    struct silt_parcel fds = {0};
    if (p->which != SILT_PROGRAM_PREVIEW || !c->due)
        return true;
    if (silt_certificate_take(c, fds.fds))
        fds.nfds = SILT_CERTIFICATE_FILES;
    c->due = !tell(p, &note, &fds);
    silt_parcel_close(&fds);
    return !c->due;
}

/* Sends what is queued. Nothing is read before everything is sent: what siltd stores anew must not
 * mix with what it is being sent. */
void silt_child_pump(struct silt_child *p)
{
    if (p->channel < 0)
        return;
    bool said = p->which != SILT_PROGRAM_SILTD || tell_kept(p->super, p);
    said = said && tell_peers(p) && tell_certificate(p);
    silt_loop_watch(&p->super->loop, &p->watch, said ? EPOLLIN : EPOLLOUT);
}

/* Messages from siltd, which faces the network: every number is checked. */

static void on_keep(struct silt_super *s, uint32_t key, struct silt_parcel *fds)
{
    if (key >= s->keep.count || fds->nfds != 2) {
        silt_log(SILT_LOG_WARN, "keep.refused", "key=%u descriptors=%d", key, fds->nfds);
        return;
    }
    silt_fd_store_put(&s->keep, key, silt_take_fd(&fds->fds[0]), silt_take_fd(&fds->fds[1]));
}

static void on_keep_context(struct silt_super *s, const struct silt_super_note *note,
                            struct silt_parcel *fds)
{
    struct silt_kept_context c = {.number = note->number};
    memcpy(c.fds, fds->fds, sizeof(c.fds));
    if (note->key >= s->keep.count || fds->nfds != SILT_SUPER_CONTEXT_FDS
        || !silt_fd_store_put_context(&s->keep, note->key, &c)) {
        silt_log(SILT_LOG_WARN, "keep.refused", "key=%u number=%llu descriptors=%d", note->key,
                 (unsigned long long)note->number, fds->nfds);
        return;
    }
    fds->nfds = 0;
}

static void on_drop(struct silt_super *s, const struct silt_super_note *note)
{
    if (note->key >= s->keep.count)
        return;
    if (note->number != 0)
        silt_fd_store_drop_context(&s->keep, note->key, note->number);
    else
        silt_fd_store_drop(&s->keep, note->key);
}

/* If siltd's channel is full, the response is lost: it sends few such requests. */
static void on_listen(struct silt_super *s, const struct silt_super_note *asked)
{
    struct silt_super_note note = {
        .type = SILT_SUPER_LISTENER, .key = asked->key, .number = asked->number};
    struct silt_parcel fds = {.nfds = 0};
    struct silt_error e;
    silt_auto_fd fd = -1;
    if (silt_listen_loopback(asked->port, &fd, &e) < 0)
        silt_log(SILT_LOG_WARN, "listen.refused", "error=\"%s\"", e.text);
    else if (!silt_fd_store_put_listener(&s->keep, asked->number, fd))
        silt_log(SILT_LOG_WARN, "listen.refused", "number=%llu", (unsigned long long)asked->number);
    else
        fds = (struct silt_parcel){.fds = {silt_take_fd(&fd)}, .nfds = 1};
    s->next_listener = s->keep.listener_count;
    (void)tell(&s->programs[SILT_PROGRAM_SILTD], &note, &fds);
}

/* A client's connection: the client waits for a response, which the next siltd gives. */
static void on_keep_connection(struct silt_super *s, uint64_t number, struct silt_parcel *fds)
{
    silt_fd_store_drop_listener(&s->keep, number);
    if (fds->nfds == 1 && silt_fd_store_put_listener(&s->keep, number, fds->fds[0]))
        fds->nfds = 0;
    else
        silt_log(SILT_LOG_WARN, "keep.refused", "number=%llu", (unsigned long long)number);
    s->next_listener = s->keep.listener_count;
}

static void on_note(struct silt_super *s, const struct silt_super_note *note,
                    struct silt_parcel *fds)
{
    switch ((enum silt_super_message)note->type) {
    case SILT_SUPER_KEEP:
        if (note->number != 0)
            on_keep_context(s, note, fds);
        else
            on_keep(s, note->key, fds);
        return;
    case SILT_SUPER_DROP:
        on_drop(s, note);
        return;
    case SILT_SUPER_READY:
        silt_super_on_ready(s);
        return;
    case SILT_SUPER_LISTEN:
        if (fds->nfds > 0)
            on_keep_connection(s, note->number, fds);
        else
            on_listen(s, note);
        return;
    case SILT_SUPER_UNLISTEN:
        silt_fd_store_drop_listener(&s->keep, note->number);
        return;
    case SILT_SUPER_LISTENER:
    case SILT_SUPER_KEPT:
    case SILT_SUPER_KEPT_ALL:
    case SILT_SUPER_PEER:
    case SILT_SUPER_CERTIFICATE:
    case SILT_SUPER_MESSAGE_MAX:
        break;
    }
    silt_log(SILT_LOG_WARN, "note.refused", "type=%u", note->type);
}

/* Closes the channel and everything queued in it: a dead siltd may have sent more than we read. */
void silt_child_hang_up(struct silt_child *p)
{
    silt_loop_forget(&p->super->loop, &p->watch);
    silt_patience_begin();
    silt_close_fd(&p->channel);
    silt_patience_end();
}

/* Its pid is valid until we reap it. A signal to pid 0 would hit ourselves. */
void silt_child_signal(const struct silt_child *p, int signo)
{
    if (p->pid > 0)
        (void)kill(p->pid, signo);
}

/* It is dying, and we will be notified, or it misbehaves. */
static void on_channel_lost(struct silt_child *p)
{
    silt_child_hang_up(p);
    if (p->super->state <= SILT_INSTANCE_SERVING)
        silt_child_signal(p, SIGKILL);
}

static void hear(struct silt_child *p)
{
    union {
        struct silt_super_note note;
        struct silt_super_told told;
    } said;
    struct silt_parcel in = {.data = &said, .len = sizeof(said)};
    struct silt_error e;
    int got = silt_fd_recv(p->channel, &in, &e);
    /* SILT_PROTOCOL also if RLIMIT_NOFILE does not allow more descriptors. */
    if (got < 0 && e.code == SILT_PROTOCOL)
        silt_log(SILT_LOG_WARN, "note.refused", "error=\"%s\"", e.text);
    else if (got == 0 || (got < 0 && e.sys != EAGAIN))
        on_channel_lost(p);
    else if (got > 0 && in.len == sizeof(said.note) && p->which == SILT_PROGRAM_SILTD)
        on_note(p->super, &said.note, &in);
    else if (got > 0 && in.len == sizeof(said.told) && p->which == SILT_PROGRAM_PREVIEW
             && said.told.type == SILT_SUPER_CERTIFICATE)
        silt_certificate_told(&p->super->certificate, &said.told);
    silt_parcel_close(&in);
}

void silt_child_drain(struct silt_child *p)
{
    struct pollfd ready = {.fd = p->channel, .events = POLLIN};
    silt_patience_begin();
    while (p->channel >= 0 && poll(&ready, 1, 0) > 0)
        hear(p);
    silt_patience_end();
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_child *p = silt_outer(w, struct silt_child, watch);
    if ((events & EPOLLIN) != 0) {
        silt_patience_begin();
        hear(p);
        silt_patience_end();
    } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        on_channel_lost(p);
    } else {
        silt_child_pump(p);
    }
}

void silt_child_greet(struct silt_child *p)
{
    p->watch = (struct silt_watch){.fd = p->channel, .on_ready = on_channel};
    if (p->which == SILT_PROGRAM_SILTD)
        p->super->next_kept = p->super->next_context = p->super->next_listener = 0;
    if (p->which == SILT_PROGRAM_PREVIEW)
        silt_certificate_renew(&p->super->certificate);
    silt_child_pump(p);
}
