/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/login.h"
#include "base/clock.h"
#include "sandbox/preview/preview_channel.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

enum { SIGNATURE = 2 * 32, VALUE_SIZE = 128 };

/* SECONDS-HEX: the expiry time and its signature. */
static void make_value(const struct silt_api *api, uint64_t until_s, char ret[VALUE_SIZE])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char text[64];
    int n = snprintf(text, sizeof(text), "silt login %llu", (unsigned long long)until_s);
    if (HMAC(EVP_sha256(), api->token.data, (int)api->token.len, (const unsigned char *)text,
             (size_t)n, sum, &len)
            == NULL
        || len * 2 != SIGNATURE)
        abort();
    n = snprintf(ret, VALUE_SIZE, "%llu-", (unsigned long long)until_s);
    for (unsigned i = 0; i < len; i++)
        n += snprintf(ret + n, VALUE_SIZE - (size_t)n, "%02x", sum[i]);
}

void silt_login_field(const struct silt_api *api, const struct silt_http_request *r,
                      char ret[SILT_LOGIN_FIELD_SIZE])
{
    char value[VALUE_SIZE];
    bool https =
        silt_slice_starts(silt_http_field(r->head, SILT_LIT("origin")), SILT_LIT("https://"));
    make_value(api, (uint64_t)(silt_clock_wall_ms() / 1000) + SILT_LOGIN_S, value);
    (void)snprintf(ret, SILT_LOGIN_FIELD_SIZE,
                   "Set-Cookie: " SILT_LOGIN_COOKIE
                   "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s\r\n",
                   value, SILT_LOGIN_S, https ? "; Secure" : "");
}

static bool is_good(const struct silt_api *api, silt_slice value)
{
    struct silt_error e;
    char want[VALUE_SIZE];
    silt_slice rest = value, number;
    uint64_t until_s, now_s = (uint64_t)(silt_clock_wall_ms() / 1000);
    if (value.len >= VALUE_SIZE || !silt_slice_split(&rest, '-', &number)
        || silt_slice_to_u64(number, now_s, now_s + SILT_LOGIN_S, &until_s, &e) < 0)
        return false;
    make_value(api, until_s, want);
    return silt_slice_eq_secret(value, silt_slice_of(want));
}

bool silt_login_has(const struct silt_api *api, const struct silt_http_request *r)
{
    for (size_t i = 0; i < r->head->count; i++) {
        silt_slice rest = r->head->fields[i].value, pair, name;
        if (!silt_slice_ieq(r->head->fields[i].name, SILT_LIT("cookie")))
            continue;
        while (rest.len > 0 && silt_slice_split(&rest, ';', &pair)) {
            pair = silt_slice_trim(pair);
            if (silt_slice_split(&pair, '=', &name)
                && silt_slice_eq(name, SILT_LIT(SILT_LOGIN_COOKIE)) && is_good(api, pair))
                return true;
        }
    }
    return false;
}
