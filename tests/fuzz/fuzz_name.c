/* SPDX-License-Identifier: Apache-2.0 */
/* Names that callers choose: ids, images, digests, networks. What is taken holds nothing that could
 * be more than a name, and one spelling is read as itself. */
#include "base/digest.h"
#include "base/id.h"
#include "base/ip_prefix.h"
#include "base/reference.h"
#include "fuzz/fuzz.h"

static struct silt_error e;

static void check_id(silt_slice text)
{
    char host[SILT_HOSTNAME_SIZE];
    silt_id_hostname(text, host);
    demand(memchr(host, 0, sizeof(host)) != NULL);
    if (silt_id_check(text, &e) < 0)
        return;
    demand(text.len > 0 && text.len <= SILT_ID_MAX && memmem(text.data, text.len, "..", 2) == NULL);
    for (size_t i = 0; i < text.len; i++)
        demand(text.data[i] > ' ' && text.data[i] < 0x7f && text.data[i] != '/'
               && text.data[i] != '%');
}

static void check_reference(silt_slice text)
{
    char once[SILT_REFERENCE_SIZE], twice[SILT_REFERENCE_SIZE];
    if (silt_reference_read(text, once, &e) < 0)
        return;
    demand(silt_reference_read(silt_slice_of(once), twice, &e) == 0 && strcmp(once, twice) == 0);
    demand(silt_reference_tag(silt_slice_of(once)) <= strlen(once) && once[0] != '.'
           && strstr(once, "/.") == NULL);
}

static void check_networks(silt_slice text)
{
    static struct silt_ip_prefix_list list;
    char once[SILT_IP_PREFIX_TEXT];
    silt_ip_prefix p;
    if (silt_ip_prefix_list_parse(text, &list, &e) < 0)
        return;
    demand(list.count <= SILT_IP_PREFIX_OPEN_MAX);
    for (size_t i = 0; i < list.count; i++) {
        silt_ip_prefix_text(&list.items[i], once);
        demand(silt_ip_prefix_parse(silt_slice_of(once), &p, &e) == 0
               && silt_ip_prefix_covers(&p, &list.items[i])
               && silt_ip_prefix_covers(&list.items[i], &p));
        (void)silt_ip_prefix_is_closed(&p, &list);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice text = {(const char *)data, size};
    uint8_t digest[SILT_DIGEST_BYTES];
    check_id(text);
    check_reference(text);
    check_networks(text);
    if (silt_digest_parse(text, digest))
        demand(size == 2 * SILT_DIGEST_BYTES);
    if (silt_id_check_image(text, &e) == 0)
        demand(size <= 64);
    if (silt_id_is_env_name(text))
        demand(size > 0 && size <= 256 && memchr(data, '=', size) == NULL);
    return 0;
}
