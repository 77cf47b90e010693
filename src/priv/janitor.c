/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/janitor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/image.h"
#include "engine/rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

enum {
    RELEASE_MAX_MS = 2000,
    GATHER_MS = 50,      /* ends that come together are unmounted together: one write-out for all */
    GATHER_MAX_MS = 500, /* and no longer, even if there is no pause */
};

/* In a worker */

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

/* The janitor */

struct janitor {
    int channel;
    const struct silt_volumes *volumes;
    int images;
    int *held; /* by slot, -1: none */
    uint32_t slots;
    int *dropped; /* roots to let go of, as room for all slots */
    uint32_t ndropped;
    bool sweeps;
    int64_t since_ms; /* of the first thing to do; 0: nothing to do */
};

static void put_off(struct janitor *j, uint32_t slot)
{
    if (j->held[slot] < 0)
        return;
    if (j->ndropped < j->slots)
        j->dropped[j->ndropped++] = silt_take_fd(&j->held[slot]);
    else
        silt_close_fd(&j->held[slot]);
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
        break;
    case SILT_JANITOR_RELEASE:
        silt_close_fd(&j->held[note->slot]);
        for (; j->ndropped > 0; j->ndropped--) /* its root may be among them */
            silt_close_fd(&j->dropped[j->ndropped - 1]);
        return;
    case SILT_JANITOR_SWEEP:
        j->sweeps = true;
        break;
    }
    if (j->since_ms == 0)
        j->since_ms = silt_clock_ms();
}

/* First the files, then the roots: what is deleted needs not be written to the disk by the unmount.
 */
static void clean(struct janitor *j)
{
    struct silt_error e;
    if (j->sweeps && silt_volumes_empty_trash(j->volumes, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.trash", "error=\"%s\"", e.text);
    if (j->sweeps && silt_images_empty_trash(j->images, &e) < 0)
        silt_log(SILT_LOG_WARN, "janitor.trash", "error=\"%s\"", e.text);
    for (; j->ndropped > 0; j->ndropped--)
        silt_close_fd(&j->dropped[j->ndropped - 1]);
    j->sweeps = false;
    j->since_ms = 0;
}

/* True when a note is there, false when it is time to clean. */
static bool await_note(const struct janitor *j)
{
    if (j->since_ms == 0)
        return true; /* nothing to do: the receive itself may wait */
    if (silt_clock_ms() - j->since_ms > GATHER_MAX_MS)
        return false;
    struct pollfd p = {.fd = j->channel, .events = POLLIN};
    return poll(&p, 1, GATHER_MS) != 0;
}

static void serve(struct janitor *j)
{
    for (;;) {
        struct silt_janitor_note note;
        struct silt_parcel in = {.data = &note, .len = sizeof(note)};
        struct silt_error e;
        if (!await_note(j)) {
            clean(j);
            continue;
        }
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

void silt_janitor_run(int channel, const struct silt_volumes *volumes, int images, uint32_t slots)
{
    struct janitor j = {.channel = channel,
                        .volumes = volumes,
                        .images = images,
                        .slots = slots,
                        .sweeps = true,
                        .since_ms = silt_clock_ms()};
    j.held = malloc(slots * sizeof(int));
    j.dropped = malloc(slots * sizeof(int));
    if (j.held == NULL || j.dropped == NULL)
        abort();
    for (uint32_t i = 0; i < slots; i++)
        j.held[i] = -1;
    silt_rlimit_many_files();
    serve(&j);
    clean(&j);
    free(j.held);
    free(j.dropped);
}
