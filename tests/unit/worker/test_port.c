/* SPDX-License-Identifier: Apache-2.0 */
/* A worker in a process of its own, asked to wait for a port of this machine's loopback. */
#include "base/fd.h"
#include "worker/task.h"
#include "unit/base/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int sock, listener;
static pid_t pid;
static uint16_t port;

/* Bound, so that nobody else has the port; not listening yet. */
static void begin(int family)
{
    struct silt_error e;
    int pair[2];
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = {{{0}}}};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    six.sin6_addr.s6_addr[15] = 1;
    struct sockaddr *to = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
    listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, to, size), 0);
    assert_int_equal(getsockname(listener, to, &size), 0);
    port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        (void)close(listener);
        silt_worker_serve(pair[1]);
        _exit(0);
    }
    (void)close(pair[1]);
    sock = pair[0];
}

static void ask(bool http)
{
    struct {
        struct silt_frame f;
        struct silt_worker_ask a;
        struct silt_worker_port p;
        char path[8];
    } out = {.f = {.type = SILT_WORKER_PORT},
             .a = {.mode = port, .text_len = sizeof(out.p) + 3},
             .p = {.http = http, .status_min = 200, .status_max = 299, .interval_ms = 1},
             .path = "/ok"};
    size_t len = offsetof(__typeof__(out), path) + 3;
    assert_int_equal(send(sock, &out, len, 0), len);
}

static bool is_done(int ms, uint32_t *ret_status)
{
    static char bytes[SILT_FRAME_MAX];
    struct pollfd p = {.fd = sock, .events = POLLIN};
    if (poll(&p, 1, ms) != 1)
        return false;
    assert_int_equal(recv(sock, bytes, sizeof(bytes), 0),
                     sizeof(struct silt_frame) + sizeof(struct silt_worker_done));
    const struct silt_frame *f = (const void *)bytes;
    assert_int_equal(f->type, SILT_WORKER_SAY_DONE);
    *ret_status = ((const struct silt_worker_done *)(const void *)f->body)->status;
    return true;
}

static void serve_one(const char *answer)
{
    char request[1024] = "";
    struct pollfd p = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 60000), 1);
    silt_auto_fd fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(recv(fd, request, sizeof(request) - 1, 0) > 0);
    assert_true(strncmp(request, "GET /", 5) == 0);
    (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

static void end(void)
{
    int status = -1;
    (void)close(sock);
    (void)close(listener);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST(a_port_is_reached_once_somebody_listens)
{
    static const int families[] = {AF_INET, AF_INET6};
    uint32_t status = 7;
    for (size_t i = 0; i < 2; i++) {
        begin(families[i]);
        ask(false);
        assert_false(is_done(60, &status));
        assert_int_equal(listen(listener, 5), 0);
        assert_true(is_done(10000, &status));
        assert_int_equal(status, 0);
        end();
    }
}

TEST(http_is_reached_with_the_right_status)
{
    uint32_t status = 0;
    begin(AF_INET);
    assert_int_equal(listen(listener, 5), 0);
    ask(true);
    serve_one("HTTP/1.1 500 Not Yet\r\n\r\n");
    serve_one("nonsense\n");
    serve_one("");
    serve_one("HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n");
    serve_one("HTTP/1.1 204 Fine\r\n\r\n");
    assert_true(is_done(10000, &status));
    assert_int_equal(status, 204);
    end();
}

TEST(redirects_in_a_circle_end)
{
    uint32_t status = 0;
    begin(AF_INET);
    assert_int_equal(listen(listener, 5), 0);
    ask(true);
    for (int i = 0; i < 7; i++)
        serve_one("HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n");
    serve_one("HTTP/1.1 200 OK\r\n\r\n");
    assert_true(is_done(10000, &status));
    end();
}

TEST(a_waiting_worker_goes_with_its_peer)
{
    begin(AF_INET);
    ask(false);
    end();
    begin(AF_INET);
    assert_int_equal(listen(listener, 5), 0);
    ask(true); /* connected, no answer comes */
    struct pollfd p = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 60000), 1);
    end();
}
