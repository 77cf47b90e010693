/* SPDX-License-Identifier: Apache-2.0 */
/* image_name: finds, assigns and removes the names of images. */
#include "base/digest.h"
#include "sandbox/core/image.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

static struct silt_image_name *find_name(const struct silt_registry *r, silt_slice name)
{
    return silt_map_find(&r->image_names, name);
}

void silt_image_add_name(struct silt_image *i, const char *name)
{
    struct silt_image_name *n = calloc(1, sizeof(*n));
    if (n == NULL)
        abort();
    n->image = i;
    (void)snprintf(n->text, sizeof(n->text), "%s", name);
    silt_list_append(&i->names, &n->link);
    silt_map_put(&i->registry->image_names, silt_slice_of(n->text), n);
}

static void remove_name(struct silt_registry *r, struct silt_image_name *n)
{
    silt_map_remove(&r->image_names, silt_slice_of(n->text));
    silt_list_remove(&n->link);
    free(n);
}

int silt_image_tag(struct silt_registry *r, struct silt_image *i, const char *name,
                   struct silt_error *e)
{
    struct silt_image_name *n = find_name(r, silt_slice_of(name));
    if (n != NULL && n->image == i)
        return 0;
    if (n == NULL && r->image_names.used >= SILT_IMAGES_MAX)
        return silt_fail(e, SILT_LIMIT, "there are %d names of images already", SILT_IMAGES_MAX);
    if (silt_store_put_image_name(r->store, name, i->row.digest, e) < 0)
        return -1;
    if (n != NULL) {
        struct silt_image *before = n->image;
        silt_list_remove(&n->link);
        silt_list_append(&i->names, &n->link);
        n->image = i;
        silt_recovery_on_image(r, i->row.digest);
        silt_recovery_on_image(r, before->row.digest);
        silt_image_forget_unused(r, before->row.digest);
        return 0;
    }
    silt_image_add_name(i, name);
    silt_recovery_on_image(r, i->row.digest);
    return 0;
}

static const struct silt_sandbox *sandbox_of(const struct silt_image *i)
{
    const struct silt_registry *r = i->registry;
    for (uint32_t slot = 0; slot < r->settings.slots; slot++) {
        const struct silt_sandbox *s = r->by_slot[slot];
        if (s != NULL && s->row.id[0] != 0
            && memcmp(s->row.digest, i->row.digest, SILT_DIGEST_SIZE) == 0)
            return s;
    }
    return NULL;
}

static int check_free(const struct silt_image_name *n, struct silt_error *e)
{
    const struct silt_image *i = n->image;
    if (i->names.next->next != &i->names)
        return 0; /* it has others */
    const struct silt_sandbox *s = sandbox_of(i);
    if (s != NULL)
        return silt_fail(e, SILT_CONFLICT, "image '%s' is used by sandbox '%s'; destroy it first",
                         n->text, s->row.id);
    if (i->holds > 0)
        return silt_fail(e, SILT_CONFLICT, "image '%s' is in use", n->text);
    return 0;
}

int silt_image_untag(struct silt_registry *r, const char *name, bool *ret_existed,
                     struct silt_error *e)
{
    struct silt_image_name *n = find_name(r, silt_slice_of(name));
    *ret_existed = n != NULL;
    if (n == NULL)
        return 0;
    if (check_free(n, e) < 0 || silt_store_remove_image_name(r->store, name, e) < 0)
        return -1;
    struct silt_image *i = n->image;
    remove_name(r, n);
    silt_recovery_on_image(r, i->row.digest);
    if (silt_list_empty(&i->names))
        silt_ready_pool_drop_image(r, i->row.digest);
    silt_image_forget_unused(r, i->row.digest);
    return 0;
}

/* ---- find ---- */

static bool is_hex(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!silt_is_any(s.data[i], "0123456789abcdef"))
            return false;
    return true;
}

static bool begins_with(const uint8_t *digest, silt_slice hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < hex.len; i++)
        if (digits[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15] != hex.data[i])
            return false;
    return true;
}

static struct silt_image *find_digits(struct silt_registry *r, silt_slice hex)
{
    struct silt_image *found = NULL;
    uint8_t digest[SILT_DIGEST_SIZE];
    if (silt_digest_parse(hex, digest))
        return silt_image_by_digest(r, digest);
    if (hex.len < SILT_IMAGE_PREFIX_MIN || hex.len > 2 * SILT_DIGEST_SIZE || !is_hex(hex))
        return NULL;
    silt_list_each(it, &r->images)
    {
        struct silt_image *i = silt_outer(it, struct silt_image, link);
        if (!begins_with(i->row.digest, hex))
            continue;
        if (found != NULL)
            return NULL; /* ambiguous */
        found = i;
    }
    return found;
}

/* ---- the operator's map ---- */

static bool next_pair(silt_slice *map, silt_slice *ret_repository, silt_slice *ret_name)
{
    silt_slice pair = {NULL, 0};
    while (pair.len == 0)
        if (!silt_slice_split(map, ' ', &pair))
            return false;
    *ret_name = pair;
    return silt_slice_split(ret_name, '=', ret_repository);
}

static bool fits(silt_slice pattern, silt_slice repository)
{
    if (pattern.len > 0 && pattern.data[pattern.len - 1] == '*')
        return silt_slice_starts(repository, (silt_slice){pattern.data, pattern.len - 1});
    return silt_slice_eq(pattern, repository);
}

int silt_image_check_map(silt_slice map, struct silt_error *e)
{
    char spelled[SILT_IMAGE_NAME_SIZE];
    silt_slice repository, name;
    while (next_pair(&map, &repository, &name))
        if (repository.len == 0 || name.len == 0 || silt_reference_read(name, spelled, e) < 0)
            return silt_fail(e, SILT_INVALID, "setting images.map: '%.*s' is no repository=name",
                             (int)repository.len, repository.data);
    return 0;
}

static bool read_map(const struct silt_registry *r, silt_slice spelled,
                     char ret_name[SILT_IMAGE_NAME_SIZE])
{
    silt_slice map = silt_slice_of(r->settings.image_map), pattern, target;
    struct silt_error e;
    size_t tag = silt_reference_tag(spelled);
    silt_slice repository = {spelled.data, tag < spelled.len ? tag - 1 : spelled.len};
    while (next_pair(&map, &pattern, &target))
        if (fits(pattern, repository) && silt_reference_read(target, ret_name, &e) == 0)
            return true;
    return false;
}

static struct silt_image *find_mapped(struct silt_registry *r, silt_slice spelled)
{
    char name[SILT_IMAGE_NAME_SIZE];
    struct silt_image_name *n =
        read_map(r, spelled, name) ? find_name(r, silt_slice_of(name)) : NULL;
    return n != NULL ? n->image : NULL;
}

static bool is_in_map(const struct silt_registry *r, const char *name)
{
    char spelled[SILT_IMAGE_NAME_SIZE];
    silt_slice map = silt_slice_of(r->settings.image_map), pattern, target;
    struct silt_error e;
    while (next_pair(&map, &pattern, &target))
        if (silt_reference_read(target, spelled, &e) == 0 && strcmp(name, spelled) == 0)
            return true;
    return read_map(r, silt_slice_of(name), spelled);
}

bool silt_image_is_reserved(const struct silt_registry *r, const char *name)
{
    char usual[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    return strcmp(name, "base") == 0 || strcmp(name, "host") == 0 || is_in_map(r, name)
           || (silt_reference_read(silt_slice_of(r->settings.image), usual, &e) == 0
               && strcmp(name, usual) == 0);
}

struct silt_image *silt_image_find(struct silt_registry *r, silt_slice reference, bool *ret_mapped)
{
    char spelled[SILT_IMAGE_NAME_SIZE];
    struct silt_error e;
    if (ret_mapped != NULL)
        *ret_mapped = false;
    if (silt_slice_starts(reference, SILT_LIT("sha256:"))
        && reference.len > 7 + SILT_IMAGE_PREFIX_MIN - 1)
        return find_digits(r, (silt_slice){reference.data + 7, reference.len - 7});
    if (silt_reference_read(reference, spelled, &e) < 0)
        return NULL;
    struct silt_image_name *n = find_name(r, silt_slice_of(spelled));
    if (n != NULL)
        return n->image;
    struct silt_image *i = find_digits(r, reference);
    if (i != NULL)
        return i;
    i = find_mapped(r, silt_slice_of(spelled));
    if (i != NULL && ret_mapped != NULL)
        *ret_mapped = true;
    return i;
}
