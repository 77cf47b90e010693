/* SPDX-License-Identifier: Apache-2.0 */
/* docs/openapi.json, embedded in the program by tools/embed.py. */
#include "api/core/api.h"

extern const unsigned char silt_openapi[];
extern const size_t silt_openapi_size;

SILT_HANDLER(silt_api_openapi)
{
    (void)args;
    silt_http_reply(r, 200, SILT_LIT("application/json"), (silt_slice){NULL, 0},
                    (silt_slice){(const char *)silt_openapi, silt_openapi_size});
}
