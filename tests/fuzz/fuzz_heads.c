/* SPDX-License-Identifier: Apache-2.0 */
/* What silt-proxy writes of a head that it took is a head again, framed as it says, and holds
 * nothing that was for one hop or for us. */
#include "fuzz/fuzz.h"
#include "proxy/preview/header_rewrite.h"

static struct silt_http_head head, again;

/* More than silt-proxy takes. */
static bool names_many(const struct silt_http_head *h)
{
    size_t count = 0;
    silt_slice item;
    for (size_t i = 0; i < h->count; i++) {
        silt_slice list = h->fields[i].value;
        while (silt_slice_ieq(h->fields[i].name, SILT_LIT("connection"))
               && silt_slice_split(&list, ',', &item))
            count++;
    }
    return count > 32;
}

static void check_request(silt_slice bytes)
{
    struct silt_host_rule rule = {.domain = SILT_LIT("d"), .paths = true};
    struct silt_host host;
    struct silt_header_rewrite_visit visit = {
        .host = &host, .address = "::1", .port = 80, .flags = (uint32_t)(bytes.len & 7)};
    silt_auto_buf out;
    silt_buf_init(&out, SILT_HEADER_REWRITE_MAX);
    if (silt_http_parse(&head, bytes, SILT_HTTP_REQUEST) <= 0
        || silt_host_read(&rule, &head, &host) != 0)
        return;
    demand(strlen(host.name) > 0 && strlen(host.name) < SILT_PREVIEW_NAME);
    silt_header_rewrite_request(&out, &head, &visit);
    demand(out.broken == names_many(&head));
    if (out.broken)
        return;
    int len = silt_http_parse(&again, silt_buf_slice(&out), SILT_HTTP_REQUEST);
    demand(len == (int)out.len || len == -414
           || len == -431); /* what we add may be too much for ourselves */
    if (len < 0)
        return;
    demand(again.chunked == head.chunked && again.has_length == head.has_length
           && again.length == head.length);
    demand(!again.upgrade && !again.close
           && silt_http_field(&again, SILT_LIT("connection")).data == NULL);
}

static void check_answer(silt_slice bytes)
{
    silt_auto_buf out;
    silt_buf_init(&out, SILT_HEADER_REWRITE_MAX);
    if (silt_http_parse(&head, bytes, SILT_HTTP_RESPONSE) <= 0)
        return;
    struct silt_body_framing body = silt_body_framing_of_answer(&head, false);
    struct silt_header_rewrite_answer a = {
        .as = body.kind == SILT_BODY_FRAMING_TO_END ? SILT_BODY_FRAMING_CHUNKED : body.kind,
        .flags = (uint32_t)(bytes.len & 7)};
    silt_header_rewrite_answer(&out, &head, &a);
    demand(out.broken == names_many(&head));
    if (out.broken)
        return;
    if (out.len > SILT_HTTP_HEAD_MAX || head.count + 4 > SILT_HTTP_FIELDS_MAX)
        return; /* what we add is too much for ourselves */
    demand(silt_http_parse(&again, silt_buf_slice(&out), SILT_HTTP_RESPONSE) == (int)out.len);
    demand(again.status == head.status && silt_body_framing_of_answer(&again, false).kind == a.as);
    demand(head.status == 101 || !again.upgrade);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice bytes = {(const char *)data, size};
    check_request(bytes);
    check_answer(bytes);
    return 0;
}
