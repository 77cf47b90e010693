/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/disk_pool.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *const names[SILT_POOL_STATE_MAX] = {
    [SILT_POOL_OK] = "ok",
    [SILT_POOL_LOW] = "low",
    [SILT_POOL_FULL] = "full",
    [SILT_POOL_FAILING] = "failing",
    [SILT_POOL_READ_ONLY] = "read_only",
    [SILT_POOL_SILENT] = "silent",
    [SILT_POOL_UNKNOWN] = "unknown",
};

void silt_disk_pool_init(struct silt_disk_pool *p, const char *run_dir)
{
    if (snprintf(p->path, sizeof(p->path), "%s/pool", run_dir) >= (int)sizeof(p->path))
        p->path[0] = 0;
}

static bool read_status(const struct silt_disk_pool *p, struct silt_pool_status *ret)
{
    silt_auto_fd fd = p->path[0] == 0 ? -1 : open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && read(fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret)
           && ret->magic == SILT_POOL_MAGIC && ret->state < SILT_POOL_SILENT;
}

void silt_disk_pool_look(const struct silt_disk_pool *p, struct silt_pool_status *ret)
{
    if (!read_status(p, ret)) {
        *ret = (struct silt_pool_status){.state = SILT_POOL_UNKNOWN};
        return;
    }
    int64_t age_ms = silt_clock_ms() - ret->at_ms;
    if (age_ms > (ret->busy != 0 ? SILT_POOL_BUSY_MS : SILT_POOL_SILENT_MS))
        ret->state = SILT_POOL_SILENT;
}

const char *silt_disk_pool_name(const struct silt_pool_status *s)
{
    return names[s->state];
}

bool silt_disk_pool_is_down(const struct silt_pool_status *s)
{
    return s->state == SILT_POOL_READ_ONLY || s->state == SILT_POOL_SILENT;
}

static const char *explain_full(const struct silt_pool_status *s)
{
    if (s->native != 0)
        return "The disk of the state directory is full up to its reserve: sandboxes cannot write. "
               "Remove sandboxes or images, "
               "or free room on the disk.";
    if (s->size + (64 << 20) >= s->max)
        return "The disk pool is full: sandboxes cannot write. Remove sandboxes or images that "
               "nobody needs, or raise disk.pool.";
    return "The disk pool is full, and the machine's disk has no room for it to grow: sandboxes "
           "cannot write. Remove sandboxes "
           "or images, or free room on the disk.";
}

void silt_disk_pool_explain(const struct silt_pool_status *s, char text[SILT_DISK_POOL_TEXT])
{
    const char *said = "";
    switch ((enum silt_pool_state)s->state) {
    case SILT_POOL_LOW:
        said = "The machine's disk is down to its reserve: the disk pool does not grow. Free room "
               "on the disk.";
        break;
    case SILT_POOL_FULL:
        said = explain_full(s);
        break;
    case SILT_POOL_FAILING:
        said = "The disk of the pool has reported errors. Look at the kernel's log and at the "
               "disk; afterwards "
               "`btrfs device stats -z` on the pool clears this.";
        break;
    case SILT_POOL_READ_ONLY:
        said = "The disk pool is read-only: files can be read, nothing can be written or started. "
               "Look at the kernel's log, make "
               "room on the disk, and restart the daemon; if it comes up read-only again, run "
               "`btrfs check` on the stopped pool.";
        break;
    case SILT_POOL_SILENT:
        said = "The disk pool does not answer. Look at the kernel's log and at the disk below it, "
               "and restart the daemon.";
        break;
    case SILT_POOL_OK:
    case SILT_POOL_UNKNOWN:
    case SILT_POOL_STATE_MAX:
        break;
    }
    (void)snprintf(text, SILT_DISK_POOL_TEXT, "%s", said);
}
