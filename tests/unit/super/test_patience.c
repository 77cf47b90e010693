/* SPDX-License-Identifier: Apache-2.0 */
#include "super/patience.h"
#include "base/clock.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* With bytes that its peer does not take, and half a minute for them: its last close waits. */
static void make_lingering(int *ret, int *ret_peer)
{
    static const char bytes[1 << 16];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct linger linger = {.l_onoff = 1, .l_linger = 30};
    silt_auto_fd listener = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    *ret_peer = accept(listener, NULL, NULL);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    *ret = fd;
}

TEST(patience_ends_when_a_close_waits)
{
    int fd, peer;
    make_lingering(&fd, &peer);
    int64_t begun_ms = silt_clock_ms();
    silt_patience_begin();
    (void)close(fd);
    silt_patience_end();
    int64_t took_ms = silt_clock_ms() - begun_ms;
    assert_true(took_ms >= 50); /* else it would not have waited */
    assert_true(took_ms < 5000);
    (void)close(peer);
}

TEST(patience_ends_when_the_kernel_closes_what_does_not_fit)
{
    char room[8] = "x";
    struct silt_parcel out = {.data = room, .len = 1, .nfds = 2};
    struct silt_error e;
    int pair[2], peers[2];
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    for (int i = 0; i < 2; i++)
        make_lingering(&out.fds[i], &peers[i]);
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0);
    silt_parcel_close(&out);
    int64_t begun_ms = silt_clock_ms();
    silt_patience_begin();
    assert_int_equal(recv(pair[1], room, sizeof(room), 0), 1); /* without room for any */
    silt_patience_end();
    assert_true(silt_clock_ms() - begun_ms < 5000);
    int all[] = {pair[0], pair[1], peers[0], peers[1]};
    for (size_t i = 0; i < SILT_COUNT(all); i++)
        (void)close(all[i]);
}
