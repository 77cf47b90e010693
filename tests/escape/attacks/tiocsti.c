/* SPDX-License-Identifier: Apache-2.0 */
/* tiocsti: tells whether we have a terminal; then makes one, and tries to put words into its mouth.
 */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

enum { TIOCSTI_NUMBER = 0x5412, TIOCLINUX_NUMBER = 0x541c };

/* The kernel looks at 32 bits of the request: a filter must not look at more. */
static long raw_ioctl(int fd, unsigned long request, const char *byte)
{
    return syscall(SYS_ioctl, fd, request, byte);
}

int main(void)
{
    attempt("controlling-tty", open("/dev/tty", O_RDWR | O_NOCTTY));
    for (int fd = 0; fd < 3; fd++)
        attempt("is-a-tty", isatty(fd) ? 0 : -1);
    if (fork() != 0) { /* no leader: setsid works in the child */
        struct pollfd none;
        poll(&none, 0, 500);
        return 0;
    }
    setsid();
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (attempt("pty", master) < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return 0;
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    attempt("pty-slave", slave);
    attempt("own-ctty", ioctl(slave, TIOCSCTTY, 0));
    attempt("tiocsti", raw_ioctl(slave, TIOCSTI_NUMBER, "x"));
    attempt("tiocsti-high-bits", raw_ioctl(slave, TIOCSTI_NUMBER | 0x100000000UL, "x"));
    attempt("tiocsti-sign", raw_ioctl(slave, TIOCSTI_NUMBER | 0xffffffff00000000UL, "x"));
    attempt("tioclinux", raw_ioctl(slave, TIOCLINUX_NUMBER, "\2"));
    attempt("tioclinux-high-bits", raw_ioctl(slave, TIOCLINUX_NUMBER | 0x100000000UL, "\2"));
    return 0;
}
