/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/core/role.h"

#include <errno.h>
#include <sys/resource.h>

bool silt_role_hear(struct silt_loop *loop, const struct silt_watch *super,
                    struct silt_super_note *ret, struct silt_parcel *ret_in)
{
    struct silt_error e;
    *ret_in = (struct silt_parcel){.data = ret, .len = sizeof(*ret)};
    int got = silt_fd_recv(super->fd, ret_in, &e);
    if (got < 0 && e.sys == EAGAIN)
        return false;
    if (got > 0 && ret_in->len == sizeof(*ret))
        return true;
    silt_parcel_close(ret_in);
    if (got <= 0)
        silt_loop_stop(loop); /* it is gone */
    return false;
}

size_t silt_role_files(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 0 : (size_t)files.rlim_cur;
}
