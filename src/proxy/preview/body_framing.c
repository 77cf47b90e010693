/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/body_framing.h"

struct silt_body_framing silt_body_framing_of_request(const struct silt_http_head *h)
{
    if (h->chunked)
        return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_CHUNKED};
    if (h->has_length && h->length > 0)
        return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_LENGTH, .left = h->length};
    return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_NONE};
}

struct silt_body_framing silt_body_framing_of_answer(const struct silt_http_head *h, bool to_head)
{
    bool never = h->status < 200 || h->status == 204 || h->status == 304;
    if (to_head || never || (h->has_length && h->length == 0))
        return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_NONE};
    if (h->chunked)
        return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_CHUNKED};
    if (h->has_length)
        return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_LENGTH, .left = h->length};
    return (struct silt_body_framing){.kind = SILT_BODY_FRAMING_TO_END};
}

static enum silt_http_chunk take(silt_slice *in, uint64_t most, silt_slice *ret_data)
{
    size_t n = in->len < most ? in->len : (size_t)most;
    *ret_data = (silt_slice){in->data, n};
    in->data += n;
    in->len -= n;
    return SILT_HTTP_CHUNK_DATA;
}

enum silt_http_chunk silt_body_framing_next(struct silt_body_framing *b, silt_slice *in,
                                            silt_slice *ret_data)
{
    switch (b->kind) {
    case SILT_BODY_FRAMING_NONE:
        return SILT_HTTP_CHUNK_END;
    case SILT_BODY_FRAMING_CHUNKED:
        return silt_http_dechunk(&b->chunks, in, ret_data);
    case SILT_BODY_FRAMING_LENGTH:
        if (b->left == 0)
            return SILT_HTTP_CHUNK_END;
        if (in->len == 0)
            return SILT_HTTP_CHUNK_MORE;
        (void)take(in, b->left, ret_data);
        b->left -= ret_data->len;
        return SILT_HTTP_CHUNK_DATA;
    case SILT_BODY_FRAMING_TO_END:
        break;
    }
    return in->len == 0 ? SILT_HTTP_CHUNK_MORE : take(in, UINT64_MAX, ret_data);
}

void silt_body_framing_put(enum silt_body_framing_kind as, struct silt_buf *out, silt_slice data)
{
    if (as == SILT_BODY_FRAMING_NONE || data.len == 0)
        return;
    if (as == SILT_BODY_FRAMING_CHUNKED)
        silt_buf_addf(out, "%zx\r\n", data.len);
    silt_buf_add(out, data);
    if (as == SILT_BODY_FRAMING_CHUNKED)
        silt_buf_add(out, SILT_LIT("\r\n"));
}

void silt_body_framing_end(enum silt_body_framing_kind as, struct silt_buf *out)
{
    if (as == SILT_BODY_FRAMING_CHUNKED)
        silt_buf_add(out, SILT_LIT("0\r\n\r\n"));
}
