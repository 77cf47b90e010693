/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/upload.h"
#include "base/own.h"
#include "sandbox/file/worker_pool.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 8, BLOCK_SIZE = 256 << 10, SHA256_SIZE = 32 };

/* Blocks are numbered as they fill; block n occupies slot n % BLOCKS until the worker has taken it
 * and it is hashed. */
struct silt_upload {
    struct silt_job job;
    struct silt_worker *threads; /* borrowed */
    struct silt_upload_sink *sink;
    EVP_MD_CTX *sha256;
    struct silt_share share; /* shared with the worker; not open for small uploads */
    char *bytes;             /* of all blocks: in the shared memory, or owned */
    size_t len[BLOCKS];
    size_t fill; /* bytes in the block `full` */
    uint64_t full, sent, taken,
        hashed;          /* number of the next block to be filled, sent, taken, hashed */
    uint64_t hash_until; /* a thread is hashing the blocks from `hashed` up to this one */
    size_t at;           /* offset in the block being sent */
    bool is_over;
    bool is_hashing; /* a thread is at work */
    bool is_left;    /* freed while the thread works */
    bool is_refused; /* `room` is due */
};

static char *place(const struct silt_upload *u, uint64_t number)
{
    return u->bytes + number % BLOCKS * BLOCK_SIZE;
}

static void hash(struct silt_job *j) /* on a thread */
{
    struct silt_upload *u = silt_outer(j, struct silt_upload, job);
    for (uint64_t n = u->hashed; n < u->hash_until; n++)
        if (u->len[n % BLOCKS] > 0
            && EVP_DigestUpdate(u->sha256, place(u, n), u->len[n % BLOCKS]) != 1)
            abort();
}

/* For one more piece from anywhere. */
static bool has_room(const struct silt_upload *u)
{
    uint64_t done = u->taken < u->hashed ? u->taken : u->hashed;
    return (BLOCKS - (u->full - done)) * BLOCK_SIZE - u->fill >= SILT_UPLOAD_PIECE_MAX;
}

static void hash_next(struct silt_upload *u)
{
    if (u->is_hashing || u->hashed == u->full)
        return;
    u->is_hashing = true;
    u->hash_until = u->full;
    silt_worker_submit(u->threads, &u->job);
}

static size_t next_len(const struct silt_upload *u)
{
    size_t left = u->len[u->sent % BLOCKS] - u->at;
    return u->share.bytes != NULL || left < SILT_FRAME_BODY_MAX ? left : SILT_FRAME_BODY_MAX;
}

static void send_blocks(struct silt_upload *u)
{
    while (u->sent < u->full) {
        size_t n = next_len(u);
        bool whole = u->at + n == u->len[u->sent % BLOCKS];
        bool last = whole && u->is_over && u->sent + 1 == u->full;
        if (!u->sink->feed(u->sink, (silt_slice){place(u, u->sent) + u->at, n}, last))
            return;
        u->at = whole ? 0 : u->at + n;
        u->sent += whole;
        if (u->share.bytes == NULL)
            u->taken = u->sent;
    }
}

static void tell_room(struct silt_upload *u)
{
    if (!u->is_refused || !has_room(u))
        return;
    u->is_refused = false;
    u->sink->room(u->sink);
}

static void on_hashed(struct silt_job *j)
{
    struct silt_upload *u = silt_outer(j, struct silt_upload, job);
    u->is_hashing = false;
    u->hashed = u->hash_until;
    if (u->is_left) {
        silt_upload_free(u);
        return;
    }
    hash_next(u);
    if (silt_upload_is_hashed(u))
        u->sink->hashed(u->sink); /* may free `u` */
    else
        tell_room(u);
}

static void find_place(struct silt_upload *u, bool many)
{
    struct silt_error e;
    if (many && silt_share_open(&u->share, (size_t)BLOCKS * BLOCK_SIZE, &e) == 0) {
        u->bytes = u->share.bytes;
        return;
    }
    u->bytes = malloc((size_t)BLOCKS * BLOCK_SIZE); /* pages are touched as they fill */
    if (u->bytes == NULL)
        abort();
}

struct silt_upload *silt_upload_new(struct silt_worker *threads, struct silt_upload_sink *sink,
                                    bool many)
{
    struct silt_upload *u = calloc(1, sizeof(*u));
    if (u == NULL)
        abort();
    find_place(u, many);
    u->threads = threads;
    u->sink = sink;
    u->job.run = hash;
    u->job.done = on_hashed;
    u->sha256 = EVP_MD_CTX_new();
    if (u->sha256 == NULL || EVP_DigestInit_ex(u->sha256, EVP_sha256(), NULL) != 1)
        abort();
    return u;
}

void silt_upload_free(struct silt_upload *u)
{
    if (u == NULL)
        return;
    u->is_left = true;
    if (u->is_hashing)
        return; /* on_hashed does it */
    EVP_MD_CTX_free(u->sha256);
    if (u->share.bytes == NULL)
        free(u->bytes);
    silt_share_close(&u->share);
    free(u);
}

const struct silt_share *silt_upload_share(const struct silt_upload *u)
{
    return u->share.bytes != NULL ? &u->share : NULL;
}

char *silt_upload_room(struct silt_upload *u, size_t *ret_size)
{
    *ret_size = BLOCK_SIZE - u->fill;
    return place(u, u->full) + u->fill;
}

static void close_block(struct silt_upload *u)
{
    u->len[u->full % BLOCKS] = u->fill;
    u->fill = 0;
    u->full++;
}

/* Bytes already read into their place are not copied. */
static void lay(struct silt_upload *u, silt_slice piece)
{
    while (piece.len > 0) {
        if (u->fill == BLOCK_SIZE)
            close_block(u);
        size_t n;
        char *to = silt_upload_room(u, &n);
        n = piece.len < n ? piece.len : n;
        if (piece.data != to)
            memcpy(to, piece.data, n);
        u->fill += n;
        piece.data += n;
        piece.len -= n;
    }
}

bool silt_upload_add(struct silt_upload *u, silt_slice piece, bool end)
{
    assert(has_room(u) && !u->is_over && piece.len <= BLOCK_SIZE);
    lay(u, piece);
    u->is_over = end;
    if (end || u->fill == BLOCK_SIZE)
        close_block(u);
    hash_next(u);
    send_blocks(u);
    u->is_refused = !has_room(u);
    return !u->is_refused;
}

void silt_upload_push(struct silt_upload *u)
{
    send_blocks(u);
    tell_room(u);
}

void silt_upload_taken(struct silt_upload *u)
{
    u->taken++;
    tell_room(u);
}

bool silt_upload_is_sent(const struct silt_upload *u)
{
    return u->is_over && u->sent == u->full;
}

bool silt_upload_is_hashed(const struct silt_upload *u)
{
    return u->is_over && u->hashed == u->full;
}

void silt_upload_hex(struct silt_upload *u, char out[SILT_SHA256_HEX_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_DigestFinal_ex(u->sha256, digest, &size) != 1 || size != SHA256_SIZE)
        abort();
    for (unsigned i = 0; i < size; i++)
        (void)snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
}
