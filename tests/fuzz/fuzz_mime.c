/* SPDX-License-Identifier: Apache-2.0 */
/* How a file begins, and names against patterns: the bytes up to the first newline are a pattern,
 * the line after it a path, and all of it the beginning of a file. */
#include "fuzz/fuzz.h"
#include "worker/type/mime.h"
#include "base/glob.h"

enum { NAME_SIZE = 256 };

static void copy_line(silt_slice *rest, char out[NAME_SIZE])
{
    silt_slice line = {"", 0};
    (void)silt_slice_split(rest, '\n', &line);
    size_t len = line.len < NAME_SIZE - 1 ? line.len : NAME_SIZE - 1;
    memcpy(out, line.data, len);
    out[len] = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char pattern[NAME_SIZE], path[NAME_SIZE], type[SILT_WORKER_MIME_SIZE];
    silt_slice all = {(const char *)data, size}, rest = all;
    if (size == 0)
        return 0;
    demand(strchr(silt_sniff(all), '/') != NULL);
    copy_line(&rest, pattern);
    copy_line(&rest, path);
    silt_mime_of(path, all, type);
    demand(type[0] != 0);
    bool matches =
        silt_glob_matches(silt_slice_of(pattern), silt_slice_of(path), SILT_GLOB_OF_SEARCH);
    demand(matches || strcmp(pattern, "**") != 0);
    demand(matches || strpbrk(pattern, "*?") != NULL || strcmp(pattern, path) != 0);
    return 0;
}
