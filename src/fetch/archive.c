/* SPDX-License-Identifier: Apache-2.0 */
/* archive: everything below runs in silt-fetch's jail, one stream per process. */
#include "fetch/archive.h"

#include "base/digest.h"
#include "base/own.h"
#include "fetch/disk.h"
#include "fetch/layer.h"
#include "fetch/layout.h"
#include "fetch/entry_path.h"

#include <archive_entry.h>

/* The first entry that is not the root; NULL: none. Counts those before it. */
static int first(struct silt_stream *s, struct archive_entry **ret, char clean[PATH_MAX],
                 uint64_t *entries, struct silt_error *e)
{
    clean[0] = 0;
    for (;; ++*entries) {
        if (silt_stream_next(s, ret, e) < 0)
            return -1;
        if (!*ret)
            return 0;
        const char *name = archive_entry_pathname(*ret);
        if (!name || silt_entry_path_clean(name, clean) || clean[0])
            return 0;
    }
}

static bool is_digest(silt_slice text)
{
    uint8_t digest[SILT_DIGEST_SIZE];
    const size_t digits = 2 * SILT_DIGEST_SIZE;
    if (silt_slice_starts(text, SILT_LIT("sha256:")))
        text = (silt_slice){text.data + 7, text.len - 7};
    return text.len >= digits && silt_digest_parse((silt_slice){text.data, digits}, digest);
}

/* `docker save` and similar tools start with `<hex>.json`, `<hex>/layer.tar` or the like. */
static bool is_image_archive(const char *first_name)
{
    static const char *const known[] = {"oci-layout",   "index.json", "manifest.json",
                                        "repositories", "blobs",      "blobs/sha256"};
    silt_slice name = silt_slice_of(first_name), blob = SILT_LIT("blobs/sha256/");
    for (size_t i = 0; i < SILT_COUNT(known); i++)
        if (strcmp(first_name, known[i]) == 0)
            return true;
    if (silt_slice_starts(name, blob))
        name = (silt_slice){name.data + blob.len, name.len - blob.len};
    return is_digest(name);
}

static int unpack_root(struct silt_stream *s, struct archive_entry *entry, struct silt_disk *d,
                       struct silt_error *e)
{
    while (entry) {
        if (silt_disk_take(d, entry, e) < 0 || silt_disk_write(d, s, entry, e) < 0
            || silt_stream_next(s, &entry, e) < 0)
            return -1;
    }
    if (silt_disk_finish(d, e) < 0 || silt_stream_finish(s, d->result->digest, e) < 0)
        return -1;
    if (d->result->entries == 0)
        return silt_fail(e, SILT_INVALID, "read archive: it is empty");
    return 0;
}

static int take_root(struct silt_stream *s, struct archive_entry *entry,
                     struct silt_fetch_result *ret, struct silt_error *e)
{
    struct silt_disk disk = {0};
    int got = silt_disk_open(&disk, s->limits, ret, e);
    if (got == 0)
        got = unpack_root(s, entry, &disk, e);
    silt_disk_close(&disk);
    return got;
}

static int fill_spool(struct silt_stream *s, struct archive_entry *entry, struct silt_spool *spool,
                      struct silt_error *e)
{
    uint8_t digest[SILT_DIGEST_SIZE];
    uint64_t entries = 0;
    for (; entry; entries++)
        if (entries > s->limits->entries || silt_spool_add(spool, s, entry, e) < 0
            || silt_stream_next(s, &entry, e) < 0)
            return entries > s->limits->entries
                       ? silt_fail(e, SILT_LIMIT, "too many entries in the archive")
                       : -1;
    return silt_stream_finish(s, digest, e);
}

static int take_layers(struct silt_stream *s, struct archive_entry *entry,
                       const struct silt_fetch_order *order, struct silt_fetch_result *ret,
                       struct silt_buf *said, struct silt_error *e)
{
    struct silt_spool spool;
    int got = silt_spool_open(&spool, e);
    if (got == 0)
        got = fill_spool(s, entry, &spool, e);
    if (got == 0)
        got = silt_layout_unpack(&spool, order, s->limits, ret, said, e);
    silt_spool_close(&spool);
    return got;
}

static int unpack(struct silt_stream *s, const struct silt_fetch_order *order,
                  struct silt_fetch_result *ret, struct silt_buf *said, struct silt_error *e)
{
    struct archive_entry *entry;
    char name[PATH_MAX];
    if (first(s, &entry, name, &ret->entries, e) < 0)
        return -1;
    if (order->format == SILT_FETCH_TAR
        || (order->format == SILT_FETCH_AUTO && !is_image_archive(name)))
        return take_root(s, entry, ret, e);
    return take_layers(s, entry, order, ret, said, e);
}

int silt_archive_unpack(int in, const struct silt_fetch_order *order,
                        const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                        struct silt_buf *said, struct silt_error *e)
{
    struct silt_source_fd source;
    struct silt_stream s = {0};
    int got = silt_stream_open(&s, silt_source_fd(&source, in), true, limits, e);
    if (got == 0)
        got = unpack(&s, order, ret, said, e);
    silt_stream_close(&s);
    return got;
}
