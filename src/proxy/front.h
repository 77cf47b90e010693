/* SPDX-License-Identifier: Apache-2.0 */
/* front: servers that stand between visitors and us. What one of those says about its visitor is believed, of everybody else it is ignored. */
#pragma once

#include "base/prefix.h"
#include "http/parse.h"

#include <netinet/in.h>

enum { SILT_FRONT_STEPS_MAX = 16 }; /* of a list of fronts, from its end */

bool silt_front_is(const struct silt_prefix_list *fronts, const struct sockaddr_in6 *from); /* or one of IPv4 */
/* X-Forwarded-For: the last one in it that is no front itself. Nobody: *visitor stays as it is. */
void silt_front_visitor(const struct silt_prefix_list *fronts, const struct silt_http_head *h, struct sockaddr_in6 *visitor);
/* X-Forwarded-Proto, its last word; `otherwise` when it is neither http nor https. */
bool silt_front_is_tls(const struct silt_http_head *h, bool otherwise);
