/* SPDX-License-Identifier: Apache-2.0 */
// Are files of two sandboxes the same inode? `inode hold FILE...` locks and watches them until
// /tmp/stop is there, then prints what happened to which; `inode touch FILE...` opens, locks and
// reads them, and prints which were locked by somebody else.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { FILES_MAX = 32, TRIES = 600, PAUSE_MS = 100 };

static int hold(char **files, int count)
{
    int watch = inotify_init1(IN_CLOEXEC), seen[FILES_MAX] = {0};
    for (int i = 0; i < count; i++) {
        int fd = open(files[i], O_RDONLY | O_NONBLOCK);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
            printf("%s cannot be locked: %s\n", files[i], strerror(errno));
    }
    for (int i = 0; i < count; i++)
        if (inotify_add_watch(watch, files[i], IN_OPEN | IN_ACCESS | IN_CLOSE) != i + 1)
            printf("%s cannot be watched: %s\n", files[i], strerror(errno));
    close(open("/tmp/ready", O_WRONLY | O_CREAT, 0600));
    for (int t = 0; t < TRIES && access("/tmp/stop", F_OK) < 0; t++)
        poll(&(struct pollfd){.fd = -1}, 1, PAUSE_MS);
    char room[65536] __attribute__((aligned(8)));
    if (poll(&(struct pollfd){.fd = watch, .events = POLLIN}, 1, 0) == 0)
        return 0;
    ssize_t n = read(watch, room, sizeof(room));
    for (ssize_t at = 0; at < n;) {
        struct inotify_event *event = (void *)(room + at);
        if (event->wd >= 1 && event->wd <= count)
            seen[event->wd - 1] = 1;
        at += (ssize_t)sizeof(*event) + event->len;
    }
    for (int i = 0; i < count; i++)
        if (seen[i])
            printf("%s event\n", files[i]);
    return 0;
}

static int touch(char **files, int count)
{
    char byte;
    for (int i = 0; i < count; i++) {
        int fd = open(files[i], O_RDONLY | O_NONBLOCK);
        if (fd < 0) {
            printf("%s cannot be opened: %s\n", files[i], strerror(errno));
            continue;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            printf("%s locked\n", files[i]);
        if (read(fd, &byte, 1) < 0 && errno != EAGAIN)
            printf("%s cannot be read: %s\n", files[i], strerror(errno));
        close(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > FILES_MAX)
        return 2;
    return strcmp(argv[1], "hold") == 0 ? hold(argv + 2, argc - 2) : touch(argv + 2, argc - 2);
}
