/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/copy.h"
#include "base/own.h"
#include "engine/core/remove.h"
#include "engine/storage/layer.h"
#include "engine/storage/shift.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define NEW ".new-"

enum { NAME_SIZE = 24 };

/* The snapshot is made under a name that no sandbox has, and gets the slot's when it is whole. */
static int furnish(const struct silt_volumes *v, const struct silt_copy *c, int volume,
                   struct silt_error *e)
{
    uint32_t writer;
    if (silt_layer_writer(volume, &writer, e) < 0)
        return -1;
    if (unlinkat(volume, "note", 0) < 0 || fchmod(volume, 0700) < 0
        || mkdirat(volume, "work", 0700) < 0 || mkdirat(volume, "state", 0700) < 0)
        return silt_fail_errno(e, "make the volume's directories");
    silt_auto_fd upper = openat(volume, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper < 0)
        return silt_fail_errno(e, "open the copy of a layer");
    if (writer != c->ids && silt_shift(upper, writer, c->ids, e) < 0)
        return -1;
    return silt_volume_limit(v, volume, c->disk_bytes, e);
}

static int fill(const struct silt_volumes *v, const struct silt_copy *c, const char *name,
                struct silt_error *e)
{
    if (silt_remove(v->slots, name, e) < 0 /* left by a silt-priv that was killed */
        || silt_layer_copy(v, c->digest, v->slots, name, e) < 0)
        return -1;
    silt_auto_fd volume = openat(v->slots, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (volume < 0)
        return silt_fail_errno(e, "open the copy of a layer");
    return furnish(v, c, volume, e);
}

int silt_copy_make(const struct silt_volumes *v, const struct silt_copy *c, struct silt_error *e)
{
    char name[NAME_SIZE], *to = name + sizeof(NEW) - 1;
    struct silt_error ignored;
    (void)snprintf(name, sizeof(name), NEW "%u", c->slot);
    int done = fill(v, c, name, e);
    if (done == 0 && renameat2(v->slots, name, v->slots, to, RENAME_NOREPLACE) < 0)
        done = silt_fail_errno(e, "publish the copy of a layer");
    if (done < 0)
        (void)silt_remove(v->slots, name, &ignored);
    return done;
}

int silt_copies_clear(const struct silt_volumes *v, struct silt_error *e)
{
    return silt_remove_all(v->slots, NEW, e);
}
