/* SPDX-License-Identifier: Apache-2.0 */
#include "super/handover.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>

static char *no_settings[] = {NULL};
static char first[] = "--instance=one", second[] = "--ids.count=256";
static char *two_settings[] = {first, second, NULL};

static struct silt_handover least(void)
{
    struct silt_handover h = {.listen = 10,
                              .preview = -1,
                              .engine = -1,
                              .gate = -1,
                              .gate_log = -1,
                              .settings = no_settings};
    silt_fd_store_init(&h.keep, 4);
    return h;
}

static struct silt_handover full(void)
{
    struct silt_handover h = least();
    const struct silt_kept_context c = {.number = 7, .fds = {30, 31, 32, 33}};
    h.preview = 11;
    h.engine = 12;
    h.gate = 13;
    h.gate_log = 14;
    h.gate_sockets[h.gate_socket_count++] = 15;
    h.locks.fds[h.locks.count++] = 16;
    h.settings = two_settings;
    silt_fd_store_put(&h.keep, 3, 20, 21);
    assert_true(silt_fd_store_put_context(&h.keep, 3, &c));
    assert_true(silt_fd_store_put_listener(&h.keep, 99, 40));
    return h;
}

static void hand_over(struct silt_handover *h, struct silt_buf *out)
{
    silt_buf_init(out, SILT_HANDOVER_MAX);
    silt_handover_write(h, out);
    silt_fd_store_forget(&h->keep);
    assert_false(out->broken);
}

static bool is_refused(const struct silt_buf *b)
{
    struct silt_handover h;
    struct silt_error e = {0};
    bool refused = silt_handover_read(silt_buf_slice(b), &h, &e) < 0;
    assert_true(!refused || e.code == SILT_PROTOCOL);
    return refused;
}

TEST(a_handover_reads_back_as_it_was)
{
    struct silt_handover h = full(), again;
    struct silt_error e;
    silt_auto_buf out;
    hand_over(&h, &out);
    assert_int_equal(silt_handover_read(silt_buf_slice(&out), &again, &e), 0);
    assert_int_equal(again.listen, 10);
    assert_int_equal(again.preview, 11);
    assert_int_equal(again.engine, 12);
    assert_int_equal(again.gate, 13);
    assert_int_equal(again.gate_log, 14);
    assert_int_equal(again.gate_socket_count, 1);
    assert_int_equal(again.gate_sockets[0], 15);
    assert_int_equal(again.locks.count, 1);
    assert_int_equal(again.locks.fds[0], 16);
    assert_int_equal(again.keep.count, 4);
    assert_int_equal(again.keep.items[3].channel, 20);
    assert_int_equal(again.keep.items[3].pidfd, 21);
    assert_int_equal(again.keep.items[3].contexts[0].number, 7);
    assert_int_equal(again.keep.items[3].contexts[0].fds[3], 33);
    assert_int_equal(again.keep.listeners[0].fd, 40);
    assert_string_equal(again.settings[1], "--ids.count=256");
    assert_null(again.settings[2]);
    silt_handover_forget(&again);
}

TEST(every_changed_byte_is_noticed)
{
    struct silt_handover h = full();
    silt_auto_buf out;
    hand_over(&h, &out);
    for (size_t i = 0; i < out.len; i++) {
        out.data[i] ^= 1;
        assert_true(is_refused(&out));
        out.data[i] ^= 1;
    }
}

TEST(every_shorter_handover_is_refused)
{
    struct silt_handover h = full();
    silt_auto_buf out;
    hand_over(&h, &out);
    for (out.len--; out.len > 0; out.len--)
        assert_true(is_refused(&out));
}

TEST(another_version_asks_for_a_restart)
{
    struct silt_handover h = least(), again;
    struct silt_error e;
    silt_auto_buf out;
    hand_over(&h, &out);
    out.data[8]++;
    assert_int_equal(silt_handover_read(silt_buf_slice(&out), &again, &e), -1);
    assert_non_null(strstr(e.text, "restart the instance instead"));
}

TEST(a_descriptor_belongs_to_one_entry)
{
    struct silt_handover h = full();
    silt_auto_buf out;
    h.engine = h.preview;
    hand_over(&h, &out);
    assert_true(is_refused(&out));
}

TEST(impossible_descriptors_are_refused)
{
    const int bad[] = {0, 2, 1 << 22};
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        struct silt_handover h = full();
        silt_auto_buf out;
        h.keep.items[3].pidfd = bad[i];
        hand_over(&h, &out);
        assert_true(is_refused(&out));
    }
}

TEST(without_a_listening_socket_or_with_half_a_gateway_it_is_refused)
{
    struct silt_handover without = full(), half = full();
    silt_auto_buf a, b;
    without.listen = -1;
    half.gate_log = -1;
    hand_over(&without, &a);
    hand_over(&half, &b);
    assert_true(is_refused(&a));
    assert_true(is_refused(&b));
}

TEST(marks_reach_every_descriptor_and_name_one_that_is_closed)
{
    struct silt_handover h = least();
    struct silt_error e;
    silt_auto_fd fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    h.listen = fd;
    assert_int_equal(silt_handover_mark(&h, 0, &e), 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0);
    assert_int_equal(silt_handover_mark(&h, FD_CLOEXEC, &e), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    silt_close_fd(&fd);
    assert_int_equal(silt_handover_mark(&h, FD_CLOEXEC, &e), -1);
    silt_fd_store_forget(&h.keep);
}

TEST(only_a_sealed_memfd_is_loaded)
{
    struct silt_handover h = full(), again;
    struct silt_error e;
    silt_auto_buf out;
    silt_auto_fd sealed = -1, plain = open("/dev/null", O_RDONLY | O_CLOEXEC);
    hand_over(&h, &out);
    assert_int_equal(silt_fd_seal(silt_buf_slice(&out), &sealed, &e), 0);
    assert_int_equal(silt_handover_load(sealed, &again, &e), 0);
    silt_handover_forget(&again);
    assert_int_equal(silt_handover_load(plain, &again, &e), -1);
}
