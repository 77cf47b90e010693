/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sock_diag.h"
#include "base/clock.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEADLINE_MS = 30000, TRIES = 5 };

static int listen_on(uint16_t *port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(*port)};
    socklen_t len = sizeof(at);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0) {
        (void)close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* From a port of its own choice, which it tells. */
static int connect_to(uint16_t port, uint16_t *ret_own)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    socklen_t len = sizeof(at);
    int on = 1, second = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_LINGER2, &second, sizeof(second));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_own = ntohs(at.sin_port);
    return fd;
}

/* Whether the kernel still knows of a connection from one port to the other. */
static bool is_known(uint16_t from, uint16_t to)
{
    char line[256], wanted[64];
    FILE *f = fopen("/proc/self/net/tcp", "re");
    bool found = false;
    assert_non_null(f);
    (void)snprintf(wanted, sizeof(wanted), "0100007F:%04X 0100007F:%04X", from, to);
    while (!found && fgets(line, sizeof(line), f) != NULL)
        found = strstr(line, wanted) != NULL;
    (void)fclose(f);
    return found;
}

TEST(a_peer_is_known_by_the_user_of_its_socket)
{
    uint16_t port = 0, own;
    uint32_t uid = UINT32_MAX;
    struct silt_error e;
    silt_auto_fd diag = -1;
    assert_int_equal(silt_sock_diag_open(&diag, &e), 0);
    silt_auto_fd server = listen_on(&port);
    silt_auto_fd client = connect_to(port, &own);
    silt_auto_fd accepted = accept(server, NULL, NULL);
    assert_true(silt_sock_diag_peer(diag, accepted, &uid));
    assert_int_equal(uid, getuid());
    assert_true(silt_sock_diag_listens(diag, port));
    assert_true(silt_sock_diag_is_of(diag, accepted, getuid()));
    assert_int_equal(silt_sock_diag_is_of(diag, accepted, getuid() + 1), getuid() == 0);
    silt_close_fd(&client);
    assert_false(silt_sock_diag_peer(diag, accepted, &uid)); /* nobody's */
    assert_true(silt_sock_diag_is_of(diag, accepted, getuid() + 1));
}

TEST(a_connection_that_nobody_has_accepted_is_not_known)
{
    uint16_t port = 0, own;
    uint32_t uid;
    struct silt_error e;
    silt_auto_fd diag = -1;
    assert_int_equal(silt_sock_diag_open(&diag, &e), 0);
    silt_auto_fd server = listen_on(&port);
    silt_auto_fd client = connect_to(port, &own);
    assert_false(silt_sock_diag_peer(diag, client, &uid));
    assert_false(silt_sock_diag_is_of(diag, client, getuid()));
    silt_auto_fd accepted = accept(server, NULL, NULL);
    assert_true(accepted >= 0);
    assert_true(silt_sock_diag_is_of(diag, client, getuid()));
}

/* Somebody listens where the peer of `accepted` was; -1: another program was quicker. */
static int follow(int server, uint16_t port, int *ret_accepted)
{
    uint16_t own;
    silt_auto_fd client = connect_to(port, &own);
    *ret_accepted = accept(server, NULL, NULL);
    silt_close_fd(&client);
    int64_t by_ms = silt_clock_ms() + DEADLINE_MS;
    while (is_known(own, port) && silt_clock_ms() < by_ms)
        (void)poll(NULL, 0, 20); /* until its FIN_WAIT2 is over */
    assert_false(is_known(own, port));
    return listen_on(&own);
}

TEST(who_listens_on_the_port_of_a_peer_that_is_gone_is_not_taken_for_it)
{
    uint16_t port = 0;
    uint32_t uid;
    struct silt_error e;
    silt_auto_fd diag = -1, later = -1, accepted = -1;
    assert_int_equal(silt_sock_diag_open(&diag, &e), 0);
    silt_auto_fd server = listen_on(&port);
    for (int i = 0; i < TRIES && later < 0; i++) {
        silt_close_fd(&accepted);
        later = follow(server, port, &accepted);
    }
    assert_true(later >= 0);
    assert_false(silt_sock_diag_peer(diag, accepted, &uid));
}
