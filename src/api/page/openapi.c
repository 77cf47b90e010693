/* SPDX-License-Identifier: Apache-2.0 */
/* docs/openapi.json and docs/openapi-compat.json, embedded in the program by tools/embed.py. */
#include "api/core/api.h"

extern const unsigned char silt_openapi[], silt_openapi_compat[];
extern const size_t silt_openapi_size, silt_openapi_compat_size;

static void send(struct silt_http_request *r, const unsigned char *bytes, size_t size)
{
    silt_http_reply(r, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0},
                    (silt_slice){(const char *)bytes, size});
}

SILT_HANDLER(silt_api_openapi)
{
    (void)args;
    send(r, silt_openapi, silt_openapi_size);
}

SILT_HANDLER(silt_api_openapi_compat)
{
    (void)args;
    send(r, silt_openapi_compat, silt_openapi_compat_size);
}
