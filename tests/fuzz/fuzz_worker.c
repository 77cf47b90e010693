/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker is asked: the parts must lie inside of the frame and hold no NUL, whatever the
 * lengths say. Nothing is done with it: the operations would do it to this machine. */
#include "fuzz/fuzz.h"
#include "worker/task.h"

static void check_path(const char *path, uint32_t len)
{
    demand(len <= SILT_WORKER_PATH_MAX && strlen(path) == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_task t;
    struct silt_error e;
    if (size < sizeof(struct silt_frame) || size > SILT_FRAME_MAX)
        return 0;
    struct silt_frame *f = malloc(size); /* a read beyond it is seen */
    demand(f != NULL);
    memcpy(f, data, size);
    if (silt_task_parse(&t, f, size - sizeof(*f), &e) == 0) {
        check_path(t.cwd, t.ask.cwd_len);
        check_path(t.path, t.ask.path_len);
        check_path(t.to, t.ask.to_len);
        demand(t.text.len == 0
               || (t.text.data >= f->body && t.text.data + t.text.len == (char *)f + size));
    }
    free(f);
    return 0;
}
