/* SPDX-License-Identifier: Apache-2.0 */
/* What a resolver answers, which a stranger wrote: it is read within its bounds, and an answer that
 * we write instead has no closed address in it. */
#include "fuzz/fuzz.h"
#include "proxy/dns/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct silt_ip_prefix_list none;
    struct silt_dns_question q;
    struct silt_dns_answer a, again;
    struct silt_error e;
    if (silt_dns_parse((silt_slice){(const char *)data, size}, &q, &e) < 0
        && e.code != SILT_INVALID)
        return 0;
    char *copy = malloc(size);
    demand(copy != NULL);
    memcpy(copy, data, size);
    if (silt_dns_answer_read(copy, size, &q, &none, 3600, &a, &e) == 0) {
        demand(a.count <= SILT_DNS_ADDRESSES_MAX);
        demand(a.count == 0 || a.ttl_s <= 3600);
        size_t len = silt_dns_answer_write(copy, size, &q, &a);
        demand(len >= q.end && len <= size);
        demand(silt_dns_answer_read(copy, len, &q, &none, 0, &again, &e) == 0);
        demand(again.closed == 0 && again.count <= a.count);
    }
    free(copy);
    return 0;
}
