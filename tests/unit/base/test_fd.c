/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct silt_error e;

static void make_pair(int pair[2])
{
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
}

TEST(a_parcel_keeps_its_borders)
{
    int pair[2];
    char text[] = "one", in[16];
    make_pair(pair);
    struct silt_parcel out = {.data = text, .len = 3};
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0);
    out.len = 2;
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0);
    struct silt_parcel p = {.data = in, .len = sizeof(in)};
    assert_int_equal(silt_fd_recv(pair[1], &p, &e), 1);
    assert_slice(((silt_slice){in, p.len}), SILT_LIT("one"));
    p.len = sizeof(in);
    assert_int_equal(silt_fd_recv(pair[1], &p, &e), 1);
    assert_int_equal(p.len, 2);
    (void)close(pair[0]);
    p.len = sizeof(in);
    assert_int_equal(silt_fd_recv(pair[1], &p, &e), 0);
    (void)close(pair[1]);
}

TEST(descriptors_ride_along_close_on_exec)
{
    int pair[2], ends[2];
    char byte = 'x', in[16];
    make_pair(pair);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct silt_parcel out = {.data = &byte, .len = 1, .fds = {ends[0], ends[1]}, .nfds = 2};
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0);
    struct silt_parcel p = {.data = in, .len = sizeof(in)};
    assert_int_equal(silt_fd_recv(pair[1], &p, &e), 1);
    assert_int_equal(p.nfds, 2);
    assert_true((fcntl(p.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(silt_fd_write_all(p.fds[1], SILT_LIT("hi"), &e), 0);
    assert_int_equal(read(ends[0], in, sizeof(in)), 2);
    int taken = silt_take_fd(&p.fds[0]), left = p.fds[1];
    silt_parcel_close(&p);
    assert_int_equal(fcntl(left, F_GETFD), -1);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    int all[] = {taken, ends[0], ends[1], pair[0], pair[1]};
    for (size_t i = 0; i < SILT_COUNT(all); i++)
        (void)close(all[i]);
}

TEST(descriptors_are_refused_where_nobody_wants_them_and_connections_inherit_that)
{
    int pair[2], listener = socket(AF_UNIX, SOCK_STREAM, 0),
                 client = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(at);
    char byte = 'x';
    struct silt_parcel out = {.data = &byte, .len = 1, .fds = {STDIN_FILENO}, .nfds = 1};
    make_pair(pair);
    silt_fd_refuse_fds(pair[0]);
    if (getsockopt(pair[0], SOL_SOCKET, 83 /* SO_PASSRIGHTS */, &(int){0},
                   &(socklen_t){sizeof(int)})
        < 0)
        skip(); /* a kernel before 6.16 */
    assert_int_equal(silt_fd_send(pair[1], &out, &e), -1);
    assert_int_equal(e.sys, EPERM);
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0); /* the other way they may go */
    silt_fd_refuse_fds(listener);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at.sun_family)),
                     0); /* the kernel chooses a name */
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, len), 0);
    assert_int_equal(silt_fd_send(client, &out, &e), -1);
    assert_int_equal(e.sys, EPERM);
    int all[] = {listener, client, pair[0], pair[1]};
    for (size_t i = 0; i < SILT_COUNT(all); i++)
        (void)close(all[i]);
}

TEST(a_parcel_that_is_too_large_breaks_the_contract_and_leaks_nothing)
{
    int pair[2];
    char text[] = "longer than that", in[4];
    make_pair(pair);
    struct silt_parcel out = {.data = text, .len = sizeof(text), .fds = {pair[0]}, .nfds = 1};
    assert_int_equal(silt_fd_send(pair[0], &out, &e), 0);
    int next = dup(pair[0]);
    (void)close(next);
    struct silt_parcel p = {.data = in, .len = sizeof(in)};
    assert_int_equal(silt_fd_recv(pair[1], &p, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
    int after = dup(pair[0]);
    assert_int_equal(after, next);
    (void)close(after);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(a_full_or_empty_socket_says_eagain)
{
    int pair[2];
    char block[4096] = {0};
    make_pair(pair);
    assert_int_equal(silt_fd_nonblock(pair[0], &e), 0);
    struct silt_parcel p = {.data = block, .len = sizeof(block)};
    assert_int_equal(silt_fd_recv(pair[0], &p, &e), -1);
    assert_int_equal(e.sys, EAGAIN);
    p = (struct silt_parcel){.data = block, .len = sizeof(block)};
    while (silt_fd_send(pair[0], &p, &e) == 0)
        continue;
    assert_int_equal(e.sys, EAGAIN);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

TEST(a_file_is_read_whole_or_not_at_all)
{
    char path[] = "/tmp/silt-unit-XXXXXX", *text;
    size_t len;
    silt_auto_fd fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(silt_fd_put(AT_FDCWD, path, "hello", &e), 0);
    assert_int_equal(silt_fd_read_file(AT_FDCWD, path, 5, &text, &len, &e), 0);
    assert_int_equal(len, 5);
    assert_string_equal(text, "hello");
    free(text);
    assert_int_equal(silt_fd_read_file(AT_FDCWD, path, 4, &text, &len, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    (void)unlink(path);
    assert_int_equal(silt_fd_read_file(AT_FDCWD, path, 4, &text, &len, &e), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
    assert_int_equal(silt_fd_put(AT_FDCWD, path, "x", &e), -1);
}

TEST(ownership_is_taken_visibly)
{
    int fd = dup(STDIN_FILENO), copy = fd;
    {
        silt_auto_fd mine = silt_take_fd(&fd);
        assert_int_equal(fd, -1);
        assert_int_equal(mine, copy);
    }
    assert_int_equal(fcntl(copy, F_GETFD), -1);
}

TEST(descriptors_of_others_are_of_a_kind)
{
    enum { KINDS = SILT_FD_PACKETS + 1 };
    int pipes[2], streams[2], packets[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(silt_fd_pair(SOCK_STREAM, streams, &e), 0);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, packets, &e), 0);
    silt_auto_fd file = open("/dev/null", O_RDWR | O_CLOEXEC),
                 path = open("/dev/null", O_PATH | O_CLOEXEC);
    const int fds[] = {pipes[0], pipes[1], packets[0], streams[0], file, path, -1};
    for (int i = 0; i < (int)SILT_COUNT(fds); i++)
        for (int kind = 0; kind < KINDS; kind++)
            assert_int_equal(silt_fd_check(fds[i], (enum silt_fd_kind)kind, &e),
                             i == kind ? 0 : -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
    for (int i = 0; i < 2; i++) {
        (void)close(pipes[i]);
        (void)close(streams[i]);
        (void)close(packets[i]);
    }
}

TEST(bytes_of_others_are_read_from_a_memfd_that_cannot_change)
{
    const int seals[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW};
    silt_slice bytes = {NULL, 0};
    silt_auto_fd fd = -1;
    assert_int_equal(silt_fd_seal(SILT_LIT("a\0b"), &fd, &e), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(silt_fd_map_sealed(fd, 3, &bytes, &e), 0);
    assert_true(silt_slice_eq(bytes, SILT_LIT("a\0b")));
    silt_fd_unmap(bytes);
    assert_int_equal(silt_fd_map_sealed(fd, 2, &bytes, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    for (size_t missing = 0; missing < SILT_COUNT(seals); missing++) {
        silt_auto_fd open = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(open, 1), 0);
        for (size_t i = 0; i < SILT_COUNT(seals); i++)
            assert_int_equal(fcntl(open, F_ADD_SEALS, i == missing ? 0 : seals[i]), 0);
        assert_int_equal(silt_fd_map_sealed(open, 3, &bytes, &e), -1);
        assert_int_equal(e.code, SILT_PROTOCOL);
    }
}

TEST(a_sealed_memfd_without_bytes_and_what_is_no_memfd_are_refused)
{
    silt_slice bytes;
    silt_auto_fd empty = -1, file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(silt_fd_seal((silt_slice){NULL, 0}, &empty, &e), 0);
    assert_int_equal(silt_fd_map_sealed(empty, 3, &bytes, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    assert_int_equal(silt_fd_map_sealed(file, 3, &bytes, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
    assert_int_equal(silt_fd_map_sealed(-1, 3, &bytes, &e), -1);
    assert_int_equal(e.code, SILT_PROTOCOL);
}
