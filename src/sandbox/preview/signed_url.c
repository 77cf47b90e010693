/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/preview/signed_url.h"
#include "base/own.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHA256_SIZE = 32 };

static void sign(silt_slice secret, const struct silt_signed_url *p,
                 char ret_hex[SHA256_SIZE * 2 + 1])
{
    char text[96];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    int n = snprintf(text, sizeof(text), "silt preview 1 %llu %lld", (unsigned long long)p->route,
                     (long long)p->until_s);
    if (HMAC(EVP_sha256(), secret.data, (int)secret.len, (const unsigned char *)text, (size_t)n,
             mac, &size)
            == NULL
        || size != SHA256_SIZE)
        abort(); /* no access with a missing signature */
    for (unsigned i = 0; i < SHA256_SIZE; i++)
        (void)snprintf(ret_hex + i * 2, 3, "%02x", mac[i]);
}

void silt_signed_url_write(silt_slice secret, const struct silt_signed_url *p,
                           char ret[SILT_PREVIEW_PROOF])
{
    char hex[SHA256_SIZE * 2 + 1];
    sign(secret, p, hex);
    (void)snprintf(ret, SILT_PREVIEW_PROOF, "%lld.%s", (long long)p->until_s, hex);
}

int64_t silt_signed_url_check(silt_slice secret, uint64_t route, silt_slice text, int64_t now_s)
{
    char hex[SHA256_SIZE * 2 + 1];
    silt_slice time;
    uint64_t until = 0;
    struct silt_error e;
    if (!silt_slice_split(&text, '.', &time)
        || silt_slice_to_u64(time, 1, INT64_MAX, &until, &e) < 0)
        return 0;
    sign(secret, &(struct silt_signed_url){.route = route, .until_s = (int64_t)until}, hex);
    if (!silt_slice_eq_secret(text, silt_slice_of(hex)) || (int64_t)until <= now_s)
        return 0;
    return (int64_t)until - now_s;
}
