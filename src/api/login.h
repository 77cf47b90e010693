/* SPDX-License-Identifier: Apache-2.0 */
/* login: how a browser comes in: the token is typed once on a page of ours and becomes a cookie, which counts for our own pages and for
 * WebSockets that they open, and for nothing else. The cookie is a date, signed with the token: nothing is remembered. */
#pragma once

#include "api/api.h"

enum { SILT_LOGIN_S = 7 * 24 * 3600, SILT_LOGIN_FIELD_SIZE = 256 };

/* The field of an answer, with its end of line. Where the page came by https, as its origin tells, the cookie is for https only. */
void silt_login_field(const struct silt_api *api, const struct silt_http_request *r, char ret[SILT_LOGIN_FIELD_SIZE]);
/* Whether it has a cookie of ours that still counts. */
bool silt_login_has(const struct silt_api *api, const struct silt_http_request *r);
