/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "json/json.h"
#include "sandbox/core/sandbox.h"

#include <openssl/sha.h>
#include <stdio.h>

static bool has_container(const struct silt_containers *all, const char *sandbox)
{
    silt_list_each(
        it, &all->list) if (strcmp(silt_outer(it, struct silt_container, link)->sandbox, sandbox)
                            == 0) return true;
    return false;
}

static bool is_of_container(const struct silt_sandbox *s)
{
    return strlen(s->row.id) == 2 + SILT_CONTAINER_SANDBOX_HEX && strncmp(s->row.id, "w-", 2) == 0
           && s->row.labels != NULL && strstr(s->row.labels, "\"silt.container\"") != NULL;
}

/* Its id belongs to no existing container: the full hash of its name. */
static bool read_kept(struct silt_arena *a, struct silt_sandbox *s, struct silt_kept *ret)
{
    const struct silt_json *labels;
    struct silt_error ignored;
    unsigned char hash[SHA256_DIGEST_LENGTH];
    if (silt_json_read(a, silt_slice_of(s->row.labels), &labels, &ignored) < 0)
        return false;
    const struct silt_json *name = silt_json_get(labels, SILT_LIT("silt.container"));
    if (name == NULL || name->type != SILT_JSON_STRING)
        return false;
    *ret = (struct silt_kept){.sandbox = s, .name = name->string};
    (void)SHA256((const unsigned char *)name->string.data, name->string.len, hash);
    for (size_t i = 0; i < sizeof(hash); i++)
        (void)snprintf(ret->id + i * 2, 3, "%02x", hash[i]);
    return true;
}

bool silt_kept_next(const struct silt_containers *all, struct silt_arena *a, uint32_t *slot,
                    struct silt_kept *ret)
{
    const struct silt_registry *r = all->registry;
    while (*slot < r->settings.slots) {
        struct silt_sandbox *s = r->by_slot[(*slot)++];
        if (s != NULL && s->state != SILT_SANDBOX_DESTROYING && is_of_container(s)
            && !has_container(all, s->row.id) && read_kept(a, s, ret))
            return true;
    }
    return false;
}

bool silt_kept_find(const struct silt_containers *all, struct silt_arena *a, silt_slice name,
                    struct silt_kept *ret)
{
    enum { PREFIX_MIN = 4 };
    struct silt_kept k;
    uint32_t slot = 0;
    size_t found = 0;
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    while (silt_kept_next(all, a, &slot, &k)) {
        bool whole = silt_slice_eq(k.name, name);
        if (!whole && (name.len < PREFIX_MIN || !silt_slice_starts(silt_slice_of(k.id), name)))
            continue;
        *ret = k;
        if (whole)
            return true;
        found++;
    }
    return found == 1;
}
