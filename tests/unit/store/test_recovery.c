/* SPDX-License-Identifier: Apache-2.0 */
#include "store/recovery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_sandbox_reads_back_as_it_was(void **state)
{
    struct silt_port_row ports[] = {
        {.port = 80, .route = 7, .exposed_ms = 5, .token = "tok", .name = "two words"},
        {.port = 81, .locked = true, .exposed_ms = 6, .token = "t"}};
    char env[] = "A=b\0C=\n";
    struct silt_recovery_sandbox in = {.row = {.id = "demo",
                                               .image = "base",
                                               .type = "lite",
                                               .alias = "salias",
                                               .host_usr = true,
                                               .network = SILT_NET_ALLOW,
                                               .allow = (char[]){"example.com\n"},
                                               .labels = (char[]){"{}"},
                                               .env = env,
                                               .env_len = sizeof(env),
                                               .limits = {1, 2, 3, 4},
                                               .sleep_after_s = 9,
                                               .stop_after_s = 10,
                                               .keep_alive = true,
                                               .let_sleep = true,
                                               .remove_after_stop = true,
                                               .expires_ms = 11,
                                               .created_ms = 1700000000000},
                                       .ports = ports,
                                       .port_count = 2};
    struct silt_recovery_sandbox out;
    struct silt_error e;
    silt_auto_buf b;
    (void)state;
    memset(in.row.digest, 7, sizeof(in.row.digest));
    silt_buf_init(&b, SILT_RECOVERY_MAX);
    assert_int_equal(silt_recovery_write_sandbox(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_sandbox(silt_buf_slice(&b), &out, &e), 0);
    assert_string_equal(out.row.id, "demo");
    assert_string_equal(out.row.image, "base");
    assert_string_equal(out.row.type, "lite");
    assert_string_equal(out.row.alias, "salias");
    assert_string_equal(out.row.allow, "example.com\n");
    assert_string_equal(out.row.labels, "{}");
    assert_int_equal(out.row.env_len, sizeof(env));
    assert_memory_equal(out.row.env, env, sizeof(env));
    assert_memory_equal(&out.row.limits, &in.row.limits, sizeof(in.row.limits));
    assert_memory_equal(out.row.digest, in.row.digest, sizeof(in.row.digest));
    assert_true(out.row.host_usr && !out.row.ephemeral && out.row.network == SILT_NET_ALLOW);
    assert_int_equal(out.row.sleep_after_s, 9);
    assert_int_equal(out.row.stop_after_s, 10);
    assert_true(out.row.keep_alive && out.row.let_sleep && out.row.remove_after_stop);
    assert_int_equal(out.row.expires_ms, 11);
    assert_int_equal(out.row.created_ms, 1700000000000);
    assert_int_equal(out.port_count, 2);
    assert_string_equal(out.ports[0].name, "two words");
    assert_string_equal(out.ports[1].name, "");
    assert_true(out.ports[1].locked && !out.ports[0].locked && out.ports[0].route == 7);
    silt_recovery_sandbox_fini(&out);
}

static void every_changed_byte_is_noticed(void **state)
{
    struct silt_recovery_sandbox in = {.row = {.id = "demo", .image = "base"}}, out;
    struct silt_error e;
    silt_auto_buf b;
    (void)state;
    silt_buf_init(&b, SILT_RECOVERY_MAX);
    assert_int_equal(silt_recovery_write_sandbox(&b, &in, &e), 0);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] ^= 1;
        assert_int_equal(silt_recovery_read_sandbox(silt_buf_slice(&b), &out, &e), -1);
        silt_recovery_sandbox_fini(&out);
        b.data[i] ^= 1;
    }
    for (size_t len = 0; len < b.len; len++) {
        assert_int_equal(silt_recovery_read_sandbox((silt_slice){b.data, len}, &out, &e), -1);
        silt_recovery_sandbox_fini(&out);
    }
}

static void what_does_not_fit_is_left_out_and_said(void **state)
{
    struct silt_recovery_sandbox in = {.row = {.id = "demo", .env_len = 60 << 10}}, out;
    struct silt_error e;
    silt_auto_buf b;
    (void)state;
    in.row.env = calloc(1, in.row.env_len);
    in.row.allow = calloc(1, (70 << 10) + 1);
    assert_non_null(in.row.env);
    assert_non_null(in.row.allow);
    memset(in.row.env, 'e', in.row.env_len - 1);
    memset(in.row.allow, 'a', 30 << 10);
    silt_buf_init(&b, SILT_RECOVERY_MAX);
    assert_int_equal(silt_recovery_write_sandbox(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_sandbox(silt_buf_slice(&b), &out, &e), 0);
    assert_true(out.env_left_out && !out.allow_left_out && out.row.env == NULL
                && out.row.allow != NULL);
    silt_recovery_sandbox_fini(&out);
    memset(in.row.allow, 'a', 70 << 10);
    assert_int_equal(silt_recovery_write_sandbox(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_sandbox(silt_buf_slice(&b), &out, &e), 0);
    assert_true(out.env_left_out && out.allow_left_out && out.row.allow == NULL);
    assert_string_equal(out.row.id, "demo");
    silt_recovery_sandbox_fini(&out);
    silt_sandbox_row_fini(&in.row);
}

static void an_image_reads_back_with_its_snapshot(void **state)
{
    struct silt_recovery_image in = {.row = {.layered = true, .config = (char[]){"{}"}},
                                     .snapshot = {.id = "snap_a",
                                                  .sandbox = "demo",
                                                  .name = (char[]){"two words"},
                                                  .bytes = 7,
                                                  .created_ms = 8,
                                                  .expires_ms = 9,
                                                  .record = (char[]){"a\0b\n"},
                                                  .record_len = 4}};
    struct silt_recovery_image out;
    struct silt_error e;
    silt_auto_buf b;
    (void)state;
    silt_buf_init(&b, SILT_RECOVERY_IMAGE_MAX);
    assert_int_equal(silt_recovery_write_image(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_image(silt_buf_slice(&b), &out, &e), 0);
    assert_string_equal(out.snapshot.id, "snap_a");
    assert_string_equal(out.snapshot.sandbox, "demo");
    assert_string_equal(out.snapshot.name, "two words");
    assert_int_equal(out.snapshot.bytes, 7);
    assert_int_equal(out.snapshot.created_ms, 8);
    assert_int_equal(out.snapshot.expires_ms, 9);
    assert_int_equal(out.snapshot.record_len, 4);
    assert_memory_equal(out.snapshot.record, "a\0b\n", 4);
    silt_recovery_image_fini(&out);
    in.snapshot.record_len = 0; /* nothing to make a sandbox of */
    assert_int_equal(silt_recovery_write_image(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_image(silt_buf_slice(&b), &out, &e), -1);
    silt_recovery_image_fini(&out);
}

static void an_image_reads_back_with_its_names(void **state)
{
    char names[2][SILT_IMAGE_NAME_SIZE] = {"base", "other:tag"};
    struct silt_recovery_image in = {.row = {.layered = true,
                                             .bytes = 5,
                                             .created_ms = 6,
                                             .config = (char[]){"{\"Labels\":{}}"}},
                                     .names = names,
                                     .name_count = 2};
    struct silt_recovery_image out;
    struct silt_error e;
    silt_auto_buf b;
    (void)state;
    memset(in.row.parent, 3, sizeof(in.row.parent));
    silt_buf_init(&b, SILT_RECOVERY_IMAGE_MAX);
    assert_int_equal(silt_recovery_write_image(&b, &in, &e), 0);
    assert_int_equal(silt_recovery_read_image(silt_buf_slice(&b), &out, &e), 0);
    assert_true(out.row.layered && !out.row.host_usr && out.row.bytes == 5
                && out.row.created_ms == 6);
    assert_memory_equal(out.row.parent, in.row.parent, sizeof(in.row.parent));
    assert_string_equal(out.row.config, in.row.config);
    assert_int_equal(out.name_count, 2);
    assert_string_equal(out.names[1], "other:tag");
    silt_recovery_image_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sandbox_reads_back_as_it_was),
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(what_does_not_fit_is_left_out_and_said),
        cmocka_unit_test(an_image_reads_back_with_its_names),
        cmocka_unit_test(an_image_reads_back_with_its_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
