/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects chunk extensions: no client needs them, and they can be used to smuggle a second
 * message. */
#include "http/chars.h"
#include "http/parse.h"

enum { TRAILERS_MAX = 4096, DIGITS_MAX = 15 };

enum state {
    FIRST_DIGIT,
    DIGIT,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    NAME,
    VALUE,
    VALUE_LF,
    LAST_LF,
    DONE
};

static enum state expect(char got, char wanted, enum state next, bool *bad)
{
    *bad = got != wanted;
    return next;
}

static enum state take_size(struct silt_http_chunks *c, char byte, bool *bad)
{
    int digit = silt_hex_digit(byte);
    if (digit < 0) {
        *bad = c->state == FIRST_DIGIT || byte != '\r';
        c->junk = 0;
        return SIZE_LF;
    }
    *bad = ++c->junk > DIGITS_MAX;
    c->left = c->left << 4 | (uint64_t)digit;
    return DIGIT;
}

static enum state take_trailer(struct silt_http_chunks *c, char byte, bool *bad)
{
    *bad = ++c->junk > TRAILERS_MAX;
    switch (c->state) {
    case TRAILER:
        if (byte == '\r')
            return LAST_LF;
        *bad |= !silt_http_is_token[(unsigned char)byte];
        return NAME;
    case NAME:
        if (byte == ':')
            return VALUE;
        *bad |= !silt_http_is_token[(unsigned char)byte];
        return NAME;
    default:
        if (byte == '\r')
            return VALUE_LF;
        *bad |= !silt_http_is_text[(unsigned char)byte];
        return VALUE;
    }
}

static enum state step(struct silt_http_chunks *c, char byte, bool *bad)
{
    switch ((enum state)c->state) {
    case FIRST_DIGIT:
    case DIGIT:
        return take_size(c, byte, bad);
    case SIZE_LF:
        return expect(byte, '\n', c->left > 0 ? DATA : TRAILER, bad);
    case DATA_CR:
        return expect(byte, '\r', DATA_LF, bad);
    case DATA_LF:
        return expect(byte, '\n', FIRST_DIGIT, bad);
    case TRAILER:
    case NAME:
    case VALUE:
        return take_trailer(c, byte, bad);
    case VALUE_LF:
        return expect(byte, '\n', TRAILER, bad);
    case LAST_LF:
        return expect(byte, '\n', DONE, bad);
    case DATA:
    case DONE:
        break;
    }
    *bad = true;
    return DONE;
}

static void take_data(struct silt_http_chunks *c, silt_slice *in, silt_slice *ret_data)
{
    size_t n = in->len < c->left ? in->len : (size_t)c->left;
    *ret_data = (silt_slice){in->data, n};
    in->data += n;
    in->len -= n;
    c->left -= n;
    if (c->left == 0)
        c->state = DATA_CR;
}

enum silt_http_chunk silt_http_dechunk(struct silt_http_chunks *c, silt_slice *in,
                                       silt_slice *ret_data)
{
    while (in->len > 0 && c->state != DONE) {
        if (c->state == DATA) {
            take_data(c, in, ret_data);
            return SILT_HTTP_CHUNK_DATA;
        }
        bool bad = false;
        c->state = step(c, *in->data, &bad);
        if (bad)
            return SILT_HTTP_CHUNK_BAD;
        in->data++;
        in->len--;
    }
    return c->state == DONE ? SILT_HTTP_CHUNK_END : SILT_HTTP_CHUNK_MORE;
}
