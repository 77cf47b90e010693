/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/image.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_ARENA_MAX = 16 << 20 };

static const uint8_t none[SILT_DIGEST_SIZE];

static bool same_digest(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, SILT_DIGEST_SIZE) == 0;
}

static silt_slice key_of(const uint8_t *digest)
{
    return (silt_slice){(const char *)digest, SILT_DIGEST_SIZE};
}

/* ---- unused files ---- */

struct forget {
    struct silt_link link;
    struct silt_registry *registry; /* borrowed */
    uint8_t digest[SILT_DIGEST_SIZE];
};

bool silt_image_is_forgotten(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    silt_list_each(it, &r->forgets) if (same_digest(silt_outer(it, struct forget, link)->digest,
                                                    digest)) return true;
    return false;
}

static bool has_sandboxes(const struct silt_registry *r, const uint8_t *digest)
{
    for (uint32_t i = 0; i < r->settings.slots; i++)
        if (r->by_slot[i] != NULL && same_digest(r->by_slot[i]->row.digest, digest))
            return true;
    return false;
}

static bool is_needed(const struct silt_registry *r, const uint8_t *digest)
{
    for (size_t i = 0; i < r->facets->count; i++)
        if (r->facets->of[i]->needs_files != NULL && r->facets->of[i]->needs_files(r, digest))
            return true;
    return false;
}

static void on_forgotten(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct forget *f = context;
    (void)fds;
    (void)nfds;
    if (!a->ok)
        silt_log(SILT_LOG_WARN, "image.forget", "error=%s", a->body.error.text);
    silt_list_remove(&f->link);
    silt_facets_call(f->registry, on_files_gone, f->registry, f->digest);
    free(f);
}

static void forget_files(struct silt_registry *r, const uint8_t *digest)
{
    if (is_needed(r, digest) || silt_image_is_forgotten(r, digest))
        return;
    struct silt_priv_request q = {.op = SILT_PRIV_FORGET};
    struct forget *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    f->registry = r;
    memcpy(f->digest, digest, SILT_DIGEST_SIZE);
    memcpy(q.body.import.digest, digest, SILT_DIGEST_SIZE);
    silt_list_append(&r->forgets, &f->link);
    silt_priv_ask(r->priv, &q, NULL, 0, on_forgotten, f);
}

/* ---- images ---- */

struct silt_image *silt_image_by_digest(const struct silt_registry *r,
                                        const uint8_t digest[SILT_DIGEST_SIZE])
{
    return silt_map_find(&r->images_by_digest, key_of(digest));
}

struct silt_image *silt_image_of(const struct silt_sandbox *s)
{
    return silt_image_by_digest(s->registry, s->row.digest);
}

static const struct silt_image *owner_of_files(const struct silt_image *i)
{
    while (!i->row.layered && i->parent != NULL)
        i = i->parent;
    return i;
}

const uint8_t *silt_image_files(const struct silt_image *i)
{
    return owner_of_files(i)->row.digest;
}

const uint8_t *silt_image_tree(const struct silt_image *i)
{
    while (i->parent != NULL)
        i = i->parent;
    return i->row.digest;
}

uint64_t silt_image_bytes(const struct silt_image *i)
{
    uint64_t sum = 0;
    for (; i != NULL; i = i->parent)
        sum += i->row.bytes;
    return sum;
}

void silt_image_title(const struct silt_image *i, char ret[SILT_IMAGE_NAME_SIZE])
{
    const struct silt_image_name *n = silt_list_first(&i->names, struct silt_image_name, link);
    if (n != NULL) {
        memcpy(ret, n->text, sizeof(n->text));
        return;
    }
    int at = snprintf(ret, SILT_IMAGE_NAME_SIZE, "sha256:");
    for (size_t k = 0; k < SILT_DIGEST_SIZE; k++)
        at += snprintf(ret + at, SILT_IMAGE_NAME_SIZE - (size_t)at, "%02x", i->row.digest[k]);
}

silt_slice silt_image_user(const struct silt_sandbox *s)
{
    const struct silt_image *i = silt_image_of(s);
    silt_slice user = i != NULL ? i->config.user : (silt_slice){NULL, 0};
    bool root = silt_slice_eq(user, SILT_LIT("root")) || silt_slice_eq(user, SILT_LIT("0"))
                || silt_slice_eq(user, SILT_LIT("0:0"))
                || silt_slice_eq(user, SILT_LIT("root:root"));
    return root ? (silt_slice){NULL, 0} : user;
}

silt_slice silt_image_workdir(const struct silt_sandbox *s)
{
    const struct silt_image *i = silt_image_of(s);
    return i != NULL ? i->config.workdir : (silt_slice){NULL, 0};
}

static void free_image(struct silt_image *i)
{
    silt_list_each(it, &i->names) free(silt_outer(it, struct silt_image_name, link));
    silt_arena_fini(&i->arena);
    free(i->row.config);
    if (i->snapshot != NULL)
        silt_snapshot_row_fini(i->snapshot);
    free(i->snapshot);
    free(i);
}

/* Takes row->config. */
static struct silt_image *add(struct silt_registry *r, const struct silt_image_row *row)
{
    struct silt_error e;
    struct silt_image *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    i->registry = r;
    i->row = *row;
    silt_list_init(&i->names);
    silt_arena_init(&i->arena, CONFIG_ARENA_MAX);
    silt_slice config = silt_slice_of(row->config != NULL ? row->config : "{}");
    if (silt_image_config_read(&i->arena, config, &i->config, &e) < 0)
        silt_log(SILT_LOG_ERROR, "image.config", "error=%s", e.text);
    silt_list_append(&r->images, &i->link);
    silt_map_put(&r->images_by_digest, key_of(i->row.digest), i);
    r->image_count++;
    return i;
}

static void find_parent(struct silt_image *i)
{
    if (same_digest(i->row.parent, none))
        return;
    i->parent = silt_image_by_digest(i->registry, i->row.parent);
    if (i->parent != NULL)
        i->parent->children++;
    else
        silt_log(SILT_LOG_ERROR, "image.parent", "reason=lost");
}

int silt_image_new(struct silt_registry *r, struct silt_image_row *row, struct silt_image **ret,
                   struct silt_error *e)
{
    if (row->config == NULL)
        abort();
    if (r->image_count >= SILT_IMAGES_MAX || silt_store_put_image(r->store, row, e) < 0) {
        free(row->config);
        row->config = NULL;
        if (r->image_count >= SILT_IMAGES_MAX)
            return silt_fail(e, SILT_LIMIT, "there are %d images already", SILT_IMAGES_MAX);
        return -1;
    }
    *ret = add(r, row);
    find_parent(*ret);
    silt_recovery_on_image(r, row->digest);
    return 0;
}

static bool is_used(const struct silt_image *i)
{
    const struct silt_registry *r = i->registry;
    return !silt_list_empty(&i->names) || i->children > 0 || i->holds > 0 || i->cached > 0
           || i->snapshot != NULL || has_sandboxes(r, i->row.digest) || is_needed(r, i->row.digest);
}

/* May leave its parent unused. */
static struct silt_image *remove_one(struct silt_image *i)
{
    struct silt_registry *r = i->registry;
    struct silt_image *parent = i->parent;
    struct silt_error e;
    if (silt_store_remove_image(r->store, i->row.digest, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "error=%s", e.text);
    silt_map_remove(&r->images_by_digest, key_of(i->row.digest));
    silt_list_remove(&i->link);
    r->image_count--;
    silt_recovery_on_image(r, i->row.digest);
    if (parent != NULL)
        parent->children--;
    if (i->row.layered || parent == NULL)
        forget_files(r, i->row.digest);
    free_image(i);
    return parent;
}

void silt_image_forget_unused(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_image *i = silt_image_by_digest(r, digest);
    if (i == NULL && !same_digest(digest, none) && !has_sandboxes(r, digest))
        forget_files(r, digest);
    while (i != NULL && !is_used(i))
        i = remove_one(i);
}

void silt_image_hold(struct silt_image *i)
{
    i->holds++;
}

void silt_image_release(struct silt_image *i)
{
    i->holds--;
    silt_image_forget_unused(i->registry, i->row.digest);
}

static void digest_of_config(const struct silt_image *files, const char *config, bool host_usr,
                             uint8_t ret[SILT_DIGEST_SIZE])
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_IMAGE_CONFIG_MAX + 256);
    silt_buf_addf(&b, "silt image 1 %d ", host_usr);
    silt_buf_add(&b, key_of(files->row.digest));
    silt_buf_add(&b, silt_slice_of(config));
    (void)SHA256((const unsigned char *)b.data, b.len, ret);
}

int silt_image_derive(struct silt_image *from, const char *config, bool host_usr,
                      struct silt_image **ret, struct silt_error *e)
{
    struct silt_registry *r = from->registry;
    struct silt_image_row row = {.host_usr = host_usr, .created_ms = silt_clock_wall_ms()};
    const struct silt_image *files = owner_of_files(from);
    if (strcmp(files->row.config, config) == 0 && files->row.host_usr == host_usr) {
        *ret = silt_image_by_digest(r, files->row.digest);
        return 0;
    }
    digest_of_config(files, config, host_usr, row.digest);
    *ret = silt_image_by_digest(r, row.digest);
    if (*ret != NULL)
        return 0;
    memcpy(row.parent, files->row.digest, sizeof(row.parent));
    row.config = strdup(config);
    return silt_image_new(r, &row, ret, e);
}

/* ---- start and exit of siltd ---- */

static void load_image(void *context, struct silt_image_row *row)
{
    (void)add(context, row);
}

static void load_name(void *context, const char *name, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct silt_registry *r = context;
    struct silt_image *i = silt_image_by_digest(r, digest);
    if (i != NULL)
        silt_image_add_name(i, name);
    else
        silt_log(SILT_LOG_ERROR, "image.name", "name=%s reason=lost", name);
}

int silt_images_load(struct silt_registry *r, struct silt_error *e)
{
    if (silt_store_each_image(r->store, load_image, r, e) < 0)
        return -1;
    silt_list_each(it, &r->images) find_parent(silt_outer(it, struct silt_image, link));
    return silt_store_each_image_name(r->store, load_name, r, e);
}

void silt_images_sweep(struct silt_registry *r)
{
    bool again = true;
    while (again) { /* removing one may remove its parents, which changes the list */
        again = false;
        silt_list_each(it, &r->images)
        {
            struct silt_image *i = silt_outer(it, struct silt_image, link);
            if (is_used(i))
                continue;
            silt_image_forget_unused(r, i->row.digest);
            again = true;
            break;
        }
    }
}

void silt_images_forget(struct silt_registry *r)
{
    silt_list_each(it, &r->images) free_image(silt_outer(it, struct silt_image, link));
    silt_list_init(&r->images);
    silt_map_fini(&r->images_by_digest);
    silt_map_fini(&r->image_names);
    silt_list_each(it, &r->forgets) free(silt_outer(it, struct forget, link));
    silt_list_init(&r->forgets);
}
