/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/recovery.h"
#include "base/digest.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

void silt_recovery_slot_name(uint32_t slot, char name[SILT_RECOVERY_NAME_SIZE])
{
    (void)snprintf(name, SILT_RECOVERY_NAME_SIZE, "%u", slot);
}

static int write_file(const struct silt_volumes *v, const char *name, int flags, silt_slice bytes,
                      struct silt_error *e)
{
    silt_auto_fd fd =
        openat(v->records, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", name);
    return silt_fd_write_all(fd, bytes, e);
}

static int replace(const struct silt_volumes *v, const char *name, silt_slice bytes,
                   struct silt_error *e)
{
    char temporary[SILT_RECOVERY_NAME_SIZE + 8];
    (void)snprintf(temporary, sizeof(temporary), "%s.new", name);
    int done = write_file(v, temporary, O_TRUNC, bytes, e);
    if (done == 0 && renameat(v->records, temporary, v->records, name) < 0)
        done = silt_fail_errno(e, "publish %s", name);
    if (done < 0)
        (void)unlinkat(v->records, temporary, 0);
    return done;
}

/* The first record replaces nothing, and a request waits for it: half a record would be a sandbox
 * that no client knows. */
static int write_record(const struct silt_volumes *v, const char *name, silt_slice bytes,
                        struct silt_error *e)
{
    int done = write_file(v, name, O_EXCL, bytes, e);
    if (done < 0 && e->code == SILT_CONFLICT)
        return replace(v, name, bytes, e);
    if (done < 0)
        (void)unlinkat(v->records, name, 0);
    return done;
}

int silt_recovery_put(const struct silt_volumes *v, const char *name, int memfd, size_t max,
                      struct silt_error *e)
{
    silt_slice bytes;
    if (silt_fd_map_sealed(memfd, max, &bytes, e) < 0)
        return silt_because(e, "recovery record %.12s", name);
    int done = write_record(v, name, bytes, e);
    silt_fd_unmap(bytes);
    return done < 0 ? silt_because(e, "write recovery record %.12s", name) : 0;
}

int silt_recovery_remove(const struct silt_volumes *v, const char *name, struct silt_error *e)
{
    if (unlinkat(v->records, name, 0) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "remove recovery record %.12s", name);
    return 0;
}

int silt_recovery_open(const struct silt_volumes *v, const char *name, int *ret_fd,
                       struct silt_error *e)
{
    int fd = openat(v->records, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return silt_fail_errno(e, "open recovery record %.12s", name);
    *ret_fd = fd;
    return 0;
}

/* ---- the list ---- */

static bool read_slot(const char *name, uint32_t slots, uint32_t *ret)
{
    struct silt_error ignored;
    uint64_t slot;
    if (silt_slice_to_u64(silt_slice_of(name), 0, slots - 1, &slot, &ignored) < 0)
        return false;
    *ret = (uint32_t)slot;
    return true;
}

static bool is_in(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

struct listing {
    const struct silt_volumes *volumes;
    int images, out;
    uint32_t slots;
};

static int add(const struct listing *l, const struct silt_priv_recovery *entry,
               struct silt_error *e)
{
    return silt_fd_write_all(l->out, (silt_slice){(const char *)entry, sizeof(*entry)}, e);
}

static int add_record(const struct listing *l, const char *name, struct silt_error *e)
{
    struct silt_priv_recovery entry = {.record = 1};
    if (read_slot(name, l->slots, &entry.slot)) {
        entry.files = is_in(l->volumes->slots, name);
        return add(l, &entry, e);
    }
    if (!silt_digest_parse(silt_slice_of(name), entry.digest))
        return 0; /* not published */
    entry.kind = SILT_RECOVERY_IMAGE;
    entry.files = is_in(l->images, name) || is_in(l->volumes->layers, name);
    return add(l, &entry, e);
}

static int add_files(const struct listing *l, const char *name, struct silt_error *e)
{
    struct silt_priv_recovery entry = {.files = 1};
    silt_auto_fd volume = -1;
    if (!read_slot(name, l->slots, &entry.slot) || is_in(l->volumes->records, name))
        return 0;
    if (silt_volume_open(l->volumes, entry.slot, &volume, e) < 0)
        return -1;
    entry.ready = silt_volume_is_ready(volume);
    return add(l, &entry, e);
}

static int each_name(int dir, const struct listing *l,
                     int (*add_name)(const struct listing *, const char *, struct silt_error *),
                     struct silt_error *e)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        silt_close_fd(&fd);
        return silt_fail_errno(e, "list recovery records");
    }
    int done = 0;
    for (struct dirent *it = readdir(d); it != NULL && done == 0; it = readdir(d))
        done = add_name(l, it->d_name, e);
    (void)closedir(d);
    return done;
}

int silt_recovery_list(const struct silt_volumes *v, int images, uint32_t slots, int *ret_memfd,
                       struct silt_error *e)
{
    silt_auto_fd out = memfd_create("silt-records", MFD_CLOEXEC);
    struct listing l = {.volumes = v, .images = images, .out = out, .slots = slots};
    if (out < 0)
        return silt_fail_errno(e, "create memfd");
    if (each_name(v->records, &l, add_record, e) < 0 || each_name(v->slots, &l, add_files, e) < 0)
        return -1;
    *ret_memfd = silt_take_fd(&out);
    return 0;
}
