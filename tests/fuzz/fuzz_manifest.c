/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents of image archives: the first byte tells which. What is taken from them keeps
 * its bounds. */
#include "fetch/manifest.h"
#include "fuzz/fuzz.h"

static void check_path(const struct silt_blob *b)
{
    size_t len = strnlen(b->path, sizeof(b->path));
    demand(len > 0 && len < sizeof(b->path));
}

static void check(const struct silt_manifest *m)
{
    demand(m->layer_count <= SILT_MANIFEST_LAYERS_MAX && m->name_count <= SILT_MANIFEST_NAMES_MAX);
    check_path(&m->config);
    for (size_t i = 0; i < m->layer_count; i++)
        check_path(&m->layers[i]);
    for (size_t i = 0; i < m->name_count; i++)
        demand(m->names[i][0] != 0 && memchr(m->names[i], '\n', sizeof(m->names[i])) == NULL);
}

static void read_config(silt_slice json)
{
    static struct silt_manifest_config config;
    struct silt_error e;
    silt_auto_buf said;
    silt_buf_init(&said, SILT_MANIFEST_SAID_MAX);
    if (silt_manifest_read_config(json, &config, &said, &e) < 0)
        return;
    demand(config.count <= SILT_MANIFEST_LAYERS_MAX);
    demand(said.len >= 2 && said.data[0] == '{' && said.data[said.len - 1] == '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_manifest m;
    struct silt_blob blob;
    struct silt_error e;
    bool index;
    if (size == 0)
        return 0;
    silt_slice json = {(const char *)data + 1, size - 1};
    memset(&m, 0, sizeof(m));
    switch (data[0]) {
    case 'i':
        if (silt_manifest_read_index(json, "", &m, &blob, &e) == 0)
            check_path(&blob);
        memset(&m, 0, sizeof(m));
        if (silt_manifest_read_index(json, "name:1", &m, &blob, &e) == 0)
            check_path(&blob);
        break;
    case 'm':
        if (silt_manifest_read_oci(json, &m, &index, &e) == 0 && !index)
            check(&m);
        break;
    case 'd':
        if (silt_manifest_read_docker(json, size % 2 == 0 ? "" : "name:1", &m, &e) == 0)
            check(&m);
        break;
    default:
        read_config(json);
    }
    return 0;
}
