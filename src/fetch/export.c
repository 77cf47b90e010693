/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/export.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/reference.h"
#include "fetch/hash.h"
#include "fetch/pack.h"
#include "json/json.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <openssl/evp.h>
#include <time.h>

enum {
    BLOCK = 256 * 1024,
    TEXT_MAX = 512 << 10,
    HEX_SIZE = 2 * SILT_DIGEST_SIZE + 1,
    TIME_SIZE = 32
};

/* A file of the archive, described by its content. */
struct blob {
    uint64_t size;
    uint8_t digest[SILT_DIGEST_SIZE];
    char hex[HEX_SIZE];
};

static void spell(struct blob *b)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++) {
        b->hex[2 * i] = digits[b->digest[i] >> 4];
        b->hex[2 * i + 1] = digits[b->digest[i] & 15];
    }
    b->hex[HEX_SIZE - 1] = 0;
}

/* ---- the tree: measured, then written ---- */

struct measure {
    struct silt_pack_sink sink;
    EVP_MD_CTX *hash;
    uint64_t size;
};

static int take_measure(struct silt_pack_sink *sink, silt_slice bytes, struct silt_error *e)
{
    struct measure *m = silt_outer(sink, struct measure, sink);
    m->size += bytes.len;
    return silt_hash_add(m->hash, bytes, e);
}

static int measure(struct blob *ret, uint64_t *left_out, struct silt_error *e)
{
    struct measure m = {.sink = {take_measure}, .hash = silt_hash_new()};
    if (!m.hash)
        return silt_fail(e, SILT_LIMIT, "no memory");
    int got = silt_pack(&m.sink, left_out, e);
    if (got == 0)
        got = silt_hash_end(m.hash, ret->digest, e);
    EVP_MD_CTX_free(m.hash);
    ret->size = m.size;
    spell(ret);
    return got;
}

static int measure_text(silt_slice text, struct blob *ret, struct silt_error *e)
{
    EVP_MD_CTX *h = silt_hash_new();
    if (!h)
        return silt_fail(e, SILT_LIMIT, "no memory");
    int got = silt_hash_add(h, text, e);
    if (got == 0)
        got = silt_hash_end(h, ret->digest, e);
    EVP_MD_CTX_free(h);
    ret->size = text.len;
    spell(ret);
    return got;
}

struct to_fd {
    struct silt_pack_sink sink;
    int fd;
};

static int take_fd(struct silt_pack_sink *sink, silt_slice bytes, struct silt_error *e)
{
    return silt_fd_write_all(silt_outer(sink, struct to_fd, sink)->fd, bytes, e);
}

/* ---- the archive around it ---- */

struct outer {
    struct silt_pack_sink sink; /* what the tree is packed into */
    struct archive *out;
    int fd;
};

static la_ssize_t on_write(struct archive *out, void *user, const void *bytes, size_t size)
{
    const struct outer *o = user;
    struct silt_error e;
    if (silt_fd_write_all(o->fd, (silt_slice){bytes, size}, &e) == 0)
        return (la_ssize_t)size;
    archive_set_error(out, EIO, "%s", e.text);
    return -1;
}

static int fail_outer(const struct outer *o, struct silt_error *e)
{
    const char *why = archive_error_string(o->out);
    return silt_fail(e, SILT_INTERNAL, "write the archive: %s", why ? why : "libarchive");
}

static int take_outer(struct silt_pack_sink *sink, silt_slice bytes, struct silt_error *e)
{
    struct outer *o = silt_outer(sink, struct outer, sink);
    if (archive_write_data(o->out, bytes.data, bytes.len) != (la_ssize_t)bytes.len)
        return fail_outer(o, e);
    return 0;
}

static int add_header(struct outer *o, const char *name, unsigned type, uint64_t size,
                      struct silt_error *e)
{
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return silt_fail(e, SILT_LIMIT, "no memory");
    archive_entry_copy_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, type == AE_IFDIR ? 0755 : 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    int got = archive_write_header(o->out, entry) == ARCHIVE_OK ? 0 : fail_outer(o, e);
    archive_entry_free(entry);
    return got;
}

static int add_text(struct outer *o, const char *name, silt_slice text, struct silt_error *e)
{
    if (add_header(o, name, AE_IFREG, text.len, e) < 0)
        return -1;
    return take_outer(&o->sink, text, e);
}

static int add_tree(struct outer *o, const char *name, const struct blob *layer,
                    struct silt_error *e)
{
    uint64_t left_out;
    if (add_header(o, name, AE_IFREG, layer->size, e) < 0)
        return -1;
    return silt_pack(&o->sink, &left_out, e);
}

/* ---- the documents ---- */

/* Readers of the archive require a tag. */
static void full_name(const char *image, char ret[SILT_REFERENCE_SIZE + 8])
{
    silt_slice name = silt_slice_of(image);
    bool tagged = silt_reference_tag(name) < name.len;
    (void)snprintf(ret, SILT_REFERENCE_SIZE + 8, "%s%s", image, tagged ? "" : ":latest");
}

static void add_time(struct silt_buf *b, int64_t seconds)
{
    char text[TIME_SIZE];
    time_t t = (time_t)seconds;
    struct tm tm;
    silt_json_key(b, SILT_LIT("created"));
    if (!gmtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(text, sizeof(text), "1970-01-01T00:00:00Z");
    silt_json_string(b, silt_slice_of(text));
}

static void add_pair(struct silt_buf *b, const char *key, const char *value)
{
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, silt_slice_of(value));
}

static void write_config(struct silt_buf *b, const struct silt_fetch_order *o, silt_slice config,
                         const struct blob *layer)
{
    char diff[HEX_SIZE + 8];
    (void)snprintf(diff, sizeof(diff), "sha256:%s", layer->hex);
    silt_json_open(b, '{');
    add_time(b, o->created_s);
    add_pair(b, "architecture", "amd64");
    add_pair(b, "os", "linux");
    silt_json_key(b, SILT_LIT("config"));
    silt_json_raw(b, config);
    silt_json_key(b, SILT_LIT("rootfs"));
    silt_json_open(b, '{');
    add_pair(b, "type", "layers");
    silt_json_key(b, SILT_LIT("diff_ids"));
    silt_json_open(b, '[');
    silt_json_string(b, silt_slice_of(diff));
    silt_json_close(b, ']');
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("history"));
    silt_json_open(b, '[');
    silt_json_open(b, '{');
    add_time(b, o->created_s);
    add_pair(b, "created_by", "silt image export");
    silt_json_close(b, '}');
    silt_json_close(b, ']');
    silt_json_close(b, '}');
}

/* The object stays open: annotations may follow. */
static void open_descriptor(struct silt_buf *b, const char *type, const struct blob *blob)
{
    char digest[HEX_SIZE + 8], media[80];
    (void)snprintf(digest, sizeof(digest), "sha256:%s", blob->hex);
    (void)snprintf(media, sizeof(media), "application/vnd.oci.image.%s", type);
    silt_json_open(b, '{');
    add_pair(b, "mediaType", media);
    add_pair(b, "digest", digest);
    silt_json_key(b, SILT_LIT("size"));
    silt_json_u64(b, blob->size);
}

static void write_manifest(struct silt_buf *b, const struct blob *config, const struct blob *layer)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("schemaVersion"));
    silt_json_u64(b, 2);
    add_pair(b, "mediaType", "application/vnd.oci.image.manifest.v1+json");
    silt_json_key(b, SILT_LIT("config"));
    open_descriptor(b, "config.v1+json", config);
    silt_json_close(b, '}');
    silt_json_key(b, SILT_LIT("layers"));
    silt_json_open(b, '[');
    open_descriptor(b, "layer.v1.tar", layer);
    silt_json_close(b, '}');
    silt_json_close(b, ']');
    silt_json_close(b, '}');
}

static void write_index(struct silt_buf *b, const char *image, const struct blob *manifest)
{
    char name[SILT_REFERENCE_SIZE + 8];
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("schemaVersion"));
    silt_json_u64(b, 2);
    silt_json_key(b, SILT_LIT("manifests"));
    silt_json_open(b, '[');
    open_descriptor(b, "manifest.v1+json", manifest);
    if (image[0]) {
        full_name(image, name);
        silt_json_key(b, SILT_LIT("annotations"));
        silt_json_open(b, '{');
        add_pair(b, "io.containerd.image.name", name);
        add_pair(b, "org.opencontainers.image.ref.name", name);
        silt_json_close(b, '}');
    }
    silt_json_close(b, '}');
    silt_json_close(b, ']');
    silt_json_close(b, '}');
}

static void write_list(struct silt_buf *b, const char *image, const char *config, const char *layer)
{
    char name[SILT_REFERENCE_SIZE + 8];
    silt_json_open(b, '[');
    silt_json_open(b, '{');
    add_pair(b, "Config", config);
    silt_json_key(b, SILT_LIT("RepoTags"));
    silt_json_open(b, '[');
    if (image[0]) {
        full_name(image, name);
        silt_json_string(b, silt_slice_of(name));
    }
    silt_json_close(b, ']');
    silt_json_key(b, SILT_LIT("Layers"));
    silt_json_open(b, '[');
    silt_json_string(b, silt_slice_of(layer));
    silt_json_close(b, ']');
    silt_json_close(b, '}');
    silt_json_close(b, ']');
}

/* ---- the two formats ---- */

struct image {
    const struct silt_fetch_order *order; /* borrowed */
    struct blob layer, config, manifest;
    struct silt_buf config_text, text;
};

static const char *blob_name(const struct blob *b, char name[HEX_SIZE + 16])
{
    (void)snprintf(name, HEX_SIZE + 16, "blobs/sha256/%s", b->hex);
    return name;
}

static int write_oci(struct outer *o, struct image *i, struct silt_error *e)
{
    char name[HEX_SIZE + 16];
    write_manifest(&i->text, &i->config, &i->layer);
    if (measure_text(silt_buf_slice(&i->text), &i->manifest, e) < 0
        || add_text(o, "oci-layout", SILT_LIT("{\"imageLayoutVersion\":\"1.0.0\"}"), e) < 0
        || add_header(o, "blobs/", AE_IFDIR, 0, e) < 0
        || add_header(o, "blobs/sha256/", AE_IFDIR, 0, e) < 0
        || add_text(o, blob_name(&i->manifest, name), silt_buf_slice(&i->text), e) < 0
        || add_text(o, blob_name(&i->config, name), silt_buf_slice(&i->config_text), e) < 0)
        return -1;
    silt_buf_clear(&i->text);
    write_index(&i->text, i->order->image, &i->manifest);
    if (add_text(o, "index.json", silt_buf_slice(&i->text), e) < 0)
        return -1;
    return add_tree(o, blob_name(&i->layer, name), &i->layer, e);
}

static int write_docker(struct outer *o, struct image *i, struct silt_error *e)
{
    char config[HEX_SIZE + 16], layer[HEX_SIZE + 16];
    (void)snprintf(config, sizeof(config), "%s.json", i->config.hex);
    (void)snprintf(layer, sizeof(layer), "%s/layer.tar", i->layer.hex);
    write_list(&i->text, i->order->image, config, layer);
    if (add_text(o, "manifest.json", silt_buf_slice(&i->text), e) < 0
        || add_text(o, config, silt_buf_slice(&i->config_text), e) < 0)
        return -1;
    return add_tree(o, layer, &i->layer, e);
}

static int write_outer(struct outer *o, struct image *i, struct silt_error *e)
{
    if (!o->out || archive_write_set_format_gnutar(o->out) != ARCHIVE_OK
        || archive_write_set_bytes_per_block(o->out, BLOCK) != ARCHIVE_OK
        || archive_write_set_bytes_in_last_block(o->out, 1) != ARCHIVE_OK
        || archive_write_open(o->out, o, NULL, on_write, NULL) != ARCHIVE_OK)
        return silt_fail(e, SILT_UNAVAILABLE, "libarchive without tar");
    int got = i->order->format == SILT_FETCH_DOCKER ? write_docker(o, i, e) : write_oci(o, i, e);
    if (got == 0 && archive_write_close(o->out) != ARCHIVE_OK)
        got = fail_outer(o, e);
    if (got < 0)
        (void)archive_write_fail(o->out); /* so that freeing it writes nothing more */
    return got;
}

static int export_image(struct image *i, silt_slice config, int out, struct silt_fetch_result *ret,
                        struct silt_error *e)
{
    struct outer o = {.sink = {take_outer}, .fd = out};
    if (measure(&i->layer, &ret->left_out, e) < 0)
        return -1;
    write_config(&i->config_text, i->order, config, &i->layer);
    if (i->config_text.broken)
        return silt_fail(e, SILT_LIMIT, "the image says too much");
    if (measure_text(silt_buf_slice(&i->config_text), &i->config, e) < 0)
        return -1;
    o.out = archive_write_new();
    int got = write_outer(&o, i, e);
    (void)archive_write_free(o.out);
    ret->bytes = i->layer.size;
    memcpy(ret->digest, i->config.digest, sizeof(ret->digest));
    return got;
}

int silt_export(const struct silt_fetch_order *order, silt_slice config, int out,
                struct silt_fetch_result *ret, struct silt_error *e)
{
    struct to_fd root = {.sink = {take_fd}, .fd = out};
    struct image i = {.order = order};
    if (order->format == SILT_FETCH_TAR)
        return silt_pack(&root.sink, &ret->left_out, e);
    silt_buf_init(&i.config_text, TEXT_MAX);
    silt_buf_init(&i.text, TEXT_MAX);
    int got = export_image(&i, config, out, ret, e);
    silt_buf_fini(&i.config_text);
    silt_buf_fini(&i.text);
    return got;
}
