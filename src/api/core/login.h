/* SPDX-License-Identifier: Apache-2.0 */
/* login: browser login. The user types the token once on our login page and gets a cookie, valid
 * only for our own pages and the WebSockets they open. The cookie is a date signed with the token,
 * so siltd stores nothing. */
#pragma once

#include "api/core/api.h"

enum { SILT_LOGIN_S = 7 * 24 * 3600, SILT_LOGIN_FIELD_SIZE = 256 };

/* Builds the Set-Cookie response header, line end included. If the page's Origin is https, the
 * cookie is marked Secure. */
void silt_login_field(const struct silt_api *api, const struct silt_http_request *r,
                      char ret[SILT_LOGIN_FIELD_SIZE]);
/* Whether the request carries a valid login cookie that has not expired. */
bool silt_login_has(const struct silt_api *api, const struct silt_http_request *r);
