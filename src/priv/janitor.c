/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/janitor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/storage/image.h"
#include "engine/core/rlimit.h"
#include "engine/network/track.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

enum {
    RELEASE_MAX_MS = 2000,
    SWEEP_AFTER_MS = 50,
    HURRY_AFTER_MS = 1000,
    HURRIES = 20, /* checks of a full disk after a deletion */
    /* Roots are released together: each unmount writes the pool's dirty data to disk and makes
     * others wait for the commit; after the first one, little is left to write. */
    DROP_AFTER_MS = 2000,
    DROP_AT = 256, /* an ended sandbox's root still takes 50 KB */
    /* The kernel destroys a namespace some time after its last process. */
    TRACK_AFTER_MS = 1000,
    TRACK_ROUNDS = 3,
};

/* In a worker. */

void silt_janitor_tell(int channel, enum silt_janitor_type type, uint32_t slot, int fd)
{
    struct silt_janitor_note note = {.type = type, .slot = slot};
    struct silt_parcel out = {.data = &note, .len = sizeof(note), .fds = {fd}, .nfds = fd >= 0};
    struct silt_error e;
    if (silt_fd_send(channel, &out, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.gone", "error=\"%s\"", e.text);
}

void silt_janitor_await_release(int channel, uint32_t slot)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    silt_auto_fd ours = ends[0], theirs = ends[1];
    silt_janitor_tell(channel, SILT_JANITOR_RELEASE, slot, theirs);
    silt_close_fd(&theirs);
    struct pollfd p = {.fd = ours, .events = POLLIN};
    if (poll(&p, 1, RELEASE_MAX_MS) == 0)
        silt_log(SILT_LOG_WARN, "janitor.slow", "slot=%u waited_ms=%d", slot, RELEASE_MAX_MS);
}

/* The janitor. */

struct janitor {
    int channel;
    const struct silt_volumes *volumes;
    int images;
    int *held; /* by slot, -1: none */
    uint32_t slots;
    int dropped[DROP_AT]; /* roots to release */
    uint32_t ndropped;
    int64_t drop_at_ms; /* 0: nothing to drop */
    int hurries;
    int64_t sweep_at_ms; /* 0: nothing to sweep */
    struct silt_track track;
    int64_t track_at_ms; /* 0: no sandbox has ended recently */
    int track_rounds;
};

static void drop_all(struct janitor *j)
{
    for (; j->ndropped > 0; j->ndropped--)
        silt_close_fd(&j->dropped[j->ndropped - 1]);
    j->drop_at_ms = 0;
}

static void put_off(struct janitor *j, uint32_t slot)
{
    if (j->held[slot] < 0)
        return;
    j->dropped[j->ndropped++] = silt_take_fd(&j->held[slot]);
    if (j->drop_at_ms == 0)
        j->drop_at_ms = silt_clock_ms() + DROP_AFTER_MS;
    if (j->ndropped == DROP_AT)
        drop_all(j);
}

static void sweep(struct janitor *j)
{
    struct silt_error e;
    if (silt_volumes_empty_trash(j->volumes, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.trash", "error=\"%s\"", e.text);
    if (silt_images_empty_trash(j->images, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.trash", "error=\"%s\"", e.text);
    j->sweep_at_ms = 0;
    if (j->hurries > 0 && silt_volumes_hurry(j->volumes)) {
        j->hurries--;
        j->sweep_at_ms = silt_clock_ms() + HURRY_AFTER_MS;
    }
}

/* The interval doubles after each round. */
static void forget_connections(struct janitor *j)
{
    uint32_t dropped = silt_track_sweep(&j->track);
    if (dropped > 0)
        silt_log(SILT_LOG_DEBUG, "janitor.connections", "dropped=%u", dropped);
    j->track_rounds--;
    j->track_at_ms = j->track_rounds == 0
                         ? 0
                         : silt_clock_ms() + (TRACK_AFTER_MS << (TRACK_ROUNDS - j->track_rounds));
}

static void note_end(struct janitor *j)
{
    if (j->track_at_ms == 0)
        j->track_at_ms = silt_clock_ms() + TRACK_AFTER_MS;
    j->track_rounds = TRACK_ROUNDS;
}

static void obey(struct janitor *j, const struct silt_janitor_note *note, struct silt_parcel *in)
{
    if (note->slot >= j->slots)
        return;
    switch ((enum silt_janitor_type)note->type) {
    case SILT_JANITOR_KEEP:
        put_off(j, note->slot);
        if (in->nfds == 1)
            j->held[note->slot] = silt_take_fd(&in->fds[0]);
        return;
    case SILT_JANITOR_DROP:
        put_off(j, note->slot);
        note_end(j);
        return;
    case SILT_JANITOR_RELEASE:
        silt_close_fd(&j->held[note->slot]);
        drop_all(j); /* the root may be among them */
        return;
    case SILT_JANITOR_SWEEP:
        j->hurries = HURRIES;
        if (j->sweep_at_ms == 0)
            j->sweep_at_ms = silt_clock_ms() + SWEEP_AFTER_MS;
        return;
    }
}

/* Does what is due. Deletes files first: an unmount need not write deleted data to disk. */
static void work(struct janitor *j)
{
    int64_t now = silt_clock_ms();
    if (j->sweep_at_ms != 0 && j->sweep_at_ms <= now)
        sweep(j);
    if (j->drop_at_ms != 0 && j->drop_at_ms <= now)
        drop_all(j);
    if (j->track_at_ms != 0 && j->track_at_ms <= now)
        forget_connections(j);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int wait_ms(const struct janitor *j)
{
    int64_t at = sooner(sooner(j->sweep_at_ms, j->drop_at_ms), j->track_at_ms);
    if (at == 0)
        return -1;
    int64_t left = at - silt_clock_ms();
    return left > 0 ? (int)left : 0;
}

static bool has_note(const struct janitor *j)
{
    struct pollfd p = {.fd = j->channel, .events = POLLIN};
    return poll(&p, 1, wait_ms(j)) > 0;
}

static void serve(struct janitor *j)
{
    for (;;) {
        struct silt_janitor_note note;
        struct silt_parcel in = {.data = &note, .len = sizeof(note)};
        struct silt_error e;
        work(j);
        if (!has_note(j))
            continue;
        int got = silt_fd_recv(j->channel, &in, &e);
        if (got == 0)
            return;
        if (got < 0) {
            silt_log(SILT_LOG_WARN, "janitor.receive", "error=\"%s\"", e.text);
            if (e.code != SILT_PROTOCOL)
                return;
            continue;
        }
        if (in.len == sizeof(note))
            obey(j, &note, &in);
        silt_parcel_close(&in);
    }
}

void silt_janitor_run(int channel, const struct silt_janitor_place *place)
{
    static struct janitor j;
    struct silt_error e;
    j = (struct janitor){.channel = channel,
                         .volumes = place->volumes,
                         .images = place->images,
                         .slots = place->slots};
    j.held = malloc(j.slots * sizeof(int));
    if (j.held == NULL)
        abort();
    for (uint32_t i = 0; i < j.slots; i++)
        j.held[i] = -1;
    if (silt_track_open(&j.track, place->gate, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.track", "error=\"%s\"", e.text);
    note_end(&j); /* an earlier janitor may have died with this still to do */
    silt_rlimit_many_files();
    sweep(&j); /* what an earlier janitor left */
    serve(&j);
    sweep(&j);
    drop_all(&j);
    free(j.held);
}
