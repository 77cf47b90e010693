/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/terminal.h"
#include "base/own.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

void silt_terminal_resize(int ours, uint32_t size)
{
    struct winsize w = {.ws_row = (unsigned short)(size >> 16), .ws_col = (unsigned short)size};
    (void)ioctl(ours, TIOCSWINSZ, &w);
}

/* The guest may have replaced the file: opening it must not block, and the ioctl detects anything
 * but a terminal. */
int silt_terminal_open(uint32_t size, int *ret_ours, int *ret_theirs, struct silt_error *e)
{
    int unlocked = 0;
    silt_auto_fd ours = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (ours < 0)
        return silt_fail_errno(e, "open a terminal");
    if (ioctl(ours, TIOCSPTLCK, &unlocked) < 0)
        return silt_fail_errno(e, "unlock a terminal");
    silt_terminal_resize(ours, size);
    silt_auto_fd theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs < 0)
        return silt_fail_errno(e, "open the other side of a terminal");
    *ret_ours = silt_take_fd(&ours);
    *ret_theirs = silt_take_fd(&theirs);
    return 0;
}
