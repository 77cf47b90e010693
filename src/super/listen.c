/* SPDX-License-Identifier: Apache-2.0 */
#include "super/listen.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    BACKLOG = 4096,
    PATIENCE_MS = 2000, /* if silt-super was killed, its siltd releases the port within this time */
};

static int split(const char *address, char host[SILT_LISTEN_TEXT], const char **ret_port,
                 struct silt_error *e)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon == address)
        return silt_fail(e, SILT_INVALID, "setting listen: %s is not address:port", address);
    silt_slice name = {address, (size_t)(colon - address)};
    if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
        name = (silt_slice){name.data + 1, name.len - 2};
    *ret_port = colon + 1;
    return silt_slice_to_cstr(name, host, SILT_LISTEN_TEXT, e);
}

static int resolve(const char *address, struct sockaddr_storage *ret, socklen_t *ret_len,
                   struct silt_error *e)
{
    char host[SILT_LISTEN_TEXT];
    const char *port;
    if (split(address, host, &port, e) < 0)
        return -1;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return silt_fail(e, SILT_INVALID, "setting listen: %s: %s", address, gai_strerror(code));
    memcpy(ret, found->ai_addr, found->ai_addrlen);
    *ret_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int bind_patiently(int fd, const struct sockaddr_storage *at, socklen_t len)
{
    int64_t deadline_ms = silt_clock_ms() + PATIENCE_MS;
    while (bind(fd, (const struct sockaddr *)at, len) < 0) {
        if (errno != EADDRINUSE || silt_clock_ms() > deadline_ms)
            return -1;
        (void)poll(NULL, 0, 50);
    }
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *at)
{
    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)at;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    return at->ss_family == AF_INET6
           && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
}

int silt_listen_text(int fd, bool encrypted, char ret_text[SILT_LISTEN_TEXT], struct silt_error *e)
{
    char host[INET6_ADDRSTRLEN], port[8];
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return silt_fail_errno(e, "read the socket's address");
    if (getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV)
        != 0)
        return silt_fail(e, SILT_INTERNAL, "socket with an address that has no text");
    (void)snprintf(ret_text, SILT_LISTEN_TEXT, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                   port);
    if (!is_loopback(&at) && !encrypted)
        silt_log(SILT_LOG_WARN, "listen.open", "address=%s reachable from outside, unencrypted",
                 ret_text);
    return 0;
}

int silt_listen_open(const char *address, bool encrypted, int *ret_fd,
                     char ret_text[SILT_LISTEN_TEXT], struct silt_error *e)
{
    struct sockaddr_storage at;
    socklen_t len;
    int on = 1;
    if (resolve(address, &at, &len, e) < 0)
        return -1;
    silt_auto_fd fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0
        || bind_patiently(fd, &at, len) < 0 || listen(fd, BACKLOG) < 0)
        return silt_fail_errno(e, "listen on %s", address);
    if (silt_listen_text(fd, encrypted, ret_text, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_listen_loopback(uint32_t port, int *ret_fd, struct silt_error *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int on = 1;
    if (port != 0 && (port < IPPORT_RESERVED || port > UINT16_MAX))
        return silt_fail(e, SILT_INVALID, "port %u is not one of 1024 to 65535", port);
    silt_auto_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0
        || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
        return silt_fail_errno(e, "listen on port %u of 127.0.0.1", port);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

static int find_group(const char *name, gid_t *ret, struct silt_error *e)
{
    uint64_t number;
    *ret = 0;
    if (name[0] == 0)
        return 0;
    const struct group *g = getgrnam(name);
    if (g != NULL)
        *ret = g->gr_gid;
    else if (silt_slice_to_u64(silt_slice_of(name), 0, UINT32_MAX - 1, &number, e) == 0)
        *ret = (gid_t)number;
    else
        return silt_fail(e, SILT_INVALID, "setting engine.group: there is no group '%s'", name);
    return 0;
}

/* Left by an instance that was killed. A socket that answers, or another kind of file, stays: then
 * bind fails. */
static void remove_stale(const struct sockaddr_un *at)
{
    struct stat st;
    if (lstat(at->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return;
    silt_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0
        && errno == ECONNREFUSED)
        (void)unlink(at->sun_path);
}

/* A setgid directory, or a process that may not choose a group, overrides ours. */
static int check_group(const struct sockaddr_un *at, gid_t gid, struct silt_error *e)
{
    struct stat st;
    if (lstat(at->sun_path, &st) < 0)
        return silt_fail_errno(e, "look at %s", at->sun_path);
    if (st.st_gid != gid)
        return silt_fail(e, SILT_INVALID,
                         "setting engine.group: %s got group %u instead of %u: has its directory "
                         "the set-group-id bit?",
                         at->sun_path, st.st_gid, gid);
    return 0;
}

/* The socket is created with its mode and group: in another user's directory the name may refer to
 * anything a moment later. */
static int bind_as(int fd, const struct sockaddr_un *at, mode_t mode, gid_t gid)
{
    if (fchmod(fd, mode) < 0)
        return -1;
    mode_t mask = umask(0);
    int group = setfsgid(gid);
    int bound = bind(fd, (const struct sockaddr *)at, sizeof(*at));
    int why = errno;
    (void)setfsgid((gid_t)group);
    (void)umask(mask);
    errno = why;
    return bound;
}

int silt_listen_unix(const char *path, uint32_t mode, const char *group, int *ret_fd,
                     struct silt_error *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    gid_t gid;
    if (silt_slice_to_cstr(silt_slice_of(path), at.sun_path, sizeof(at.sun_path), e) < 0)
        return silt_because(e, "setting engine.socket");
    if (find_group(group, &gid, e) < 0)
        return -1;
    remove_stale(&at);
    silt_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_as(fd, &at, (mode_t)mode, gid) < 0)
        return silt_fail_errno(e, "listen on %s", path);
    if (group[0] != 0 && check_group(&at, gid, e) < 0) {
        (void)unlink(path);
        return -1;
    }
    silt_fd_refuse_fds(fd); /* inherited by every connection */
    if (listen(fd, BACKLOG) < 0)
        return silt_fail_errno(e, "listen on %s", path);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}
