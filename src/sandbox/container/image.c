/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/container.h"
#include "sandbox/core/image.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>

static struct silt_words words_of(const struct silt_image_words *w)
{
    return (struct silt_words){.items = w->items, .count = w->count, .given = w->given};
}

/* "name:tag@sha256:…" without the digest, which is the registry's and unknown here. */
static silt_slice without_digest(silt_slice reference)
{
    silt_slice rest = reference, name;
    return silt_slice_split(&rest, '@', &name) ? name : reference;
}

int silt_container_image(struct silt_registry *r, silt_slice reference,
                         struct silt_container_image *ret, struct silt_error *e)
{
    struct silt_image *image = silt_image_find(r, without_digest(reference), NULL);
    if (image == NULL)
        return silt_fail(e, SILT_NOT_FOUND, "No such image: %.*s",
                         (int)(reference.len < 300 ? reference.len : 300), reference.data);
    const struct silt_image_config *c = &image->config;
    *ret = (struct silt_container_image){
        .builtin = silt_image_config_is_builtin(c),
        .entrypoint = words_of(&c->entrypoint),
        .cmd = words_of(&c->cmd),
        .env = c->env,
        .workdir = c->workdir,
        .user = c->user,
        .type = silt_image_config_label(c, SILT_LIT("silt.type")),
        .max_instances = silt_image_config_label(c, SILT_LIT("silt.max_instances"))};
    memcpy(ret->digest, image->row.digest, sizeof(ret->digest));
    memcpy(ret->name, "sha256:", 8);
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(ret->name + 7 + i * 2, 3, "%02x", ret->digest[i]);
    return 0;
}
