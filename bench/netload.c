/* SPDX-License-Identifier: Apache-2.0 */
/* netload: both ends of the network benchmark. Static, because one end runs inside a sandbox.
 *     netload serve PORT                  until it is killed: takes the bytes of a flood
 *     netload rate ADDRESS PORT COUNT     requests by HTTP, each on a connection of its own, to
 * this address and the 15 after it in turn netload flood ADDRESS PORT SECONDS  one connection, as
 * many bytes as go through               */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 17, BACKLOG = 4096, ADDRESSES = 16 };

static char piece[PIECE];

_Noreturn static void die(const char *what)
{
    (void)fprintf(stderr, "netload: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void answer(int fd)
{
    while (recv(fd, piece, sizeof(piece), 0) > 0)
        ;
    (void)send(fd, "x", 1, MSG_NOSIGNAL);
    (void)close(fd);
}

static void serve(uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0)
        die("listen");
    for (;;) {
        int one = accept(fd, NULL, NULL);
        if (one < 0)
            die("accept");
        answer(one);
    }
}

static int dial(const char *address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return fd;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void ask(const char *address, uint16_t port)
{
    static const char request[] = "GET / HTTP/1.0\r\n\r\n";
    int fd = dial(address, port);
    ssize_t n = 0, got = 0;
    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
        die("ask");
    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        got += n;
    if (n < 0 || got == 0)
        die("answer");
    (void)close(fd);
}

static void rate(const char *address, uint16_t port, size_t count)
{
    struct in_addr first, to;
    char text[INET_ADDRSTRLEN];
    int64_t *us = calloc(count, sizeof(*us)), begun = now_us();
    if (us == NULL || inet_pton(AF_INET, address, &first) != 1)
        die("begin");
    for (size_t i = 0; i < count; i++) {
        to.s_addr = htonl(ntohl(first.s_addr) + (uint32_t)(i % ADDRESSES));
        int64_t at = now_us();
        ask(inet_ntop(AF_INET, &to, text, sizeof(text)), port);
        us[i] = now_us() - at;
    }
    double s = (double)(now_us() - begun) / 1e6;
    qsort(us, count, sizeof(*us), by_value);
    (void)printf("{\"count\":%zu,\"p50\":%.3f,\"p99\":%.3f,\"perS\":%.0f}\n", count,
                 (double)us[count / 2] / 1000, (double)us[count * 99 / 100] / 1000,
                 (double)count / s);
}

static void flood(const char *address, uint16_t port, double seconds)
{
    int fd = dial(address, port);
    int64_t begun = now_us(), until = begun + (int64_t)(seconds * 1e6);
    uint64_t bytes = 0;
    char back;
    memset(piece, 'f', sizeof(piece));
    while (now_us() < until) {
        ssize_t n = send(fd, piece, sizeof(piece), MSG_NOSIGNAL);
        if (n < 0)
            die("send");
        bytes += (uint64_t)n;
    }
    if (shutdown(fd, SHUT_WR) < 0 || recv(fd, &back, 1, 0) != 1)
        die("end");
    double s = (double)(now_us() - begun) / 1e6;
    (void)printf("{\"mibPerS\":%.0f}\n", (double)bytes / s / (1 << 20));
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve((uint16_t)strtoul(argv[2], NULL, 10));
    if (argc != 5)
        return 2;
    uint16_t port = (uint16_t)strtoul(argv[3], NULL, 10);
    if (strcmp(argv[1], "rate") == 0)
        rate(argv[2], port, strtoul(argv[4], NULL, 10));
    else
        flood(argv[2], port, strtod(argv[4], NULL));
    return 0;
}
