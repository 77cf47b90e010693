/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char path[80];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/silt-store-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/db", folder);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[96];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
    return rmdir(folder);
}

struct seen {
    int count;
    struct silt_sandbox_row row;
};

static void keep(void *context, struct silt_sandbox_row *row)
{
    struct seen *s = context;
    silt_sandbox_row_fini(&s->row);
    s->row = *row;
    s->count++;
}

static void a_sandbox_is_the_same_after_a_restart(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    char env[] = "A=1\0B=2";
    char labels[] = "{\"k\":\"v\"}";
    struct silt_sandbox_row row = {.slot = 9, .id = "box", .image = "base", .type = "lite", .env = env,
                                   .env_len = sizeof(env), .labels = labels, .sleep_after_s = 30,
                                   .running = true, .incarnation = "abc",
                                   .limits = {.memory_bytes = 1ULL << 40, .cpu_milli = 62, .pids = 8, .disk_bytes = 5}};
    row.death = (struct silt_death){.cause = "oom", .message = "m", .at_ms = 4, .exit_code = -1, .signal = 9, .peak_bytes = 77};
    (void)state;
    memset(row.digest, 3, sizeof(row.digest));
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &row, &e), 0);
    silt_store_close(s);
    struct seen seen = {0};
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.row.id, "box");
    assert_int_equal(seen.row.limits.memory_bytes, 1ULL << 40);
    assert_int_equal(seen.row.env_len, sizeof(env));
    assert_memory_equal(seen.row.env, env, sizeof(env));
    assert_string_equal(seen.row.labels, labels);
    assert_memory_equal(seen.row.digest, row.digest, sizeof(row.digest));
    assert_true(seen.row.running);
    assert_string_equal(seen.row.death.cause, "oom");
    assert_int_equal(seen.row.death.exit_code, -1);
    assert_int_equal(silt_store_remove_sandbox(s, 9, &e), 0);
    assert_int_equal(silt_store_checkpoint(s, &e), 0);
    int before = seen.count;
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_int_equal(seen.count, before);
    silt_sandbox_row_fini(&seen.row);
    silt_store_close(s);
}

static void a_second_sandbox_without_a_name_is_another_one(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct seen seen = {0};
    struct silt_sandbox_row a = {.slot = 1, .image = "base"}, b = {.slot = 2, .image = "base"};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &a, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &b, &e), 0);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_int_equal(seen.count, 2);
    silt_sandbox_row_fini(&seen.row);
    silt_store_close(s);
}

static void rules_are_kept_with_their_sandbox_and_go_with_it(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct seen seen = {0};
    char rules[] = "example.com\n10.1.0.0/16:5432\n";
    struct silt_sandbox_row row = {.slot = 4, .id = "box", .image = "base", .network = SILT_NET_ALLOW, .allow = rules};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_put_policy(s, &row, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &row, &e), 0);
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_int_equal(seen.row.network, SILT_NET_ALLOW);
    assert_string_equal(seen.row.allow, rules);
    silt_sandbox_row_fini(&seen.row);
    assert_int_equal(silt_store_remove_sandbox(s, 4, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &row, &e), 0);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_null(seen.row.allow);
    row.network = SILT_NET_NONE;
    row.allow = NULL;
    assert_int_equal(silt_store_put_policy(s, &row, &e), 0);
    silt_sandbox_row_fini(&seen.row);
    silt_store_close(s);
}

static void keep_process(void *context, struct silt_process_row *row)
{
    struct silt_process_row *kept = context;
    silt_process_row_fini(kept);
    *kept = *row;
}

static void a_process_is_the_same_after_a_restart_and_goes_with_its_sandbox(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct silt_sandbox_row box = {.slot = 3, .id = "box", .image = "base"};
    char command[] = "echo ü", session[] = "s", remark[] = "r";
    struct silt_process_row row = {.number = 1ULL << 60, .slot = 3, .id = "p:1", .command = command,
                                   .session = session, .remark = remark,
                                   .status = SILT_PROCESS_KILLED, .auto_cleanup = true, .pid = 5, .exit_code = 137,
                                   .signal = 9, .started_ms = 1, .ended_ms = 2, .log_bytes = 3, .cause = "signal"};
    struct silt_process_row lost = {.number = 7, .slot = 4, .id = "nobody's"}, seen = {0};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_put_sandbox(s, &box, &e), 0);
    assert_int_equal(silt_store_put_process(s, &row, &e), 0);
    assert_int_equal(silt_store_put_process(s, &lost, &e), 0);
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_process(s, keep_process, &seen, &e), 0);
    assert_int_equal(seen.number, row.number);
    assert_string_equal(seen.id, "p:1");
    assert_string_equal(seen.command, command);
    assert_string_equal(seen.session, session);
    assert_string_equal(seen.remark, remark);
    assert_int_equal(seen.status, SILT_PROCESS_KILLED);
    assert_true(seen.auto_cleanup);
    assert_int_equal(seen.exit_code, 137);
    assert_int_equal(seen.log_bytes, 3);
    assert_string_equal(seen.cause, "signal");
    silt_process_row_fini(&seen);
    seen.number = 0;
    assert_int_equal(silt_store_remove_processes(s, 3, &e), 0);
    assert_int_equal(silt_store_each_process(s, keep_process, &seen, &e), 0);
    assert_int_equal(seen.number, 0);
    silt_store_close(s);
}

static void another_boot_is_noticed_once(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    bool rebooted = true;
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_rebooted(s, "one", &rebooted, &e), 0);
    assert_false(rebooted);
    assert_int_equal(silt_store_rebooted(s, "two", &rebooted, &e), 0);
    assert_true(rebooted);
    assert_int_equal(silt_store_rebooted(s, "two", &rebooted, &e), 0);
    assert_false(rebooted);
    silt_store_close(s);
}

static void a_store_that_cannot_be_opened_names_its_path(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    (void)state;
    assert_int_equal(silt_store_open("/nonexistent/silt.db", &s, &e), -1);
    assert_non_null(strstr(e.text, "/nonexistent/silt.db"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_sandbox_is_the_same_after_a_restart),
        T(a_second_sandbox_without_a_name_is_another_one),
        T(rules_are_kept_with_their_sandbox_and_go_with_it),
        T(a_process_is_the_same_after_a_restart_and_goes_with_its_sandbox),
        T(another_boot_is_noticed_once),
        T(a_store_that_cannot_be_opened_names_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
