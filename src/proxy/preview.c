/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview.h"
#include "base/fd.h"
#include "proxy/confine.h"
#include "wire/super.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>

/* Nobody is served yet: connections wait in the backlog. */
int silt_preview_run(const struct silt_config *c, struct silt_error *e)
{
    silt_auto_fd siltd = -1;
    (void)c;
    (void)prctl(PR_SET_NAME, "silt-preview", 0, 0, 0);
    if (silt_dial_confine(e) < 0)
        return -1;
    for (;;) {
        struct silt_super_note note;
        struct silt_parcel in = {.data = &note, .len = sizeof(note)};
        struct pollfd p = {.fd = SILT_SUPER_FD_CHANNEL, .events = POLLIN};
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            return silt_fail_errno(e, "wait");
        int got = silt_fd_recv(SILT_SUPER_FD_CHANNEL, &in, e);
        if (got > 0 && in.nfds == 1 && note.key == SILT_SUPER_PAIR_PREVIEW) {
            silt_close_fd(&siltd);
            siltd = silt_take_fd(&in.fds[0]);
        }
        silt_parcel_close(&in);
        if (got <= 0)
            return 0;
    }
}
