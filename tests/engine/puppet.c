/* SPDX-License-Identifier: Apache-2.0 */
/* puppet: the PID 1 of the engine's tests, in the place of silt-init. It obeys one line of text per
 * message on descriptor 3 and answers with one message of text. Static: the images of the tests
 * hold no program. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 3, FIRST = 7, ROOM = 32768 };

static char answer[ROOM];
static int version, joins, handles;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    size_t used = strlen(answer);
    va_start(args, format);
    (void)vsnprintf(answer + used, ROOM - used, format, args);
    va_end(args);
}

static void do_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        say("errno %d", errno);
        return;
    }
    char text[ROOM / 2];
    ssize_t n, len = 0;
    while ((n = read(fd, text + len, sizeof(text) - 1 - (size_t)len)) > 0)
        len += n;
    if (n < 0)
        say("errno %d", errno);
    text[len] = 0;
    say("%s", text);
    (void)close(fd);
}

static void do_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        say("errno %d", errno);
    else
        say("ok");
    if (fd >= 0)
        (void)close(fd);
}

/* How many MiB fit, and what stopped it. */
static void do_fill(const char *path, long most)
{
    static char mib[1 << 20];
    memset(mib, 'x', sizeof(mib));
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    long long done = 0;
    int why = fd < 0 ? errno : 0;
    while (done >> 20 < most && why == 0) {
        ssize_t n = write(fd, mib, sizeof(mib));
        if (n < 0)
            why = errno;
        else
            done += n;
    }
    if (why == 0 && fsync(fd) < 0)
        why = errno;
    say("%lld errno %d", done >> 20, why);
    (void)close(fd);
}

static void do_list(const char *path)
{
    DIR *d = opendir(path);
    if (d == NULL) {
        say("errno %d", errno);
        return;
    }
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d))
        if (it->d_name[0] != '.')
            say("%s ", it->d_name);
    (void)closedir(d);
}

static void do_stat(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        say("errno %d", errno);
    else
        say("%o %u:%u", st.st_mode, st.st_uid, st.st_gid);
}

static void do_fds(void)
{
    char to[256];
    for (int i = 0; i < 1024; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
        ssize_t n = readlink(path, to, sizeof(to) - 1);
        if (n < 0)
            continue;
        to[n] = 0;
        say("%d=%s ", i, to);
    }
}

/* As silt-init's children do: into the guest's groups, and the limit of PID 1's own data is off. */
static void join_guest(int handle)
{
    struct rlimit data;
    if (getrlimit(RLIMIT_DATA, &data) < 0)
        _exit(103);
    data.rlim_cur = data.rlim_max;
    if (setrlimit(RLIMIT_DATA, &data) < 0)
        _exit(104);
    for (int i = 0; i < joins; i++)
        if (write(FIRST + i, "0", 1) < 0)
            _exit(101);
    if (handle >= 0 && version == 1 && write(FIRST + joins + 2 * handle, "0", 1) < 0)
        _exit(102);
}

static void pause_forever(void)
{
    for (;;)
        (void)pause();
}

/* A child of the guest, in handle `handle`, that sleeps. */
static void do_sleeper(int handle)
{
    pid_t pid = fork();
    if (pid == 0) {
        join_guest(handle);
        pause_forever();
    }
    say("%d", pid);
}

static void do_freeze(int handle)
{
    if (write(FIRST + joins + 2 * handle + 1, "FROZEN", 6) < 0)
        say("errno %d", errno);
    else
        say("ok");
}

static void tell_status(pid_t pid)
{
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        say("signal %d", WTERMSIG(status));
    else
        say("exit %d", WEXITSTATUS(status));
}

static void do_eat(long mib)
{
    pid_t pid = fork();
    if (pid == 0) {
        join_guest(-1);
        for (long i = 0; i < mib; i++) {
            char *p =
                mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (p == MAP_FAILED)
                _exit(7);
            memset(p, 1, 1 << 20);
        }
        _exit(0);
    }
    tell_status(pid);
}

/* How many processes the guest's group takes, the first included. */
static void do_forks(int most)
{
    pid_t pid = fork();
    if (pid == 0) {
        join_guest(-1);
        int n = 1;
        for (; n < most; n++) {
            pid_t child = fork();
            if (child == 0)
                pause_forever();
            if (child < 0)
                break;
        }
        (void)signal(SIGTERM, SIG_IGN);
        _exit(n > 255 ? 255 : n);
    }
    tell_status(pid);
    (void)kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static void do_call(long number)
{
    long got = syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
    say("%ld errno %d", got, got < 0 ? errno : 0);
}

static void do_socket(int family, int type, int protocol)
{
    int fd = socket(family, type, protocol);
    say("%s %d", fd < 0 ? "errno" : "ok", fd < 0 ? errno : 0);
    if (fd >= 0)
        (void)close(fd);
}

/* The network. Addresses are numbers, IPv4 or IPv6. */

enum { HELD_MAX = 512, PATIENCE_MS = 6000, SLOW_MS = 3000 };
static int held[HELD_MAX], nheld;

static long long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static socklen_t to_address(const char *text, int port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (void *)out;
    struct sockaddr_in6 *six = (void *)out;
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, text, &six->sin6_addr) == 1 ? sizeof(*six) : 0;
}

/* A connected socket, or minus the errno. */
static int dial(int type, const char *text, int port)
{
    struct sockaddr_storage to;
    socklen_t len = to_address(text, port, &to);
    int fd = socket(to.ss_family, type | SOCK_NONBLOCK, 0), why = 0;
    if (connect(fd, (struct sockaddr *)&to, len) < 0)
        why = errno;
    if (why == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t size = sizeof(why);
        why = ETIMEDOUT;
        if (poll(&p, 1, PATIENCE_MS) > 0)
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
    }
    if (why == 0)
        return fd;
    (void)close(fd);
    return -why;
}

/* What comes next, or the reason why nothing does. */
static void hear(int fd)
{
    char text[256];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, PATIENCE_MS) == 0) {
        say("silence");
        return;
    }
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        say("errno %d", errno);
    else if (n == 0)
        say("end");
    text[n > 0 ? n : 0] = 0;
    say("%s", text);
}

static void do_dial(int type, const char *text, int port)
{
    long long begun = now_ms();
    int fd = dial(type, text, port);
    if (fd < 0) {
        say("errno %d", -fd);
    } else {
        if (type == SOCK_DGRAM)
            (void)send(fd, "x", 1, 0);
        hear(fd);
        (void)close(fd);
    }
    if (now_ms() - begun > SLOW_MS)
        say(" slow");
}

static void do_hold(const char *text, int port, int count)
{
    int made = 0, why = 0;
    for (; made < count && nheld < HELD_MAX && why == 0; made++) {
        int fd = dial(SOCK_STREAM, text, port);
        if (fd < 0)
            why = -fd;
        else
            held[nheld++] = fd;
        made -= fd < 0;
    }
    say("%d errno %d", made, why);
}

static void do_release(void)
{
    while (nheld > 0)
        (void)close(held[--nheld]);
    say("ok");
}

/* Bytes as pairs of digits. */
static size_t from_hex(const char *hex, char *out, size_t room)
{
    size_t n = 0;
    unsigned byte;
    for (; n < room && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        out[n++] = (char)byte;
    return n;
}

static void do_bytes(const char *hex)
{
    static char bytes[ROOM];
    size_t n = from_hex(hex, bytes, sizeof(bytes));
    if (send(held[nheld - 1], bytes, n, MSG_NOSIGNAL) < 0)
        say("errno %d", errno);
    else
        say("ok");
}

/* A question to the gateway, and its answer, in digits. */
static void do_ask(const char *hex)
{
    char bytes[1024];
    size_t len = from_hex(hex, bytes, sizeof(bytes));
    int fd = dial(SOCK_DGRAM, "10.210.0.1", 53);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    (void)send(fd, bytes, len, 0);
    ssize_t n = poll(&p, 1, PATIENCE_MS) > 0 ? recv(fd, bytes, sizeof(bytes), 0) : -1;
    if (n < 0)
        say("silence");
    for (ssize_t i = 0; i < n; i++)
        say("%02x", (unsigned char)bytes[i]);
    (void)close(fd);
}

static void do_listen(int port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
        say("errno %d", errno);
    else
        say("ok");
}

static bool obey_network(const char *line, char *rest)
{
    char text[64] = "";
    int port = 0, count = 1;
    int n = sscanf(rest, "%63s %d %d", text, &port, &count);
    if (strcmp(line, "tcp") == 0 && n >= 2)
        do_dial(SOCK_STREAM, text, port);
    else if (strcmp(line, "udp") == 0 && n >= 2)
        do_dial(SOCK_DGRAM, text, port);
    else if (strcmp(line, "hold") == 0 && n >= 2)
        do_hold(text, port, count);
    else if (strcmp(line, "release") == 0)
        do_release();
    else if (strcmp(line, "hear") == 0 && nheld > 0)
        hear(held[nheld - 1]);
    else if (strcmp(line, "talk") == 0 && nheld > 0
             && send(held[nheld - 1], "abc", 3, MSG_NOSIGNAL) < 0)
        say("errno %d", errno);
    else if (strcmp(line, "talk") == 0 && nheld > 0)
        hear(held[nheld - 1]);
    else if (strcmp(line, "bytes") == 0 && nheld > 0)
        do_bytes(rest);
    else if (strcmp(line, "ask") == 0)
        do_ask(rest);
    else if (strcmp(line, "listen") == 0)
        do_listen((int)strtol(rest, NULL, 10));
    else
        return false;
    return true;
}

static void do_name(void)
{
    struct utsname u;
    (void)uname(&u);
    say("%s", u.nodename);
}

static void do_uptime(void)
{
    struct timespec mono;
    (void)clock_gettime(CLOCK_MONOTONIC, &mono);
    say("%lld", (long long)mono.tv_sec);
}

static void obey(char *line)
{
    char *rest = strchr(line, ' ');
    int a = 0, b = 0, c = 0;
    if (rest != NULL)
        *rest++ = 0;
    else
        rest = line + strlen(line);
    char *second = strchr(rest, ' ');
    if (obey_network(line, rest))
        return;
    if (strcmp(line, "ping") == 0) {
        say("pong %d %d %d %d %d", getpid(), getppid(), version, joins, handles);
    } else if (strcmp(line, "read") == 0) {
        do_read(rest);
    } else if (strcmp(line, "list") == 0) {
        do_list(rest);
    } else if (strcmp(line, "stat") == 0) {
        do_stat(rest);
    } else if (strcmp(line, "fds") == 0) {
        do_fds();
    } else if (strcmp(line, "sleeper") == 0) {
        do_sleeper((int)strtol(rest, NULL, 10));
    } else if (strcmp(line, "freeze") == 0) {
        do_freeze((int)strtol(rest, NULL, 10));
    } else if (strcmp(line, "eat") == 0) {
        do_eat(strtol(rest, NULL, 10));
    } else if (strcmp(line, "forks") == 0) {
        do_forks((int)strtol(rest, NULL, 10));
    } else if (strcmp(line, "call") == 0) {
        do_call(strtol(rest, NULL, 10));
    } else if (strcmp(line, "name") == 0) {
        do_name();
    } else if (strcmp(line, "uptime") == 0) {
        do_uptime();
    } else if (strcmp(line, "mkdir") == 0) {
        say("%s %d", mkdir(rest, 0755) == 0 ? "ok" : "errno", errno);
    } else if (strcmp(line, "socket") == 0 && sscanf(rest, "%d %d %d", &a, &b, &c) == 3) {
        do_socket(a, b, c);
    } else if (strcmp(line, "remove") == 0) {
        if (unlink(rest) == 0)
            say("ok");
        else
            say("errno %d", errno);
    } else if (strcmp(line, "exit") == 0) {
        _exit((int)strtol(rest, NULL, 10));
    } else if (second != NULL) {
        *second++ = 0;
        if (strcmp(line, "write") == 0)
            do_write(rest, second);
        else if (strcmp(line, "fill") == 0)
            do_fill(rest, strtol(second, NULL, 10));
        else if (strcmp(line, "rename") == 0)
            say("%s %d", rename(rest, second) == 0 ? "ok" : "errno", errno);
    }
}

int main(int argc, char **argv)
{
    static char line[ROOM];
    if (argc != 4)
        return 100;
    version = (int)strtol(argv[1], NULL, 10);
    joins = (int)strtol(argv[2], NULL, 10);
    handles = (int)strtol(argv[3], NULL, 10);
    for (;;) {
        ssize_t n = recv(CHANNEL, line, sizeof(line) - 1, 0);
        if (n <= 0)
            return 0;
        line[n] = 0;
        answer[0] = 0;
        obey(line);
        if (send(CHANNEL, answer, strlen(answer) + 1, MSG_NOSIGNAL) < 0)
            return 0;
    }
}
