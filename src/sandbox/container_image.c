/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container.h"
#include "sandbox/image.h"
#include "sandbox/sandbox.h"

#include <stdio.h>

static silt_slice without(silt_slice s, silt_slice prefix)
{
    return silt_slice_starts(s, prefix) ? (silt_slice){s.data + prefix.len, s.len - prefix.len} : s;
}

static silt_slice plain(silt_slice reference)
{
    silt_slice s = reference, head;
    if (silt_slice_split(&s, '@', &head))
        reference = head;
    reference = without(without(reference, SILT_LIT("docker.io/")), SILT_LIT("library/"));
    silt_slice latest = SILT_LIT(":latest");
    if (reference.len > latest.len && memcmp(reference.data + reference.len - latest.len, latest.data, latest.len) == 0)
        reference.len -= latest.len;
    return reference;
}

int silt_container_image(struct silt_registry *r, silt_slice reference, struct silt_container_image *ret,
                         struct silt_error *e)
{
    silt_slice name = plain(reference);
    struct silt_image *image = silt_registry_image(r, name);
    if (image == NULL && silt_slice_starts(name, SILT_LIT("cloudflare/sandbox")))
        image = silt_registry_image(r, SILT_LIT("base"));
    if (image == NULL)
        return silt_fail(e, SILT_NOT_FOUND, "No such image: %.*s", (int)reference.len, reference.data);
    *ret = (struct silt_container_image){0};
    (void)snprintf(ret->name, sizeof(ret->name), "%s", image->row.name);
    memcpy(ret->digest, image->row.digest, sizeof(ret->digest));
    ret->builtin = strcmp(image->row.name, "base") == 0 || strcmp(image->row.name, "host") == 0;
    return 0;
}
