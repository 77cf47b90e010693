/* SPDX-License-Identifier: Apache-2.0 */
/* Where a caller says a repository is: what is let through begins with no dash, names no program,
 * shows no secret. */
#include "api/git/url.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_git_url u;
    struct silt_error e;
    struct silt_buf out;
    silt_slice text = {(const char *)data, size};
    silt_git_url_init(&u);
    silt_buf_init(&out, 1 << 20);
    if (silt_git_url_read(&u, text, false, &e) == 0) {
        silt_slice plain = silt_buf_slice(&u.plain);
        demand(!u.plain.broken && !u.shown.broken && !u.user.broken && !u.password.broken);
        demand(plain.len > 0 && plain.data[0] != '-' && plain.data[0] != '/'
               && !silt_slice_has_byte(plain, '\n'));
        demand(!silt_slice_has_byte(silt_buf_slice(&u.user), '\n')
               && !silt_slice_has_byte(silt_buf_slice(&u.password), '\n'));
        demand(u.name[0] != 0 && strchr(u.name, '/') == NULL);
    }
    silt_git_redact(&out, &u, text);
    demand(out.broken || size > (1 << 17) || out.len <= size * 7 + 16);
    silt_buf_fini(&out);
    silt_git_url_fini(&u);
    return 0;
}
