/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/policy/glob.h"

/* When something does not fit behind a star, the last star takes one byte more: no star before it
 * needs to be asked again. */
static bool has(silt_slice glob, silt_slice name, int64_t *steps)
{
    size_t g = 0, n = 0, star = SIZE_MAX, taken = 0;
    while (n < name.len) {
        ++*steps;
        if (g < glob.len && glob.data[g] == '*') {
            star = g++;
            taken = n;
        } else if (g < glob.len && glob.data[g] == name.data[n]) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++taken;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.data[g] == '*')
        g++;
    return g == glob.len;
}

bool silt_globs_have(silt_slice globs, silt_slice name, int64_t *steps)
{
    silt_slice glob;
    for (; silt_slice_split(&globs, '\n', &glob);
         ++*steps) /* of an empty name nothing else is counted */
        if (glob.len > 0 && has(glob, name, steps))
            return true;
    return false;
}
