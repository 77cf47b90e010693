/* SPDX-License-Identifier: Apache-2.0 */
/* RUN --mount=type=bind,source=…: comma-separated names and values. */
#include "dockerfile/dockerfile.h"

static int unclear(silt_slice text, const char *why, struct silt_error *e)
{
    return silt_fail(e, SILT_INVALID, "--mount=%.*s: %s", text.len > 120 ? 120 : (int)text.len,
                     text.data, why);
}

static bool read_kind(silt_slice value, enum silt_docker_mount_kind *ret)
{
    static const char *const names[SILT_DOCKER_MOUNT_MAX] = {
        [SILT_DOCKER_BIND] = "bind", [SILT_DOCKER_CACHE] = "cache", [SILT_DOCKER_SECRET] = "secret",
        [SILT_DOCKER_SSH] = "ssh",   [SILT_DOCKER_TMPFS] = "tmpfs",
    };
    for (size_t i = 0; i < SILT_DOCKER_MOUNT_MAX; i++)
        if (silt_slice_ieq(value, silt_slice_of(names[i]))) {
            *ret = (enum silt_docker_mount_kind)i;
            return true;
        }
    return false;
}

static bool is_one_of(silt_slice name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (silt_slice_ieq(name, silt_slice_of(*names)))
            return true;
    return false;
}

static int read_one(silt_slice name, silt_slice value, struct silt_docker_mount *m)
{
    static const char *const sources[] = {"source", "src", NULL}, *const targets[] = {
                                                                      "target", "dst",
                                                                      "destination", NULL};
    /* Whether a mount is writable makes no difference here; the other options are of mount types
     * that have no effect. */
    static const char *const others[] = {"rw",   "readwrite", "ro",  "readonly", "id",  "sharing",
                                         "mode", "uid",       "gid", "size",     "env", NULL};
    if (silt_slice_ieq(name, SILT_LIT("required"))) {
        m->required = value.data == NULL || silt_slice_ieq(value, SILT_LIT("true"))
                      || silt_slice_eq(value, SILT_LIT("1"));
        return 0;
    }
    if (is_one_of(name, others))
        return 0;
    if (value.data == NULL || value.len == 0)
        return -1;
    if (silt_slice_ieq(name, SILT_LIT("type")))
        return read_kind(value, &m->kind) ? 0 : -1;
    silt_slice *at = is_one_of(name, sources)                 ? &m->source
                     : is_one_of(name, targets)               ? &m->target
                     : silt_slice_ieq(name, SILT_LIT("from")) ? &m->from
                                                              : NULL;
    if (at == NULL)
        return -1;
    *at = value;
    return 0;
}

int silt_docker_mount_read(silt_slice text, struct silt_docker_mount *ret, struct silt_error *e)
{
    silt_slice rest = text, value, name;
    *ret = (struct silt_docker_mount){.kind = SILT_DOCKER_BIND};
    while (silt_slice_split(&rest, ',', &value)) {
        (void)silt_slice_split(&value, '=', &name);
        if (read_one(name, value, ret) < 0)
            return unclear(
                text, "expected type=bind,source=path,target=path,from=stage,rw and the like", e);
        if (rest.data == NULL)
            break;
    }
    if (ret->target.len == 0 && (ret->kind == SILT_DOCKER_BIND || ret->kind == SILT_DOCKER_TMPFS))
        return unclear(text, "a target is missing", e);
    return 0;
}
