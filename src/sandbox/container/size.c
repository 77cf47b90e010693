/* SPDX-License-Identifier: Apache-2.0 */
/* size: limits and maximum number of instances of containers, from their image's labels. Foreign
 * images have no say: importing drops such labels. */
#include "sandbox/container/internal.h"
#include "base/reference.h"
#include "sandbox/core/sandbox.h"

enum { OBJECT_LEN = 64, INSTANCES_MAX = 1000000 };

int silt_container_size(const struct silt_registry *r, const struct silt_container_image *image,
                        struct silt_sandbox_options *o, struct silt_error *e)
{
    if (image->type.data == NULL) {
        o->limits = r->default_limits;
        o->limits.cpu_milli = 0; /* as under Docker */
        o->type[0] = 0;
        return 0;
    }
    const struct silt_priv_limits *limits = silt_type_find(image->type);
    if (limits == NULL)
        return silt_fail(e, SILT_INVALID,
                         "the image's label silt.type is '%.*s', which is none of lite, basic, "
                         "standard-1 to standard-4",
                         image->type.len < 60 ? (int)image->type.len : 60, image->type.data);
    o->limits = *limits;
    memcpy(o->type, image->type.data, image->type.len);
    o->type[image->type.len] = 0;
    return 0;
}

silt_slice silt_container_class(const struct silt_container *c)
{
    silt_slice name = silt_slice_of(c->row.name), prefix = SILT_LIT("workerd-");
    size_t around = prefix.len + 1 + OBJECT_LEN;
    if (!silt_slice_starts(name, prefix) || name.len <= around
        || name.data[name.len - OBJECT_LEN - 1] != '-')
        return (silt_slice){NULL, 0};
    return (silt_slice){name.data + prefix.len, name.len - around};
}

/* "host/name:tag@digest": host/name */
static silt_slice repository_of(const struct silt_container *c)
{
    silt_slice rest = c->spec.image, name;
    (void)silt_slice_split(&rest, '@', &name);
    const char *slash = memrchr(name.data, '/', name.len);
    size_t from = slash != NULL ? (size_t)(slash - name.data) : 0;
    const char *colon = memchr(name.data + from, ':', name.len - from);
    return (silt_slice){name.data, colon != NULL ? (size_t)(colon - name.data) : name.len};
}

/* Same class of a Worker; containers without a class are compared by image name. */
static bool are_of_one_kind(const struct silt_container *a, const struct silt_container *b)
{
    silt_slice left = silt_container_class(a), right = silt_container_class(b);
    if (left.data == NULL && right.data == NULL)
        return silt_slice_eq(repository_of(a), repository_of(b));
    return left.data != NULL && right.data != NULL && silt_slice_eq(left, right);
}

/* A container that is ending does not count: after a destroy a client may start the next at
 * once. */
static bool has_place(const struct silt_container *c)
{
    return c->spec.kind == SILT_CONTAINER_APP
           && (c->state == SILT_CONTAINER_IS_STARTING || silt_container_is_up(c));
}

int silt_container_check_place(struct silt_container *c, struct silt_error *e)
{
    struct silt_container_image image;
    struct silt_error ignored;
    uint64_t most, count = 0;
    if (!c->all->max_instances || c->spec.kind != SILT_CONTAINER_APP || has_place(c)
        || silt_container_image(c->all->registry, c->spec.image, &image, &ignored) < 0
        || silt_slice_to_u64(image.max_instances, 1, INSTANCES_MAX, &most, &ignored) < 0)
        return 0;
    silt_list_each(it, &c->all->list)
    {
        const struct silt_container *other = silt_outer(it, struct silt_container, link);
        count += has_place(other) && are_of_one_kind(c, other);
    }
    if (count < most)
        return 0;
    /* The npm client recognizes this text. */
    return silt_fail(e, SILT_LIMIT,
                     "Maximum number of running container instances exceeded: %llu of %llu run "
                     "(label silt.max_instances). Try again later, or "
                     "raise max_instances",
                     (unsigned long long)count, (unsigned long long)most);
}
