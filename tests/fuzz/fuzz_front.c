/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever a front says its visitor is, it is an address; and no front, unless all of them are. */
#include "fuzz/fuzz.h"
#include "proxy/preview/trusted_proxy.h"

static struct silt_http_head head;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_ip_prefix_list fronts;
    struct silt_error e;
    struct sockaddr_in6 who = {0}, before;
    demand(silt_ip_prefix_list_parse(SILT_LIT("127.0.0.0/8, ::1, fd00::/8"), &fronts, &e) == 0);
    if (silt_http_parse(&head, (silt_slice){(const char *)data, size}, SILT_HTTP_REQUEST) <= 0)
        return 0;
    before = who;
    silt_trusted_proxy_visitor(&fronts, &head, &who);
    demand(who.sin6_family == AF_INET6 || memcmp(&who, &before, sizeof(who)) == 0);
    bool https = silt_trusted_proxy_is_tls(&head, true),
         plain = !silt_trusted_proxy_is_tls(&head, false);
    demand(https || plain);
    (void)silt_trusted_proxy_is(&fronts, &who);
    return 0;
}
