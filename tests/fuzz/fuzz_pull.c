/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller wants to pull: what skopeo is told is one address, never an option or a path, and
 * names no loopback. */
#include "fuzz/fuzz.h"
#include "sandbox/image/pull.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_pull_source s, again;
    struct silt_error e;
    if (silt_pull_read((silt_slice){(const char *)data, size}, &s, &e) < 0)
        return 0;
    size_t len = strnlen(s.address, sizeof(s.address));
    demand(len > 0 && len < sizeof(s.address) && s.address[0] != '-' && s.address[0] != '/');
    demand(strspn(s.address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@")
           == len);
    demand(strstr(s.address, "//") == NULL && strncmp(s.registry, "127.", 4) != 0
           && strncmp(s.registry, "localhost:", 10) != 0);
    demand(strnlen(s.registry, sizeof(s.registry)) > 0 && strnlen(s.name, sizeof(s.name)) > 0);
    demand(silt_pull_read(silt_slice_of(s.name), &again, &e) == 0);
    demand(strcmp(again.name, s.name) == 0 && strcmp(again.registry, s.registry) == 0);
    return 0;
}
