/* SPDX-License-Identifier: Apache-2.0 */
/* json-check: reads documents from stdin, each with its length in four bytes (big-endian) before
 * it, and answers each in the same way: the document written again, or "!" and the reason. */
#include "unit/json/tree.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENT_MAX = 64 << 20, MEMORY_MAX = 1 << 30 };

static void answer(silt_slice bytes)
{
    uint32_t size = htonl((uint32_t)bytes.len);
    if (fwrite(&size, sizeof(size), 1, stdout) != 1
        || fwrite(bytes.data, 1, bytes.len, stdout) != bytes.len)
        exit(1);
}

static void check(silt_slice text)
{
    silt_auto_arena arena;
    silt_auto_buf out;
    struct silt_error e;
    const struct silt_json *v;
    silt_arena_init(&arena, MEMORY_MAX);
    silt_buf_init(&out, MEMORY_MAX);
    if (silt_json_read(&arena, text, &v, &e) < 0)
        silt_buf_addf(&out, "!%s", e.text);
    else
        tree_write(&out, v);
    answer(silt_buf_slice(&out));
}

int main(void)
{
    uint32_t size;
    while (fread(&size, sizeof(size), 1, stdin) == 1) {
        size = ntohl(size);
        if (size > DOCUMENT_MAX)
            return 1;
        char *text = malloc(size + (size == 0));
        if (text == NULL || fread(text, 1, size, stdin) != size)
            return 1;
        check((silt_slice){text, size});
        free(text);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
