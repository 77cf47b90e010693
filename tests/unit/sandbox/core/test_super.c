/* SPDX-License-Identifier: Apache-2.0 */
/* The test plays silt-super, which does not read for a while. */
#include "harness.h"
#include "unit/base/unit.h"
#include "wire/super.h"

#include <sys/stat.h>

enum { MANY = 3000 };

static struct harness h;

/* Its key; -1: there is none now. */
static int64_t next_note(int *ret_fd)
{
    struct silt_super_note note;
    struct silt_error e;
    struct silt_parcel p = {.data = &note, .len = sizeof(note)};
    if (silt_fd_recv(h.super, &p, &e) <= 0)
        return -1;
    *ret_fd = p.nfds == 1 ? silt_take_fd(&p.fds[0]) : -1;
    silt_parcel_close(&p);
    return note.key;
}

TEST(notes_that_do_not_fit_wait_and_keep_their_order_and_descriptors)
{
    struct stat want, got;
    struct silt_error e;
    assert_int_equal(harness_open(&h), 0);
    assert_int_equal(fstat(h.pidfd, &want), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct silt_super_note note = {.type = SILT_SUPER_KEEP, .key = i};
        assert_int_equal(silt_registry_tell_super(&h.registry, &note, &h.pidfd, i >= MANY - 10), 0);
    }
    for (int64_t i = 0; i < MANY;) {
        int fd;
        int64_t key = next_note(&fd);
        if (key < 0) {
            assert_int_equal(silt_loop_turn(&h.loop, 1000, &e), 0);
            continue;
        }
        assert_int_equal(key, i);
        assert_int_equal(fd >= 0, i >= MANY - 10);
        if (fd >= 0) {
            assert_int_equal(fstat(fd, &got), 0);
            assert_int_equal(got.st_ino, want.st_ino);
        }
        silt_close_fd(&fd);
        i++;
    }
    harness_close(&h);
}

TEST(notes_that_wait_go_with_siltd)
{
    assert_int_equal(harness_open(&h), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct silt_super_note note = {.type = SILT_SUPER_KEEP, .key = i};
        assert_int_equal(silt_registry_tell_super(&h.registry, &note, &h.pidfd, i >= MANY - 10), 0);
    }
    harness_close(&h);
}
