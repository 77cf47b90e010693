/* SPDX-License-Identifier: Apache-2.0 */
#include "strange.h"
#include "base/fd.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEERS_MAX = 512, LINGER_S = 60 };

static int peers[PEERS_MAX], npeers; /* the other ends, which read nothing */
static int listener = -1;

/* The first or second of two, the other is closed. */
static int one_of(int failed, const int pair[2], int which)
{
    if (failed < 0)
        return -1;
    (void)close(pair[1 - which]);
    return pair[which];
}

static int listen_once(struct sockaddr_in *ret)
{
    socklen_t size = sizeof(*ret);
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (listener < 0) {
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener, (struct sockaddr *)ret, sizeof(*ret)) < 0 || listen(listener, 8) < 0)
            return -1;
    }
    return getsockname(listener, (struct sockaddr *)ret, &size);
}

static int lingering(void)
{
    static char much[1 << 16];
    struct linger on = {.l_onoff = 1, .l_linger = LINGER_S};
    struct sockaddr_in to;
    if (npeers == PEERS_MAX)
        strange_end();
    if (listen_once(&to) < 0)
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return -1;
    peers[npeers++] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (send(fd, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
    return fd;
}

static int nested(void)
{
    int pair[2], inner = lingering();
    char byte = 0;
    struct silt_parcel p = {.data = &byte, .len = 1, .fds = {inner}, .nfds = 1};
    struct silt_error e;
    if (inner < 0 || silt_fd_pair(SOCK_SEQPACKET, pair, &e) < 0)
        return -1;
    (void)silt_fd_send(pair[0], &p, &e);
    (void)close(inner);
    (void)close(pair[0]);
    return pair[1];
}

int strange_open(enum strange kind)
{
    int pair[2];
    switch (kind) {
    case STRANGE_FILE:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case STRANGE_DIRECTORY:
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case STRANGE_WRITE_END:
        return one_of(pipe2(pair, O_CLOEXEC), pair, 1);
    case STRANGE_READ_END:
        return one_of(pipe2(pair, O_CLOEXEC), pair, 0);
    case STRANGE_STREAM:
        return one_of(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), pair, 0);
    case STRANGE_PACKETS:
        return one_of(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), pair, 0);
    case STRANGE_TCP:
        return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    case STRANGE_PROCESS:
        return pidfd_open(getpid(), 0);
    case STRANGE_LINGER:
        return lingering();
    case STRANGE_NESTED:
        return nested();
    case STRANGE_MAX:
        break;
    }
    return -1;
}

void strange_end(void)
{
    while (npeers > 0)
        (void)close(peers[--npeers]);
}
