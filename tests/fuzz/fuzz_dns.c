/* SPDX-License-Identifier: Apache-2.0 */
/* A question by DNS, as a sandbox sends it: what is understood is bounded, plain and answered
 * within its own size. */
#include "fuzz/fuzz.h"
#include "proxy/dns/wire.h"

static void check_name(const struct silt_dns_question *q)
{
    size_t len = strnlen(q->name, sizeof(q->name));
    demand(len < sizeof(q->name));
    for (size_t i = 0; i < len; i++)
        demand(q->name[i] > ' ' && q->name[i] < 0x7f && !(q->name[i] >= 'A' && q->name[i] <= 'Z'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_dns_question q;
    struct silt_error e;
    silt_slice text = {(const char *)data, size};
    if (silt_dns_parse(text, &q, &e) < 0 && e.code != SILT_INVALID)
        return 0;
    check_name(&q);
    demand(q.end <= size);
    char *copy = malloc(size);
    demand(copy != NULL);
    memcpy(copy, data, size);
    size_t len = silt_dns_answer_empty(copy, &q, SILT_DNS_SERVFAIL);
    demand(len == q.end && silt_dns_id(copy) == q.id);
    struct silt_dns_question again;
    demand(silt_dns_parse((silt_slice){copy, len}, &again, &e) < 0 && e.code == SILT_INVALID);
    demand(strcmp(again.name, q.name) == 0 && again.type == q.type);
    free(copy);
    return 0;
}
