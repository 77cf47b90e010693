/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/flow.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <sys/socket.h>

TEST(a_piece_that_found_no_room_is_a_failure)
{
    static char piece[4 << 20];
    int fds[2];
    uint64_t sent = 0;
    silt_auto_buf b;
    silt_buf_init(&b, 1024); /* as if there were no memory */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(silt_flow_forward(fds[0], &b, (silt_slice){piece, sizeof(piece)}, &sent), -1);
    assert_int_equal(silt_flow_flush(fds[0], &b, &sent), -1);
    silt_close_fd(&fds[0]);
    silt_close_fd(&fds[1]);
}
