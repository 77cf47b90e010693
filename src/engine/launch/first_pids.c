/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/first_pids.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int silt_first_pids_open(struct silt_first_pids *p, const char *run_dir, uint32_t slots,
                         bool forget, struct silt_error *e)
{
    char path[PATH_MAX];
    size_t size = slots * sizeof(*p->by_slot);
    if (snprintf(path, sizeof(path), "%s/first-pids", run_dir) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "name of the run directory too long");
    silt_auto_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", path);
    errno = posix_fallocate(fd, 0, (off_t)size); /* a hole could not be filled on a full disk */
    if (errno != 0)
        return silt_fail_errno(e, "allocate %zu bytes for %s", size, path);
    void *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        return silt_fail_errno(e, "map %s", path);
    if (forget)
        memset(all, 0, size);
    *p = (struct silt_first_pids){.by_slot = all, .slots = slots};
    return 0;
}

void silt_first_pids_set(const struct silt_first_pids *p, uint32_t slot, pid_t pid)
{
    if (slot < p->slots)
        __atomic_store_n(&p->by_slot[slot], (int32_t)pid, __ATOMIC_RELEASE);
}

pid_t silt_first_pids_at(const struct silt_first_pids *p, uint32_t slot)
{
    int32_t pid = slot < p->slots ? __atomic_load_n(&p->by_slot[slot], __ATOMIC_ACQUIRE) : 0;
    return pid > 0 ? pid : 0;
}
