/* SPDX-License-Identifier: Apache-2.0 */
/* What git, in a sandbox, says that strangers' servers have said: lines in pieces of any size, of
 * which a bounded part is kept. The first byte is the size of the pieces. */
#include "api/git/report.h"
#include "fuzz/fuzz.h"

static void on_progress(struct silt_git_report *r, const struct silt_git_progress *p)
{
    (void)r;
    demand(p->percent >= -1 && p->percent <= 100 && p->text.len <= SILT_GIT_LINE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_git_report r;
    silt_slice bytes = {(const char *)data, size};
    size_t piece = size > 0 && data[0] > 0 ? data[0] : size;
    silt_git_report_init(&r);
    r.progress = on_progress;
    for (size_t at = 1; at < size; at += piece)
        silt_git_report_add(&r,
                            (silt_slice){bytes.data + at, size - at < piece ? size - at : piece});
    silt_git_report_end(&r);
    demand(r.lines.len <= SILT_GIT_STDERR_MAX);
    (void)silt_git_classify(128, silt_buf_slice(&r.lines));
    silt_git_report_fini(&r);
    return 0;
}
