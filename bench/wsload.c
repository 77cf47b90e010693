/* SPDX-License-Identifier: Apache-2.0 */
/* wsload: both ends of the WebSocket lines of the benchmarks. Static, because one end runs inside a
 * sandbox. wsload serve PORT                                    until it is killed: says each
 * message back wsload echo ADDRESS PORT HOST CONNECTIONS SECONDS    messages of 32 bytes, on each
 * connection one after the other wsload keys ADDRESS PORT PATH TOKEN COUNT            a terminal:
 * from each key to its echo Both ends know the key of the handshake (it is the example of RFC
 * 6455), so nobody computes one. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

enum { PAYLOAD = 32, ROOM = 1 << 16, FDS = 4096, SAMPLES = 1 << 22, EVENTS = 256 };

struct end {
    int fd;
    int open; /* the handshake is done */
    size_t len;
    int64_t asked_us;
    unsigned char in[ROOM];
};

static struct end *ends[FDS];
static int64_t samples[SAMPLES];
static size_t count;

_Noreturn static void die(const char *what)
{
    (void)fprintf(stderr, "wsload: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void no_delay(int fd)
{
    int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static struct end *adopt(int epoll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (fd < 0 || fd >= FDS || (ends[fd] = calloc(1, sizeof(struct end))) == NULL
        || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        die("take a connection");
    ends[fd]->fd = fd;
    no_delay(fd);
    return ends[fd];
}

static void say(const struct end *x, const void *bytes, size_t len)
{
    if (send(x->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("send");
}

/* The size of the head of the first frame in it, and of its payload; 0: there is no whole one. */
static size_t whole(const struct end *x, size_t *ret_payload)
{
    size_t head = 2, len = x->len >= 2 ? x->in[1] & 127 : 0;
    if (x->len < 2 || (len > 125 && x->len < 4))
        return 0;
    if (len == 127)
        die("a frame of more than 64 KiB");
    if (len == 126) {
        head = 4;
        len = (size_t)x->in[2] << 8 | x->in[3];
    }
    head += x->in[1] & 128 ? 4 : 0;
    *ret_payload = len;
    return x->len >= head + len ? head : 0;
}

static void drop(struct end *x, size_t len)
{
    memmove(x->in, x->in + len, x->len - len);
    x->len -= len;
}

/* false: it has ended. */
static int take(struct end *x)
{
    ssize_t n = recv(x->fd, x->in + x->len, ROOM - x->len, 0);
    if (n <= 0)
        return 0;
    x->len += (size_t)n;
    unsigned char *end = x->open ? NULL : memmem(x->in, x->len, "\r\n\r\n", 4);
    if (end != NULL)
        drop(x, (size_t)(end + 4 - x->in));
    return end != NULL ? 2 : 1; /* 2: a head has come */
}

static void answer_frames(struct end *x)
{
    size_t head, len;
    while ((head = whole(x, &len)) > 0) {
        unsigned char out[2 + 125], *mask = x->in + head - 4;
        if (len > 125)
            die("a long message");
        out[0] = x->in[0];
        out[1] = (unsigned char)len;
        for (size_t i = 0; i < len; i++)
            out[2 + i] = x->in[head + i] ^ mask[i % 4];
        say(x, out, 2 + len);
        drop(x, head + len);
    }
}

static void on_served(struct end *x)
{
    static const char welcome[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n";
    int got = take(x);
    if (got == 0) {
        (void)close(x->fd);
        ends[x->fd] = NULL;
        free(x);
        return;
    }
    if (got == 2) {
        x->open = 1;
        say(x, welcome, sizeof(welcome) - 1);
    }
    if (x->open)
        answer_frames(x);
}

static void serve(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), yes = 1;
    struct epoll_event all[EVENTS], e = {.events = EPOLLIN, .data.fd = fd};
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0
        || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        die("listen");
    for (;;) {
        int n = epoll_wait(epoll, all, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (all[i].data.fd == fd)
                (void)adopt(epoll, accept(fd, NULL, NULL));
            else
                on_served(ends[all[i].data.fd]);
        }
    }
}

static int dial(const char *address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("connect");
    return fd;
}

static void shake(struct end *x, const char *path, const char *host, const char *more)
{
    char head[2048];
    int got = 1, len = snprintf(head, sizeof(head),
                                "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: "
                                "Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: " KEY "\r\n%s\r\n",
                                path, host, more);
    say(x, head, (size_t)len);
    while (got == 1)
        got = take(x);
    if (got == 0)
        die("handshake");
    x->open = 1;
}

/* With a mask of zeros: the bytes pass as they are. */
static void ask(struct end *x, const void *bytes, size_t len)
{
    unsigned char frame[6 + 125] = {0x82, (unsigned char)(0x80 | len)};
    memcpy(frame + 6, bytes, len);
    x->asked_us = now_us();
    say(x, frame, 6 + len);
}

static void note(int64_t us)
{
    samples[count++ % SAMPLES] = us;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void tell(double seconds)
{
    size_t kept = count < SAMPLES ? count : SAMPLES;
    qsort(samples, kept, sizeof(samples[0]), by_value);
    (void)printf("{\"count\":%zu,\"perS\":%.0f,\"p50\":%.3f,\"p99\":%.3f}\n", count,
                 (double)count / seconds, (double)samples[kept / 2] / 1000,
                 (double)samples[kept * 99 / 100] / 1000);
}

static void on_echo(struct end *x, const char *message)
{
    size_t head, len;
    if (take(x) == 0)
        die("the other end has gone");
    while ((head = whole(x, &len)) > 0) {
        if (len != PAYLOAD || memcmp(x->in + head, message, PAYLOAD) != 0)
            die("another message than was sent");
        drop(x, head + len);
        note(now_us() - x->asked_us);
        ask(x, message, PAYLOAD);
    }
}

static void echo(char **argv)
{
    static const char message[PAYLOAD + 1] = "a message of thirty-two bytes ok";
    int epoll = epoll_create1(0), connections = atoi(argv[3]);
    struct epoll_event all[EVENTS];
    struct end *some[FDS];
    for (int i = 0; i < connections; i++) {
        some[i] = adopt(epoll, dial(argv[0], (uint16_t)atoi(argv[1])));
        shake(some[i], "/ws", argv[2], "");
    }
    for (int i = 0; i < connections; i++)
        ask(some[i], message, PAYLOAD);
    int64_t begun = now_us(), until = begun + (int64_t)(atof(argv[4]) * 1e6);
    while (now_us() < until) {
        int n = epoll_wait(epoll, all, EVENTS, 1000);
        for (int i = 0; i < n; i++)
            on_echo(ends[all[i].data.fd], message);
    }
    tell((double)(now_us() - begun) / 1e6);
}

/* Output of the terminal until it has this byte. */
static void see(struct end *x, int byte)
{
    size_t head, len;
    for (;;) {
        while ((head = whole(x, &len)) > 0) {
            int shown = (x->in[0] & 15) == 2 && memchr(x->in + head, byte, len) != NULL;
            drop(x, head + len);
            if (shown)
                return;
        }
        if (take(x) == 0)
            die("the terminal has gone");
    }
}

static void keys(char **argv)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    char more[512];
    struct end *x = adopt(epoll_create1(0), dial(argv[0], (uint16_t)atoi(argv[1])));
    (void)snprintf(more, sizeof(more), "Authorization: Bearer %s\r\n", argv[3]);
    shake(x, argv[2], "localhost", more);
    see(x, '#');
    int64_t begun = now_us();
    for (int i = 0; i < atoi(argv[4]); i++) {
        ask(x, &letters[i % 26], 1);
        see(x, letters[i % 26]);
        note(now_us() - x->asked_us);
        if (i % 26 == 25) { /* a new line, so that none is redrawn */
            ask(x, "\003", 1);
            see(x, '#');
        }
        (void)usleep(2000); /* nobody types faster */
    }
    tell((double)(now_us() - begun) / 1e6);
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve((uint16_t)atoi(argv[2]));
    if (argc != 7)
        return 2;
    if (strcmp(argv[1], "echo") == 0)
        echo(argv + 2);
    else
        keys(argv + 2);
    return 0;
}
