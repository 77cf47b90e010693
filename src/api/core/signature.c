/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/signature.h"
#include "base/clock.h"
#include "sandbox/core/sandbox.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

enum { TEXT_MAX = 16 << 10 };

/* Every part but the last has a length or no line break, so no two texts are the same by chance. */
void silt_signature_make(const struct silt_api *api, const struct silt_signature *s,
                         char ret[SILT_SIGNATURE_SIZE])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    silt_auto_buf b;
    silt_buf_init(&b, TEXT_MAX);
    silt_buf_addf(&b, "silt file %llu %lld ", (unsigned long long)s->until_s,
                  (long long)s->created_ms);
    silt_buf_add(&b, s->method);
    silt_buf_add_byte(&b, ' ');
    silt_buf_add(&b, s->id);
    silt_buf_add_byte(&b, '\n');
    silt_buf_add(&b, s->path);
    if (b.broken
        || HMAC(EVP_sha256(), api->token.data, (int)api->token.len, (const unsigned char *)b.data,
                b.len, sum, &len)
               == NULL
        || len * 2 + 1 != SILT_SIGNATURE_SIZE)
        abort();
    for (unsigned i = 0; i < len; i++)
        (void)snprintf(ret + (size_t)i * 2, 3, "%02x", sum[i]);
}

/* The signature is for a file as it is: no other parameter may change what the request does. */
static bool is_plain(const struct silt_http_request *r)
{
    silt_slice rest = r->head->query, pair, name;
    while (rest.len > 0 && silt_slice_split(&rest, '&', &pair)) {
        if (!silt_slice_split(&pair, '=', &name))
            return false;
        if (silt_slice_eq(name, SILT_LIT("format")) && !silt_slice_eq(pair, SILT_LIT("raw")))
            return false;
        if (!silt_slice_eq(name, SILT_LIT("path")) && !silt_slice_eq(name, SILT_LIT("format"))
            && !silt_slice_eq(name, SILT_LIT("expires"))
            && !silt_slice_eq(name, SILT_LIT("signature")))
            return false;
    }
    return silt_query(r, SILT_LIT("format")).len > 0;
}

bool silt_signature_has(struct silt_api *api, struct silt_http_request *r, silt_slice id)
{
    silt_slice given = silt_query(r, SILT_LIT("signature"));
    silt_slice path = silt_query(r, SILT_LIT("path"));
    char right[SILT_SIGNATURE_SIZE];
    struct silt_error e;
    if (given.len == 0 || path.len == 0 || silt_id_check(id, &e) < 0)
        return false;
    const struct silt_sandbox *s = silt_registry_find(api->registry, id);
    bool head = silt_slice_eq(r->head->method, SILT_LIT("HEAD"));
    struct silt_signature x = {.method = head ? SILT_LIT("GET") : r->head->method, .id = id};
    if (s == NULL || !is_plain(r) || !silt_query_decode(r, path, &x.path)
        || x.path.len > TEXT_MAX / 2
        || silt_slice_to_u64(silt_query(r, SILT_LIT("expires")),
                             (uint64_t)(silt_clock_wall_ms() / 1000), UINT32_MAX, &x.until_s, &e)
               < 0)
        return false;
    x.created_ms = s->row.created_ms;
    silt_signature_make(api, &x, right);
    return silt_slice_eq_secret(given, silt_slice_of(right));
}
