/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

enum { PREFIX_MIN = 3 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The usual table, of which three rows are enough: two for a swap. */
size_t silt_nearest_distance(silt_slice a, silt_slice b)
{
    size_t rows[3][SILT_NEAREST_MAX + 1];
    if (a.len > SILT_NEAREST_MAX || b.len > SILT_NEAREST_MAX)
        return SIZE_MAX;
    for (size_t k = 0; k <= b.len; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            bool same = a.data[i - 1] == b.data[k - 1];
            row[k] = least(above[k - 1] + (same ? 0 : 1), least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] && a.data[i - 2] == b.data[k - 1])
                row[k] = least(row[k], second[k - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

/* In lower case, without what joins words. */
static silt_slice plain(silt_slice name, char out[SILT_NEAREST_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < SILT_NEAREST_MAX; i++) {
        char c = name.data[i];
        if (!silt_is_any(c, "_-."))
            out[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (silt_slice){out, n};
}

static bool begins(silt_slice s, silt_slice prefix)
{
    return prefix.len >= PREFIX_MIN && silt_slice_starts(s, prefix);
}

/* A unit or a noun that is missing or too much (memory, memoryMiB) says more than letters. */
size_t silt_nearest_unlikeness(silt_slice given, silt_slice known)
{
    char given_text[SILT_NEAREST_MAX], known_text[SILT_NEAREST_MAX];
    if (given.len > SILT_NEAREST_MAX || known.len > SILT_NEAREST_MAX)
        return SIZE_MAX;
    silt_slice a = plain(given, given_text), b = plain(known, known_text);
    size_t distance = silt_nearest_distance(a, b);
    if (distance == 0)
        return 0;
    if (begins(a, b) || begins(b, a))
        return 1;
    return distance <= 1 + least(a.len, b.len) / 4 ? 1 + distance : SIZE_MAX;
}
