/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "sandbox/facets.h"
#include "wire/super.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct silt_image *harness_image(struct harness *h, const char *name, uint8_t byte)
{
    struct silt_error e;
    struct silt_image_row row = {.created_ms = 1, .config = strdup("{}")};
    memset(row.digest, byte, sizeof(row.digest));
    struct silt_image *i = silt_image_by_digest(&h->registry, row.digest);
    if (i == NULL && silt_image_new(&h->registry, &row, &i, &e) < 0)
        abort();
    else if (i != NULL && row.config != i->row.config)
        free(row.config);
    if (silt_image_tag(&h->registry, i, name, &e) < 0)
        abort();
    return i;
}

static void add_image(struct harness *h)
{
    harness_image(h, "base", 7);
}

static int open_registry(struct harness *h, const struct silt_registry_settings *settings)
{
    struct silt_error e;
    char path[128];
    int priv[2], super[2];
    (void)snprintf(path, sizeof(path), "%s/db", h->directory);
    if (silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, priv, &e) < 0
        || silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, super, &e) < 0)
        return -1;
    h->priv = priv[1];
    h->super = super[1];
    struct silt_registry *r = &h->registry;
    *r = (struct silt_registry){
        .loop = &h->loop, .super = super[0], .facets = &silt_facets, .settings = *settings};
    if (silt_store_open(path, &r->store, &e) < 0
        || silt_worker_open(&h->loop, 1, &r->worker, &e) < 0
        || silt_worker_open(&h->loop, 1, &r->parsers, &e) < 0
        || silt_priv_ask_open(&h->loop, priv[0], &r->priv, &e) < 0 || silt_registry_open(r, &e) < 0)
        return -1;
    add_image(h);
    return 0;
}

static void close_registry(struct harness *h)
{
    struct silt_registry *r = &h->registry;
    silt_registry_close(r);
    silt_priv_ask_close(r->priv);
    silt_worker_close(r->worker);
    silt_worker_close(r->parsers);
    silt_store_close(r->store);
    silt_close_fd(&h->priv);
    silt_close_fd(&h->super);
    silt_close_fd(&r->super);
}

int harness_open(struct harness *h)
{
    struct silt_error e;
    *h = (struct harness){.agent = -1, .log = -1, .kept = {-1, -1}};
    (void)snprintf(h->directory, sizeof(h->directory), "/tmp/silt-unit-XXXXXX");
    h->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct silt_registry_settings settings = {.slots = 16, .image = "base", .type = "standard-1"};
    if (mkdtemp(h->directory) == NULL || silt_loop_open(&h->loop, &e) < 0)
        return -1;
    if (open_registry(h, &settings) < 0)
        return -1;
    silt_registry_adopted_all(&h->registry);
    return 0;
}

int harness_restart(struct harness *h)
{
    struct silt_registry_settings settings = h->registry.settings;
    close_registry(h);
    if (open_registry(h, &settings) < 0)
        return -1;
    if (h->kept[0] >= 0)
        silt_registry_adopt(&h->registry, h->kept_key, silt_take_fd(&h->kept[0]),
                            silt_take_fd(&h->kept[1]));
    silt_registry_adopted_all(&h->registry);
    return 0;
}

struct last {
    struct silt_job job;
    bool over;
};

static void do_nothing(struct silt_job *j)
{
    (void)j;
}

static void on_last_done(struct silt_job *j)
{
    silt_outer(j, struct last, job)->over = true;
}

/* The one thread takes jobs in their order: behind ours none is left. */
static void finish_jobs(struct harness *h)
{
    struct last last = {.job = {.run = do_nothing, .done = on_last_done}};
    struct silt_error e;
    silt_worker_submit(h->registry.worker, &last.job);
    while (!last.over)
        if (silt_loop_turn(&h->loop, 1000, &e) < 0)
            abort();
}

void harness_close(struct harness *h)
{
    char path[128];
    finish_jobs(h);
    close_registry(h);
    silt_loop_close(&h->loop);
    silt_close_fd(&h->kept[0]);
    silt_close_fd(&h->kept[1]);
    silt_close_fd(&h->agent);
    silt_close_fd(&h->pidfd);
    silt_close_fd(&h->log);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"db", "db-wal", "db-shm"};
        (void)snprintf(path, sizeof(path), "%s/%s", h->directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(h->directory);
}

uint32_t harness_told_super(struct harness *h)
{
    struct silt_super_note note;
    struct silt_error e;
    struct silt_parcel p = {.data = &note, .len = sizeof(note)};
    harness_turn(h);
    if (silt_fd_recv(h->super, &p, &e) <= 0)
        return 0;
    for (int i = 0; note.type == SILT_SUPER_KEEP && i < 2; i++) {
        silt_close_fd(&h->kept[i]);
        h->kept[i] = silt_take_fd(&p.fds[i]);
        h->kept_key = note.key;
    }
    silt_parcel_close(&p);
    return note.type;
}

void harness_turn(struct harness *h)
{
    struct silt_error e;
    for (int i = 0; i < 20; i++)
        if (silt_loop_turn(&h->loop, 0, &e) < 0)
            abort();
}

bool harness_asked(struct harness *h, struct silt_priv_request *ret)
{
    struct silt_error e;
    struct silt_parcel p = {.data = ret, .len = sizeof(*ret)};
    harness_turn(h);
    if (silt_fd_recv(h->priv, &p, &e) <= 0)
        return false;
    if (ret->op == SILT_PRIV_RECORD) {
        silt_parcel_close(&p);
        h->recorded++;
        harness_answer(h, ret, true);
        return harness_asked(h, ret);
    }
    if (ret->op == SILT_PRIV_CREATE && p.nfds >= 1) {
        silt_close_fd(&h->agent);
        h->agent = silt_take_fd(&p.fds[0]);
        (void)silt_fd_nonblock(h->agent, &e);
    }
    silt_parcel_close(&p);
    return true;
}

/* One log for all: it is there again when it is asked for again. */
static int log_of(struct harness *h, const struct silt_priv_request *q)
{
    if (q->body.log.fresh || h->log < 0) {
        silt_close_fd(&h->log);
        /* Not in memory: that is read by a thread only. */
        h->log = open(h->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    return h->log;
}

void harness_answer(struct harness *h, const struct silt_priv_request *q, bool ok)
{
    struct silt_error e;
    struct silt_priv_answer a = {
        .seq = q->seq, .slot = q->slot, .ok = ok, .link = ok ? h->link : 0};
    struct silt_parcel p = {.data = &a, .len = sizeof(a)};
    if (!ok)
        (void)silt_fail(&a.body.error, SILT_NO_SPACE, "no room");
    else if (q->op == SILT_PRIV_NETSTAT)
        a.body.netstat.mode = h->mode;
    if (ok && (q->op == SILT_PRIV_CREATE || q->op == SILT_PRIV_LOG)) {
        p.fds[0] = q->op == SILT_PRIV_CREATE ? h->pidfd : log_of(h, q);
        p.nfds = 1;
    }
    for (; ok && q->op == SILT_PRIV_CAPTURE && p.nfds < 2 * SILT_CAPTIVE_SOCKET_MAX; p.nfds++)
        p.fds[p.nfds] = h->pidfd; /* any descriptor will do */
    if (silt_fd_send(h->priv, &p, &e) < 0)
        abort();
    harness_turn(h);
}

uint32_t harness_told(struct harness *h, struct harness_frame *ret)
{
    struct silt_error e;
    struct silt_parcel p = {.data = ret->bytes, .len = sizeof(ret->bytes)};
    harness_turn(h);
    if (silt_fd_recv(h->agent, &p, &e) <= 0)
        return 0;
    ret->len = p.len - sizeof(struct silt_frame);
    ret->fd = ret->frame.type == SILT_AGENT_WORKER && p.nfds > 0 ? silt_take_fd(&p.fds[0]) : -1;
    silt_parcel_close(&p);
    return ret->frame.type;
}

void harness_say(struct harness *h, uint32_t type, uint32_t flags, uint64_t id, const void *body,
                 size_t len)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } out;
    struct silt_error e;
    out.frame = (struct silt_frame){.type = type, .flags = flags, .id = id};
    if (len > 0)
        memcpy(out.frame.body, body, len);
    struct silt_parcel p = {.data = &out, .len = sizeof(struct silt_frame) + len};
    (void)silt_fd_send(h->agent, &p, &e);
    harness_turn(h);
}

void harness_welcome(struct harness *h)
{
    struct harness_frame f;
    if (harness_told(h, &f) != SILT_AGENT_HELLO)
        abort();
    harness_say(h, SILT_AGENT_WELCOME, 0, 0, f.frame.body, sizeof(uint64_t));
    harness_say(h, SILT_AGENT_READY, 0, 0, f.frame.body, sizeof(uint64_t));
}
