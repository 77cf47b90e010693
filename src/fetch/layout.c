/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/layout.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/own.h"
#include "fetch/hash.h"
#include "fetch/layer.h"
#include "fetch/manifest.h"
#include "fetch/entry_path.h"

#include <ftw.h>
#include <openssl/evp.h>

enum {
    INDEXES_MAX = 4, /* nested */
    WALK_FILES = 16, /* open at the same time */
};

struct unpack {
    const struct silt_spool *spool; /* borrowed */
    struct silt_manifest manifest;
    struct silt_manifest_config config;
    struct silt_buf text; /* the current document */
};

/* A blob may be a link to a file of any name; its own name must be the digest all the same. */
static bool is_named_right(const char *clean, const struct silt_spooled *file)
{
    const silt_slice blobs = SILT_LIT("blobs/sha256/"), path = silt_slice_of(clean);
    uint8_t digest[SILT_DIGEST_SIZE];
    return !silt_slice_starts(path, blobs)
           || (silt_digest_parse((silt_slice){path.data + blobs.len, path.len - blobs.len}, digest)
               && memcmp(digest, file->digest, sizeof(digest)) == 0);
}

static int find(const struct unpack *u, const struct silt_blob *blob,
                const struct silt_spooled **ret, struct silt_error *e)
{
    char clean[PATH_MAX], quoted[SILT_LOG_QUOTE_SIZE];
    const struct silt_spooled *file = NULL;
    const char *name = silt_log_quote(silt_slice_of(blob->path), quoted);
    if (!silt_entry_path_clean(blob->path, clean))
        file = silt_spool_find(u->spool, clean);
    if (!file)
        return silt_fail(e, SILT_INVALID, "file %s is missing in the archive", name);
    if (!is_named_right(clean, file))
        return silt_fail(e, SILT_INVALID, "file %s has another sha256", name);
    if (blob->size != UINT64_MAX && blob->size != file->size)
        return silt_fail(e, SILT_INVALID, "file %s has %llu bytes instead of %llu", name,
                         (unsigned long long)file->size, (unsigned long long)blob->size);
    *ret = file;
    return 0;
}

static int read_text(struct unpack *u, const struct silt_blob *blob, size_t max,
                     struct silt_error *e)
{
    const struct silt_spooled *file;
    if (find(u, blob, &file, e) < 0)
        return -1;
    return silt_spool_read(u->spool, file, max, &u->text, e);
}

static int read_named(struct unpack *u, const char *name, struct silt_error *e)
{
    struct silt_blob blob = {.size = UINT64_MAX};
    (void)snprintf(blob.path, sizeof(blob.path), "%s", name);
    return read_text(u, &blob, SILT_MANIFEST_MAX, e);
}

/* Follows nested indexes to the manifest. */
static int read_oci(struct unpack *u, const char *image, struct silt_error *e)
{
    struct silt_blob blob;
    bool index = true;
    if (read_named(u, "index.json", e) < 0)
        return -1;
    for (int depth = 0; depth < INDEXES_MAX; depth++) {
        const char *wanted = depth == 0 ? image : "";
        if (silt_manifest_read_index(silt_buf_slice(&u->text), wanted, &u->manifest, &blob, e) < 0
            || read_text(u, &blob, SILT_MANIFEST_MAX, e) < 0
            || silt_manifest_read_oci(silt_buf_slice(&u->text), &u->manifest, &index, e) < 0)
            return -1;
        if (!index)
            return 0;
    }
    return silt_fail(e, SILT_LIMIT, "more than %d indexes inside of each other", INDEXES_MAX);
}

static int read_manifest(struct unpack *u, const struct silt_fetch_order *order,
                         struct silt_error *e)
{
    bool docker = order->format == SILT_FETCH_DOCKER;
    if (order->format == SILT_FETCH_AUTO)
        docker = silt_spool_find(u->spool, "manifest.json") != NULL;
    if (!docker)
        return read_oci(u, order->image, e);
    if (read_named(u, "manifest.json", e) < 0)
        return -1;
    return silt_manifest_read_docker(silt_buf_slice(&u->text), order->image, &u->manifest, e);
}

static int read_config(struct unpack *u, struct silt_buf *said, struct silt_error *e)
{
    if (read_text(u, &u->manifest.config, SILT_MANIFEST_CONFIG_MAX, e) < 0
        || silt_manifest_read_config(silt_buf_slice(&u->text), &u->config, said, e) < 0)
        return -1;
    if (u->config.count != u->manifest.layer_count)
        return silt_fail(e, SILT_INVALID, "%zu layers, but the configuration tells of %zu",
                         u->manifest.layer_count, u->config.count);
    if (u->config.count == 0)
        return silt_fail(e, SILT_INVALID, "the image has no layers");
    return 0;
}

static int apply(struct unpack *u, const struct silt_archive_limits *limits,
                 struct silt_fetch_result *ret, struct silt_error *e)
{
    for (size_t i = 0; i < u->config.count; i++) {
        struct silt_layer layer = {.spool = u->spool, .diff = u->config.diffs[i]};
        if (find(u, &u->manifest.layers[i], &layer.file, e) < 0
            || silt_layer_apply(&layer, limits, ret, e) < 0)
            return -1;
    }
    return 0;
}

static uint64_t files_bytes; /* nftw passes no context */

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    if (type == FTW_F && S_ISREG(st->st_mode))
        files_bytes += (uint64_t)st->st_size / (st->st_nlink > 0 ? st->st_nlink : 1);
    return type == FTW_DNR || type == FTW_NS;
}

/* Files that later layers replaced or removed are not counted. If the tree has unreadable
 * directories, the larger number stays. */
static void count_bytes(const struct unpack *u, struct silt_fetch_result *ret)
{
    if (u->config.count > 1 && nftw(".", add_file, WALK_FILES, FTW_PHYS) == 0)
        ret->bytes = files_bytes;
}

/* Differs from the digest of any tar: a root's tar has no whiteouts. */
static int hash(const struct unpack *u, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e)
{
    EVP_MD_CTX *h = silt_hash_new();
    if (!h)
        return silt_fail(e, SILT_LIMIT, "no memory");
    int got = silt_hash_add(h, SILT_LIT("silt layers 1\n"), e);
    if (got == 0)
        got = silt_hash_add(
            h, (silt_slice){(const char *)u->config.diffs, u->config.count * SILT_DIGEST_SIZE}, e);
    if (got == 0)
        got = silt_hash_end(h, ret, e);
    EVP_MD_CTX_free(h);
    return got;
}

static int unpack(struct unpack *u, const struct silt_fetch_order *order,
                  const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                  struct silt_buf *said, struct silt_error *e)
{
    if (read_manifest(u, order, e) < 0 || read_config(u, said, e) < 0
        || apply(u, limits, ret, e) < 0 || hash(u, ret->digest, e) < 0)
        return -1;
    count_bytes(u, ret);
    ret->config_size = (uint32_t)said->len;
    for (size_t i = 0; i < u->manifest.name_count; i++)
        silt_buf_addf(said, "%s\n", u->manifest.names[i]);
    if (said->broken)
        return silt_fail(e, SILT_LIMIT, "the image says too much");
    ret->names_size = (uint32_t)said->len - ret->config_size;
    return 0;
}

int silt_layout_unpack(const struct silt_spool *spool, const struct silt_fetch_order *order,
                       const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                       struct silt_buf *said, struct silt_error *e)
{
    struct unpack *u = calloc(1, sizeof(*u));
    if (!u)
        return silt_fail(e, SILT_LIMIT, "no memory");
    u->spool = spool;
    silt_buf_init(&u->text, SILT_MANIFEST_MAX + 1);
    int got = unpack(u, order, limits, ret, said, e);
    silt_buf_fini(&u->text);
    free(u);
    return got;
}
