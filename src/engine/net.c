/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/net.h"
#include "base/fd.h"
#include "engine/mnt.h"
#include "engine/without.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int raise_loopback(struct silt_error *e)
{
    silt_auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &lo) < 0)
        return silt_fail_errno(e, "bring loopback up");
    return 0;
}

/* /proc/sys/net shows the namespace of whoever asks. */
static int furnish(struct silt_net *n, struct silt_error *e)
{
    unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    if (!silt_without("masks"))
        attributes |= MOUNT_ATTR_RDONLY;
    if (raise_loopback(e) < 0)
        return -1;
    if (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", e) < 0)
        return -1;
    if (silt_fd_put(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647", e) < 0)
        return -1;
    return silt_mnt_make("sysfs", attributes, NULL, &n->sysfs, e);
}

int silt_net_make(int home, struct silt_net *ret, struct silt_error *e)
{
    struct silt_net n = {.ns = -1, .sysfs = -1};
    if (unshare(CLONE_NEWNET) < 0)
        return silt_fail_errno(e, "make a network namespace");
    int done = furnish(&n, e);
    if (done == 0) {
        n.ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        if (n.ns < 0)
            done = silt_fail_errno(e, "open the network namespace");
    }
    if (setns(home, CLONE_NEWNET) < 0)
        abort(); /* in a stranger's namespace nothing of ours may go on */
    if (done < 0) {
        silt_net_close(&n);
        return silt_because(e, "make a network namespace");
    }
    *ret = n;
    return 0;
}

void silt_net_close(struct silt_net *n)
{
    silt_close_fd(&n->ns);
    silt_close_fd(&n->sysfs);
}
