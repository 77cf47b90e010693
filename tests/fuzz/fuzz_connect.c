/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a captive sandbox's connection, the answer of the program that decides, and
 * patterns of names: the first byte chooses. */
#include "proxy/egress/http_connect.h"
#include "base/glob.h"
#include "fuzz/fuzz.h"

static void look(silt_slice bytes, uint16_t port)
{
    struct silt_http_connect_hints h;
    struct sockaddr_storage at = {.ss_family = AF_INET};
    silt_auto_buf out;
    silt_buf_init(&out, 4096);
    if (bytes.len == 0 || !silt_http_connect_look(bytes, port, &h))
        return;
    silt_http_connect_write(&out, &at, &at, &h);
    demand(!out.broken);
    /* However it was asked for, it is one head: nobody gets a field into it. */
    size_t lines = 0;
    for (size_t i = 0; i < out.len; i++)
        lines += out.data[i] == '\n';
    demand(lines == 6U + (h.sni[0] != 0) + (h.host[0] != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t steps = 0;
    silt_slice bytes = {(const char *)data + 1, size - 1}, globs;
    int status = 0;
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        look(bytes, 80);
        break;
    case 1:
        look(bytes, 443);
        break;
    case 2: {
        int len = silt_http_connect_read(bytes, &status);
        demand(len <= (int)size && (len <= 0 || (status >= 200 && status <= 999)));
        break;
    }
    default:
        if (silt_slice_split(&bytes, '|', &globs))
            (void)silt_glob_hosts_match(globs, bytes, &steps);
    }
    return 0;
}
