/* SPDX-License-Identifier: Apache-2.0 */
/* trusted_proxy: reverse proxies in front of silt-proxy. What they say about their client
 * (X-Forwarded-*) is believed; from anybody else it is ignored. */
#pragma once

#include "base/ip_prefix.h"
#include "http/parse.h"

#include <netinet/in.h>

enum { SILT_TRUSTED_PROXY_STEPS_MAX = 16 }; /* of a list of fronts, from its end */

bool silt_trusted_proxy_is(const struct silt_ip_prefix_list *fronts,
                           const struct sockaddr_in6 *from); /* or one of IPv4 */
/* X-Forwarded-For: the last one in it that is no front itself. Nobody: *visitor stays as it is. */
void silt_trusted_proxy_visitor(const struct silt_ip_prefix_list *fronts,
                                const struct silt_http_head *h, struct sockaddr_in6 *visitor);
/* X-Forwarded-Proto, its last word; `otherwise` when it is neither http nor https. */
bool silt_trusted_proxy_is_tls(const struct silt_http_head *h, bool otherwise);
