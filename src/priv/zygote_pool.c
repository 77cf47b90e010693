/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/zygote_pool.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/core/caps.h"
#include "engine/storage/image.h"
#include "engine/storage/trust.h"
#include "engine/launch/zygote.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    WARM_MS = 60000,  /* limit for a new one to get warm */
    AGAIN_MS = 60000, /* after one that did not get warm */
    LIFE_MS = 6 * 60 * 60 * 1000,
};

/* The only function that assigns the state. */
static void enter(struct silt_zygote *z, enum silt_zygote_state next)
{
    z->state = next;
    z->since_ms = silt_clock_ms();
}

void silt_zygote_end(struct silt_zygote *z, enum silt_zygote_state next)
{
    silt_close_fd(&z->control);
    if (z->pid > 0) {
        (void)kill(z->pid, SIGKILL);
        (void)waitpid(z->pid, NULL, 0);
    }
    z->pid = 0;
    enter(z, next);
}

static int open_zygote(struct silt_zygote_pool *b, struct silt_zygote *z, struct silt_error *e)
{
    silt_auto_fd image = -1;
    int pair[2];
    if (silt_trust_open(b->place->images, z->digest, &image, e) < 0
        || silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    struct silt_parcel birth = {.data = &b->birth, .len = sizeof(b->birth)};
    if (silt_fd_send(ours, &birth, e) < 0 || silt_zygote_start(image, theirs, &z->pid, e) < 0)
        return -1;
    z->control = silt_take_fd(&ours);
    return 0;
}

static void start(struct silt_zygote_pool *b, struct silt_zygote *z,
                  const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_error e;
    memmove(z->digest, digest, SILT_DIGEST_SIZE);
    z->used_ms = silt_clock_ms();
    z->forks = 0;
    if (open_zygote(b, z, &e) == 0) {
        enter(z, SILT_ZYGOTE_WARMING);
        return;
    }
    silt_log(SILT_LOG_WARN, "zygote_parent.start", "error=\"%s\"", e.text);
    enter(z, SILT_ZYGOTE_BROKEN);
}

static bool is_of(const struct silt_zygote *z, const uint8_t digest[SILT_DIGEST_SIZE])
{
    return z->state != SILT_ZYGOTE_NONE && memcmp(z->digest, digest, SILT_DIGEST_SIZE) == 0;
}

/* Prefers the warm one of two. */
static struct silt_zygote *find(struct silt_zygote_pool *b, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_zygote *found = NULL;
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++) {
        struct silt_zygote *z = &b->items[i];
        if (is_of(z, digest) && (found == NULL || z->state == SILT_ZYGOTE_WARM))
            found = z;
    }
    return found;
}

static uint32_t count(const struct silt_zygote_pool *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        n += b->items[i].state != SILT_ZYGOTE_NONE;
    return n;
}

static struct silt_zygote *free_place(struct silt_zygote_pool *b)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        if (b->items[i].state == SILT_ZYGOTE_NONE)
            return &b->items[i];
    return NULL;
}

/* A free place, or the least recently used one. */
static struct silt_zygote *make_place(struct silt_zygote_pool *b)
{
    struct silt_zygote *oldest = NULL;
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++) {
        struct silt_zygote *z = &b->items[i];
        if (z->state != SILT_ZYGOTE_NONE && (oldest == NULL || z->used_ms < oldest->used_ms))
            oldest = z;
    }
    if (count(b) >= b->wanted && oldest != NULL)
        silt_zygote_end(oldest, SILT_ZYGOTE_NONE);
    return free_place(b);
}

static bool has_successor(const struct silt_zygote_pool *b, const struct silt_zygote *z)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        if (&b->items[i] != z && is_of(&b->items[i], z->digest))
            return true;
    return false;
}

/* Its contexts know each other's addresses, and the package files it read may be outdated. */
static void renew(struct silt_zygote_pool *b, struct silt_zygote *z)
{
    bool old = z->forks >= b->place->renew || silt_clock_ms() - z->since_ms > LIFE_MS;
    struct silt_zygote *next =
        old && count(b) <= b->wanted && !has_successor(b, z) ? free_place(b) : NULL;
    if (next != NULL)
        start(b, next, z->digest);
}

struct silt_zygote *silt_zygote_pool_get(struct silt_zygote_pool *b,
                                         const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_zygote *z = find(b, digest);
    if (z == NULL && (z = make_place(b)) != NULL)
        start(b, z, digest);
    else if (z != NULL && z->state == SILT_ZYGOTE_BROKEN
             && silt_clock_ms() - z->since_ms > AGAIN_MS)
        start(b, z, digest);
    if (z == NULL || z->state != SILT_ZYGOTE_WARM)
        return NULL;
    z->used_ms = silt_clock_ms();
    z->forks++;
    renew(b, z);
    return z;
}

/* Before the first request. */
static void warm_all(struct silt_zygote_pool *b)
{
    uint8_t trusted[SILT_ZYGOTE_POOL_MAX][SILT_DIGEST_SIZE];
    size_t n = silt_trust_list(b->place->images, trusted, SILT_ZYGOTE_POOL_MAX);
    for (size_t i = 0; i < n && count(b) < b->wanted; i++)
        if (find(b, trusted[i]) == NULL)
            start(b, free_place(b), trusted[i]);
}

static void on_warm(struct silt_zygote_pool *b, struct silt_zygote *z)
{
    char image[SILT_IMAGE_NAME_SIZE];
    silt_image_name(z->digest, image);
    silt_log(SILT_LOG_INFO, "zygote.warm", "image=%.12s pid=%d ms=%lld", image, (int)z->pid,
             (long long)(silt_clock_ms() - z->since_ms));
    enter(z, SILT_ZYGOTE_WARM);
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        if (&b->items[i] != z && is_of(&b->items[i], z->digest))
            silt_zygote_end(&b->items[i], SILT_ZYGOTE_NONE);
}

/* Called for its timeout, end-of-file or death, whichever comes first. */
static void lose(struct silt_zygote_pool *b, struct silt_zygote *z)
{
    char image[SILT_IMAGE_NAME_SIZE];
    silt_image_name(z->digest, image);
    silt_log(SILT_LOG_WARN, "zygote.lost", "image=%.12s warm=%d", image,
             z->state == SILT_ZYGOTE_WARM);
    bool was_warm = z->state == SILT_ZYGOTE_WARM || has_successor(b, z);
    silt_zygote_end(z, was_warm ? SILT_ZYGOTE_NONE : SILT_ZYGOTE_BROKEN);
}

static void on_said(struct silt_zygote_pool *b, struct silt_zygote *z)
{
    struct silt_zygote_answer said;
    struct silt_parcel in = {.data = &said, .len = sizeof(said)};
    struct silt_error e;
    int got = silt_fd_recv(z->control, &in, &e);
    bool warm = got > 0 && in.len == sizeof(said) && said.pid == 0 && said.error == 0
                && z->state == SILT_ZYGOTE_WARMING;
    silt_parcel_close(&in);
    if (warm)
        on_warm(b, z);
    else
        lose(b, z);
}

static void on_trusted(struct silt_zygote_pool *b)
{
    _Alignas(struct inotify_event) char events[4096];
    while (read(b->watch, events, sizeof(events)) > 0)
        ;
    warm_all(b);
}

void silt_zygote_pool_watch(const struct silt_zygote_pool *b, struct pollfd *ret)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        ret[i] = (struct pollfd){.fd = b->items[i].control, .events = POLLIN};
    ret[SILT_ZYGOTE_POOL_PLACES] = (struct pollfd){.fd = b->watch, .events = POLLIN};
}

void silt_zygote_pool_on_ready(struct silt_zygote_pool *b, const struct pollfd *ready)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++) {
        struct silt_zygote *z = &b->items[i];
        if (ready[i].revents != 0 && z->control >= 0 && z->control == ready[i].fd)
            on_said(b, z);
        if (z->state == SILT_ZYGOTE_WARMING && silt_clock_ms() - z->since_ms > WARM_MS)
            lose(b, z);
    }
    if (ready[SILT_ZYGOTE_POOL_PLACES].revents != 0)
        on_trusted(b);
}

bool silt_zygote_pool_on_died(struct silt_zygote_pool *b, pid_t pid, int status)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++) {
        struct silt_zygote *z = &b->items[i];
        if (z->pid != pid)
            continue;
        silt_log(SILT_LOG_WARN, "zygote.died", "status=0x%x", (unsigned)status);
        z->pid = 0;
        lose(b, z);
        return true;
    }
    return false;
}

static int write_birth(struct silt_zygote_pool *b, struct silt_error *e)
{
    const struct sock_fprog *p = &b->place->seccomp->program;
    if (p->len > SILT_ZYGOTE_FILTER_MAX)
        return silt_fail(e, SILT_LIMIT, "filter of %u instructions", p->len);
    b->birth = (struct silt_zygote_birth){.caps = silt_caps_sandbox, .filter_len = p->len};
    memcpy(b->birth.filter, p->filter, p->len * sizeof(*p->filter));
    return 0;
}

/* Without it, a new image is warmed on first use. */
static int watch_images(int images)
{
    char path[32];
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", images);
    if (watch >= 0 && inotify_add_watch(watch, path, IN_MOVED_TO | IN_ONLYDIR) < 0)
        silt_close_fd(&watch);
    return watch;
}

int silt_zygote_pool_open(struct silt_zygote_pool *b, const struct silt_zygote_parent_place *place,
                          struct silt_error *e)
{
    b->place = place;
    b->wanted = place->zygotes < SILT_ZYGOTE_POOL_MAX ? place->zygotes : SILT_ZYGOTE_POOL_MAX;
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        b->items[i] = (struct silt_zygote){.control = -1};
    b->watch = watch_images(place->images);
    if (write_birth(b, e) < 0)
        return -1;
    warm_all(b);
    return 0;
}

void silt_zygote_pool_close(struct silt_zygote_pool *b)
{
    for (uint32_t i = 0; i < SILT_ZYGOTE_POOL_PLACES; i++)
        silt_zygote_end(&b->items[i], SILT_ZYGOTE_NONE);
    silt_close_fd(&b->watch);
}
