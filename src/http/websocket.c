/* SPDX-License-Identifier: Apache-2.0 */
#include "http/websocket.h"
#include "base/base64.h"
#include "base/own.h"

#include <assert.h>
#include <openssl/sha.h>

enum {
    FIN = 0x80,
    RESERVED = 0x70,
    OP = 0x0f,
    MASKED = 0x80,
    LEN = 0x7f,
    LEN_16 = 126,
    LEN_64 = 127,
    ACCEPT_TEXT_MAX = 119 /* a key and the standard's text */
};

void silt_ws_reader_init(struct silt_ws_reader *r, bool client, size_t max)
{
    *r = (struct silt_ws_reader){.client = client};
    silt_buf_init(&r->message, max);
}

void silt_ws_reader_fini(struct silt_ws_reader *r)
{
    silt_buf_fini(&r->message);
}

static enum silt_ws_got fail(struct silt_ws_reader *r, int code)
{
    r->code = code;
    return SILT_WS_BAD;
}

/* ---- frame head ---- */

static size_t length_bytes(uint8_t second)
{
    return (second & LEN) == LEN_16 ? 2 : (second & LEN) == LEN_64 ? 8 : 0;
}

static size_t head_size(const struct silt_ws_reader *r)
{
    return r->head_len < 2 ? 2
                           : 2 + length_bytes(r->head[1]) + ((r->head[1] & MASKED) != 0 ? 4 : 0);
}

static enum silt_ws_op op_of(const struct silt_ws_reader *r)
{
    return (enum silt_ws_op)(r->head[0] & OP);
}

static bool is_control(const struct silt_ws_reader *r)
{
    return (r->head[0] & 0x08) != 0;
}

/* 0, or the code to close with. The first two bytes decide most. */
static int check_head(const struct silt_ws_reader *r)
{
    unsigned op = r->head[0] & OP;
    bool fin = (r->head[0] & FIN) != 0, begun = r->type != SILT_WS_CONTINUE;
    bool masked = (r->head[1] & MASKED) != 0;
    bool known = op <= SILT_WS_BINARY || (op >= SILT_WS_CLOSE && op <= SILT_WS_PONG);
    if ((r->head[0] & RESERVED) != 0 || !known || masked == r->client)
        return SILT_WS_WRONG;
    if (is_control(r))
        return fin && (r->head[1] & LEN) <= SILT_WS_CONTROL_MAX ? 0 : SILT_WS_WRONG;
    return (op == SILT_WS_CONTINUE) == begun ? 0 : SILT_WS_WRONG;
}

/* False if longer than necessary or than possible. */
static bool read_length(struct silt_ws_reader *r)
{
    size_t n = length_bytes(r->head[1]);
    uint64_t len = n == 0 ? r->head[1] & LEN : 0;
    for (size_t i = 0; i < n; i++)
        len = len << 8 | r->head[2 + i];
    r->left = len;
    return n == 0 || (n == 2 ? len >= LEN_16 : len > UINT16_MAX && len <= INT64_MAX);
}

static int begin_frame(struct silt_ws_reader *r)
{
    if (!read_length(r))
        return SILT_WS_WRONG;
    r->in_frame = true;
    r->at = 0;
    if (is_control(r)) {
        r->control_len = 0;
        return 0;
    }
    if (op_of(r) != SILT_WS_CONTINUE)
        r->type = op_of(r);
    return r->left <= r->message.max - r->message.len ? 0 : SILT_WS_TOO_BIG;
}

/* 1: complete; 0: more bytes needed; else the code to close with. */
static int take_head(struct silt_ws_reader *r, silt_slice *in)
{
    while (r->head_len < head_size(r)) {
        if (in->len == 0)
            return 0;
        r->head[r->head_len++] = (uint8_t)*in->data++;
        in->len--;
        int code = r->head_len == 2 ? check_head(r) : 0;
        if (code != 0)
            return code;
    }
    int code = begin_frame(r);
    return code != 0 ? code : 1;
}

/* ---- payload ---- */

static void unmask(struct silt_ws_reader *r, char *bytes, size_t len)
{
    const uint8_t *mask = r->head + head_size(r) - 4;
    for (size_t i = 0; i < len && !r->client; i++)
        bytes[i] = (char)((uint8_t)bytes[i] ^ mask[(r->at + i) % 4]);
    r->at += len;
}

/* False if there is no memory for it. */
static bool take_payload(struct silt_ws_reader *r, silt_slice *in)
{
    size_t n = in->len < r->left ? in->len : (size_t)r->left;
    if (n == 0)
        return true;
    char *to = is_control(r) ? r->control + r->control_len : silt_buf_room(&r->message, n);
    if (to == NULL)
        return false;
    memcpy(to, in->data, n);
    unmask(r, to, n);
    if (is_control(r))
        r->control_len += n;
    else
        r->message.len += n;
    in->data += n;
    in->len -= n;
    r->left -= n;
    return true;
}

/* ---- messages and control frames ---- */

static bool is_good_code(int code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006)
           || (code >= 3000 && code <= 4999);
}

int silt_ws_close_code(silt_slice payload)
{
    return payload.len < 2 ? SILT_WS_NO_CODE
                           : (uint8_t)payload.data[0] << 8 | (uint8_t)payload.data[1];
}

static enum silt_ws_got end_close(struct silt_ws_reader *r, silt_slice payload)
{
    if (payload.len == 0)
        return SILT_WS_GOT_CLOSE;
    if (payload.len == 1 || !is_good_code(silt_ws_close_code(payload)))
        return fail(r, SILT_WS_WRONG);
    if (!silt_slice_is_utf8((silt_slice){payload.data + 2, payload.len - 2}))
        return fail(r, SILT_WS_NOT_UTF8);
    return SILT_WS_GOT_CLOSE;
}

static enum silt_ws_got end_control(struct silt_ws_reader *r, silt_slice *ret)
{
    *ret = (silt_slice){r->control, r->control_len};
    if (op_of(r) == SILT_WS_CLOSE)
        return end_close(r, *ret);
    return op_of(r) == SILT_WS_PING ? SILT_WS_GOT_PING : SILT_WS_GOT_PONG;
}

static enum silt_ws_got end_frame(struct silt_ws_reader *r, silt_slice *ret)
{
    r->in_frame = false;
    r->head_len = 0;
    if (is_control(r))
        return end_control(r, ret);
    if ((r->head[0] & FIN) == 0)
        return SILT_WS_MORE;
    *ret = silt_buf_slice(&r->message);
    r->done = true;
    if (r->type == SILT_WS_TEXT && !silt_slice_is_utf8(*ret))
        return fail(r, SILT_WS_NOT_UTF8);
    return SILT_WS_GOT_MESSAGE;
}

/* Frees the memory of a large message. */
static void forget_message(struct silt_ws_reader *r)
{
    enum { KEPT = 4096 };
    r->done = false;
    r->type = SILT_WS_CONTINUE;
    if (r->message.cap > KEPT)
        silt_buf_fini(&r->message);
    else
        silt_buf_clear(&r->message);
}

enum silt_ws_got silt_ws_read(struct silt_ws_reader *r, silt_slice *in, silt_slice *ret)
{
    if (r->done)
        forget_message(r);
    for (;;) {
        int head = r->code != 0 ? r->code : r->in_frame ? 1 : take_head(r, in);
        if (head > 1)
            return fail(r, head);
        if (head == 0)
            return SILT_WS_MORE;
        if (!take_payload(r, in))
            return fail(r, SILT_WS_TOO_BIG);
        if (r->left > 0)
            return SILT_WS_MORE;
        enum silt_ws_got got = end_frame(r, ret);
        if (got != SILT_WS_MORE)
            return got;
    }
}

/* ---- writing ---- */

static char *put_head(char *at, enum silt_ws_op op, uint64_t len, const uint8_t *mask)
{
    unsigned masked = mask != NULL ? MASKED : 0;
    size_t n = len < LEN_16 ? 0 : len <= UINT16_MAX ? 2 : 8;
    *at++ = (char)(FIN | op);
    *at++ = (char)(masked | (n == 0 ? (unsigned)len : n == 2 ? LEN_16 : LEN_64));
    for (size_t i = 0; i < n; i++)
        *at++ = (char)(len >> (8 * (n - 1 - i)));
    if (mask != NULL)
        memcpy(at, mask, 4);
    return mask != NULL ? at + 4 : at;
}

void silt_ws_put(struct silt_buf *b, enum silt_ws_op op, silt_slice payload, const uint8_t mask[4])
{
    char *from = silt_buf_room(b, SILT_WS_HEAD_MAX + payload.len);
    if (from == NULL)
        return;
    char *at = put_head(from, op, payload.len, mask);
    if (payload.len > 0)
        memcpy(at, payload.data, payload.len);
    for (size_t i = 0; i < payload.len && mask != NULL; i++)
        at[i] = (char)((uint8_t)at[i] ^ mask[i % 4]);
    b->len += (size_t)(at - from) + payload.len;
}

void silt_ws_put_close(struct silt_buf *b, int code, silt_slice reason, const uint8_t mask[4])
{
    char payload[SILT_WS_CONTROL_MAX];
    size_t len = reason.len < SILT_WS_REASON_MAX ? reason.len : SILT_WS_REASON_MAX;
    while (len < reason.len && len > 0 && ((uint8_t)reason.data[len] & 0xc0) == 0x80)
        len--; /* does not cut a character */
    payload[0] = (char)(code >> 8);
    payload[1] = (char)code;
    if (len > 0)
        memcpy(payload + 2, reason.data, len);
    silt_ws_put(b, SILT_WS_CLOSE, (silt_slice){payload, code == SILT_WS_NO_CODE ? 0 : 2 + len},
                mask);
}

void silt_ws_accept(silt_slice key, char ret[SILT_WS_ACCEPT_SIZE])
{
    static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t hash[SHA_DIGEST_LENGTH];
    struct silt_base64 x = {0};
    silt_auto_buf text, out;
    silt_buf_init(&text, ACCEPT_TEXT_MAX);
    silt_buf_init(&out, SILT_WS_ACCEPT_SIZE);
    silt_buf_add(&text, key);
    silt_buf_add(&text, silt_slice_of(magic));
    assert(!text.broken);
    (void)SHA1((const unsigned char *)text.data, text.len, hash);
    silt_base64_encode(&x, &out, (silt_slice){(const char *)hash, sizeof(hash)});
    silt_base64_encode_end(&x, &out);
    memcpy(ret, out.data, SILT_WS_ACCEPT_SIZE - 1);
    ret[SILT_WS_ACCEPT_SIZE - 1] = 0;
}
