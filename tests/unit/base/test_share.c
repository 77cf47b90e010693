/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SIZE = 64 << 10, NOBODY = 65534 };

static struct silt_error e;

TEST(a_reader_sees_what_the_writer_writes_and_when_it_writes)
{
    struct silt_share s = {0};
    silt_slice seen;
    assert_int_equal(silt_share_open(&s, SIZE, &e), 0);
    assert_int_equal(silt_share_look(s.reader, &seen, &e), 0);
    assert_int_equal(seen.len, SIZE);
    memcpy(s.bytes + SIZE - 5, "hello", 5);
    assert_memory_equal(seen.data + SIZE - 5, "hello", 5);
    silt_share_forget(&seen);
    assert_null(seen.data);
    silt_share_close(&s);
    silt_share_close(&s); /* nothing is left to be closed */
}

/* As another user: whoever is root here could open anything again. */
static int attack(int fd)
{
    char path[32];
    if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
        return 1;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, "x", 1) >= 0 || ftruncate(fd, 0) == 0 || truncate(path, 0) == 0)
        return 2;
    if (open(path, O_RDWR | O_CLOEXEC) >= 0 || fchmod(fd, 0666) == 0)
        return 3;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
        return 4;
    if (mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
        return 5;
    void *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    return map == MAP_FAILED || mprotect(map, SIZE, PROT_READ | PROT_WRITE) == 0 ? 6 : 0;
}

TEST(a_reader_cannot_change_it_by_any_way)
{
    struct silt_share s = {0};
    int status;
    if (geteuid() != 0)
        skip();
    assert_int_equal(silt_share_open(&s, SIZE, &e), 0);
    assert_int_equal(fchown(s.fd, 1, 1),
                     0); /* not even by owning it, as nobody of a sandbox does */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(attack(s.reader));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    silt_share_close(&s);
}

TEST(what_a_reader_keeps_holds_no_memory)
{
    struct silt_share s = {0};
    char byte;
    assert_int_equal(silt_share_open(&s, SIZE, &e), 0);
    memset(s.bytes, 'x', SIZE);
    silt_auto_fd kept = dup(s.reader);
    assert_true(kept >= 0);
    assert_int_equal(pread(kept, &byte, 1, SIZE - 1), 1);
    silt_share_close(&s);
    assert_int_equal(lseek(kept, 0, SEEK_END), 0);
    assert_int_equal(pread(kept, &byte, 1, 0), 0);
}
