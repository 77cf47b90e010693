/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody logs in by a cookie that we did not sign, and nobody visits a private port by such a
 * proof: the input is the head of a request, or (no head) a proof. */
#include "api/core/login.h"
#include "fuzz/fuzz.h"
#include "sandbox/preview/signed_url.h"

static struct silt_http_head head;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice bytes = {(const char *)data, size};
    struct silt_api api = {.token = SILT_LIT("0123456789abcdef0123456789abcdef")};
    struct silt_http_request r = {.head = &head};
    if (silt_http_parse(&head, bytes, SILT_HTTP_REQUEST) > 0)
        demand(!silt_login_has(&api, &r));
    demand(silt_signed_url_check(api.token, 7, bytes, 1) == 0);
    return 0;
}
