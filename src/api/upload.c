/* SPDX-License-Identifier: Apache-2.0 */
#include "api/upload.h"
#include "base/own.h"
#include "sandbox/work.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 3, BLOCK_SIZE = 6 * SILT_FRAME_BODY_MAX, SHA256_SIZE = 32 };

struct block {
    size_t len;
    char bytes[BLOCK_SIZE];
};

/* Blocks are numbered as they fill; number n lies in blocks[n % BLOCKS] until it is sent and hashed. */
struct silt_upload {
    struct silt_job job;
    struct silt_worker *threads; /* borrowed */
    struct silt_upload_sink *sink;
    EVP_MD_CTX *sha256;
    uint64_t full, sent, hashed; /* numbers of the next one to be that */
    size_t at;                   /* of the one that is being sent */
    bool is_begun; /* the one that fills */
    bool is_over;
    bool is_hashing; /* a thread has the block `hashed` */
    bool is_left;    /* freed meanwhile */
    bool is_refused; /* owes a `room` */
    struct block blocks[BLOCKS];
};

static struct block *block(struct silt_upload *u, uint64_t number)
{
    return &u->blocks[number % BLOCKS];
}

static void hash(struct silt_job *j) /* on a thread */
{
    struct silt_upload *u = silt_container_of(j, struct silt_upload, job);
    struct block *b = block(u, u->hashed);
    if (b->len > 0 && EVP_DigestUpdate(u->sha256, b->bytes, b->len) != 1)
        abort();
}

static bool has_room(const struct silt_upload *u)
{
    uint64_t done = u->sent < u->hashed ? u->sent : u->hashed;
    return u->full - done < BLOCKS;
}

static void hash_next(struct silt_upload *u)
{
    if (u->is_hashing || u->hashed == u->full)
        return;
    u->is_hashing = true;
    silt_worker_submit(u->threads, &u->job);
}

/* Also of the block that still fills: nothing waits here for more. */
static void send_blocks(struct silt_upload *u)
{
    while (u->sent < u->full || (u->is_begun && u->at < block(u, u->sent)->len)) {
        struct block *b = block(u, u->sent);
        size_t left = b->len - u->at;
        size_t n = left < SILT_FRAME_BODY_MAX ? left : SILT_FRAME_BODY_MAX;
        bool last = u->is_over && u->sent + 1 == u->full && n == left;
        if ((n > 0 || last) && !u->sink->feed(u->sink, (silt_slice){b->bytes + u->at, n}, last))
            return;
        u->at += n;
        if (u->at < b->len || u->sent == u->full)
            continue;
        u->at = 0;
        u->sent++;
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
    struct silt_upload *u = silt_container_of(j, struct silt_upload, job);
    u->is_hashing = false;
    u->hashed++;
    if (u->is_left) {
        silt_upload_free(u);
        return;
    }
    hash_next(u);
    if (silt_upload_is_hashed(u))
        u->sink->hashed(u->sink); /* may free it */
    else
        tell_room(u);
}

struct silt_upload *silt_upload_new(struct silt_worker *threads, struct silt_upload_sink *sink)
{
    struct silt_upload *u = malloc(sizeof(*u)); /* the blocks are touched as they fill */
    if (u == NULL)
        abort();
    memset(u, 0, offsetof(struct silt_upload, blocks));
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
    free(u);
}

/* A block is full when another piece might not fit: pieces are never cut. */
bool silt_upload_add(struct silt_upload *u, silt_slice piece, bool end)
{
    struct block *b = block(u, u->full);
    b->len = u->is_begun ? b->len : 0;
    u->is_begun = true;
    assert(has_room(u) && piece.len <= SILT_UPLOAD_PIECE_MAX && !u->is_over);
    if (piece.len > 0)
        memcpy(b->bytes + b->len, piece.data, piece.len);
    b->len += piece.len;
    u->is_over = end;
    if (end || b->len + SILT_UPLOAD_PIECE_MAX > BLOCK_SIZE) {
        u->full++;
        u->is_begun = false;
        hash_next(u);
    }
    send_blocks(u);
    u->is_refused = !has_room(u);
    return !u->is_refused;
}

void silt_upload_push(struct silt_upload *u)
{
    send_blocks(u);
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
