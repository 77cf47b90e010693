/* SPDX-License-Identifier: Apache-2.0 */
/* super: notes to silt-super, which reads quickly and answers none of them. While its socket is
 * full, notes are queued in order: a sandbox or port that silt-super does not know would be lost at
 * the next restart of siltd. */
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/registry.h"
#include "wire/super.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 5, UNSENT_MAX = 16384 };

struct unsent {
    struct silt_link link;
    struct silt_super_note note;
    int fds[SILT_FDS_MAX];
    int nfds;
};

static void free_unsent(struct silt_registry *r, struct unsent *u)
{
    silt_list_remove(&u->link);
    r->notes.count--;
    for (int i = 0; i < u->nfds; i++)
        silt_close_fd(&u->fds[i]);
    free(u);
}

static int send_note(struct silt_registry *r, const struct silt_super_note *said, const int *fds,
                     int nfds, struct silt_error *e)
{
    struct silt_super_note note = *said;
    struct silt_parcel p = {.data = &note, .len = sizeof(note), .nfds = nfds};
    if (nfds > 0)
        memcpy(p.fds, fds, sizeof(int) * (size_t)nfds);
    return silt_fd_send(r->super, &p, e);
}

static void complain(const struct silt_super_note *note, const struct silt_error *e)
{
    silt_log(SILT_LOG_ERROR, "super.tell", "type=%u key=%u error=\"%s\"", note->type, note->key,
             e->text);
}

static void on_retry(struct silt_timer *t)
{
    struct silt_registry *r = silt_outer(t, struct silt_registry, notes.retry);
    struct silt_error e;
    while (!silt_list_empty(&r->notes.unsent)) {
        struct unsent *u = silt_list_first(&r->notes.unsent, struct unsent, link);
        int sent = send_note(r, &u->note, u->fds, u->nfds, &e);
        if (sent < 0 && e.sys == EAGAIN) {
            silt_loop_after(r->loop, t, RETRY_MS);
            return;
        }
        if (sent < 0)
            complain(&u->note, &e);
        free_unsent(r, u);
    }
}

static int keep(struct silt_registry *r, const struct silt_super_note *note, const int *fds,
                int nfds, struct silt_error *e)
{
    if (r->notes.count >= UNSENT_MAX)
        return silt_fail(e, SILT_LIMIT, "%d notes wait already", UNSENT_MAX);
    struct unsent *u = calloc(1, sizeof(*u));
    if (u == NULL)
        abort();
    u->note = *note;
    silt_list_append(&r->notes.unsent, &u->link);
    r->notes.count++;
    for (; u->nfds < nfds; u->nfds++) {
        u->fds[u->nfds] = fcntl(fds[u->nfds], F_DUPFD_CLOEXEC, 0);
        if (u->fds[u->nfds] < 0) {
            (void)silt_fail_errno(e, "keep a descriptor for silt-super");
            free_unsent(r, u);
            return -1;
        }
    }
    silt_loop_after(r->loop, &r->notes.retry, RETRY_MS);
    return 0;
}

int silt_registry_tell_super(struct silt_registry *r, const struct silt_super_note *note,
                             const int *fds, int nfds)
{
    struct silt_error e = {.sys = EAGAIN};
    bool waiting = !silt_list_empty(&r->notes.unsent);
    if (!waiting && send_note(r, note, fds, nfds, &e) == 0)
        return 0;
    if (e.sys == EAGAIN && keep(r, note, fds, nfds, &e) == 0)
        return 0;
    complain(note, &e);
    return -1;
}

void silt_super_notes_init(struct silt_super_notes *n)
{
    *n = (struct silt_super_notes){.retry = {.on_time = on_retry}};
    silt_list_init(&n->unsent);
}

void silt_super_notes_forget(struct silt_registry *r)
{
    silt_loop_cancel(r->loop, &r->notes.retry);
    while (!silt_list_empty(&r->notes.unsent))
        free_unsent(r, silt_list_first(&r->notes.unsent, struct unsent, link));
}
