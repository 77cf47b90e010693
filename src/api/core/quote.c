/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/quote.h"

void silt_shell_quote(struct silt_buf *b, silt_slice word)
{
    silt_buf_add_byte(b, '\'');
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] == '\'')
            silt_buf_add(b, SILT_LIT("'\\''"));
        else
            silt_buf_add_byte(b, word.data[i]);
    }
    silt_buf_add_byte(b, '\'');
}
