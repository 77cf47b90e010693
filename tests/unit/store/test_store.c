/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* As they were before an image had several names. */
#define OLD_CAPTURES                                                                               \
    "DROP TABLE capture; CREATE TABLE capture(number INTEGER PRIMARY KEY, port INTEGER NOT NULL,"  \
    " internet INTEGER NOT NULL, hostnames TEXT);"
#define OLD_IMAGES                                                                                 \
    "DROP TABLE build_step; DROP TABLE image_info; DROP TABLE image; CREATE TABLE image(name "     \
    "TEXT PRIMARY KEY, digest BLOB NOT NULL, bytes"                                                \
    " INTEGER NOT NULL, created_ms INTEGER NOT NULL, host_usr INTEGER NOT NULL) WITHOUT ROWID;"

static char directory[64];
static char path[80];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/silt-store-XXXXXX");
    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/db", directory);
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
    return rmdir(directory);
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
    struct silt_sandbox_row row = {
        .slot = 9,
        .id = "box",
        .image = "base",
        .type = "lite",
        .env = env,
        .env_len = sizeof(env),
        .labels = labels,
        .sleep_after_s = 30,
        .stop_after_s = 31,
        .keep_alive = true,
        .let_sleep = true,
        .remove_after_stop = true,
        .expires_ms = 32,
        .paused_ms = 33,
        .running = true,
        .incarnation = "abc",
        .limits = {.memory_bytes = 1ULL << 40, .cpu_milli = 62, .pids = 8, .disk_bytes = 5}};
    row.death = (struct silt_death){
        .cause = "oom", .message = "m", .at_ms = 4, .exit_code = -1, .signal = 9, .peak_bytes = 77};
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
    assert_int_equal(seen.row.sleep_after_s, 30);
    assert_int_equal(seen.row.stop_after_s, 31);
    assert_true(seen.row.keep_alive && seen.row.let_sleep && seen.row.remove_after_stop);
    assert_int_equal(seen.row.expires_ms, 32);
    assert_int_equal(seen.row.paused_ms, 33);
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
    struct silt_sandbox_row row = {
        .slot = 4, .id = "box", .image = "base", .network = SILT_NET_ALLOW, .allow = rules};
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
    struct silt_process_row row = {.number = 1ULL << 60,
                                   .slot = 3,
                                   .id = "p:1",
                                   .command = command,
                                   .session = session,
                                   .remark = remark,
                                   .status = SILT_PROCESS_KILLED,
                                   .auto_cleanup = true,
                                   .pid = 5,
                                   .exit_code = 137,
                                   .signal = 9,
                                   .started_ms = 1,
                                   .ended_ms = 2,
                                   .log_bytes = 3,
                                   .cause = "signal"};
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
    assert_int_equal(silt_store_remove_sandbox(s, 3, &e), 0);
    assert_int_equal(silt_store_each_process(s, keep_process, &seen, &e), 0);
    assert_int_equal(seen.number, 0);
    silt_store_close(s);
}

struct seen_contexts {
    int count;
    struct silt_context_row last;
    uint64_t numbers[8];
};

static void keep_context(void *context, struct silt_context_row *row)
{
    struct seen_contexts *s = context;
    silt_context_row_fini(&s->last);
    s->last = *row;
    assert_in_range(s->count, 0, 7);
    s->numbers[s->count++] = row->number;
}

static struct seen_contexts see_contexts(struct silt_store *s)
{
    struct silt_error e;
    struct seen_contexts seen = {0};
    assert_int_equal(silt_store_each_context(s, keep_context, &seen, &e), 0);
    silt_context_row_fini(&seen.last);
    return seen;
}

static void put_box(struct silt_store *s, uint32_t slot, const char *id)
{
    struct silt_error e;
    struct silt_sandbox_row box = {.slot = slot, .image = "base"};
    (void)snprintf(box.id, sizeof(box.id), "%s", id);
    assert_int_equal(silt_store_put_sandbox(s, &box, &e), 0);
}

static void a_context_is_the_same_after_a_restart(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct seen_contexts seen = {0};
    char cwd[] = "/tmp/\xc3\xbc", env[] = "A=1\0B=\n";
    struct silt_context_row row = {.number = 1ULL << 62,
                                   .slot = 3,
                                   .id = "0f0f0f0f-0000-4000-8000-0123456789ab",
                                   .language = SILT_TYPESCRIPT,
                                   .is_default = true,
                                   .cwd = cwd,
                                   .env = env,
                                   .env_len = sizeof(env),
                                   .timeout_ms = UINT32_MAX,
                                   .count = UINT32_MAX,
                                   .created_ms = 1LL << 50,
                                   .used_ms = 2LL << 50,
                                   .deadline_ms = 3LL << 50};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    put_box(s, 3, "box");
    assert_int_equal(silt_store_put_context(s, &row, &e), 0);
    row.count--;
    assert_int_equal(silt_store_put_context(s, &row, &e), 0); /* again: the same one */
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_context(s, keep_context, &seen, &e), 0);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.number, row.number);
    assert_int_equal(seen.last.slot, 3);
    assert_string_equal(seen.last.id, row.id);
    assert_int_equal(seen.last.language, SILT_TYPESCRIPT);
    assert_true(seen.last.is_default);
    assert_string_equal(seen.last.cwd, cwd);
    assert_int_equal(seen.last.env_len, sizeof(env));
    assert_memory_equal(seen.last.env, env, sizeof(env));
    assert_int_equal(seen.last.timeout_ms, UINT32_MAX);
    assert_int_equal(seen.last.count, UINT32_MAX - 1);
    assert_int_equal(seen.last.created_ms, row.created_ms);
    assert_int_equal(seen.last.used_ms, row.used_ms);
    assert_int_equal(seen.last.deadline_ms, row.deadline_ms);
    silt_context_row_fini(&seen.last);
    silt_context_row_fini(&seen.last);
    silt_store_close(s);
}

static void contexts_come_by_number_and_go_alone_or_with_their_sandbox(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    char cwd[] = "/";
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    put_box(s, 1, "one");
    put_box(s, 2, "two");
    for (uint32_t i = 6; i > 0; i--) {
        struct silt_context_row row = {
            .number = i, .slot = 1 + i % 3, .cwd = cwd}; /* slot 3 has no sandbox */
        assert_int_equal(silt_store_put_context(s, &row, &e), 0);
    }
    struct seen_contexts seen = see_contexts(s);
    assert_int_equal(seen.count, 4);
    const uint64_t want[] = {1, 3, 4, 6};
    assert_memory_equal(seen.numbers, want, sizeof(want));
    assert_int_equal(
        silt_store_remove_context(s, &(struct silt_context_row){.slot = 2, .number = 4}, &e), 0);
    assert_int_equal(
        silt_store_remove_context(s, &(struct silt_context_row){.slot = 2, .number = 3}, &e), 0);
    seen = see_contexts(s);
    assert_int_equal(seen.count, 3); /* 3 is another slot's */
    assert_int_equal(silt_store_remove_sandbox(s, 1, &e), 0);
    seen = see_contexts(s);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.numbers[0], 1);
    assert_int_equal(silt_store_remove_sandbox(s, 2, &e), 0);
    assert_int_equal(see_contexts(s).count, 0);
    silt_store_close(s);
}

/* As before they could be paused. */
#define OLD_SANDBOXES                                                                              \
    "DROP TABLE event; DROP TABLE session; DROP TABLE history;"                                    \
    "ALTER TABLE sandbox DROP COLUMN auto_snapshot;"                                               \
    "ALTER TABLE sandbox DROP COLUMN stop_after_s; ALTER TABLE sandbox DROP COLUMN keep_alive;"    \
    "ALTER TABLE sandbox DROP COLUMN let_sleep;"                                                   \
    "ALTER TABLE sandbox DROP COLUMN remove_after_stop;"                                           \
    "ALTER TABLE sandbox DROP COLUMN expires_ms; ALTER TABLE sandbox DROP COLUMN paused_ms;"       \
    "DROP TABLE snapshot;"

static void run_sql(const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_store_from_before_contexts_is_brought_up_to_date(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    char cwd[] = "/";
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    put_box(s, 1, "old");
    silt_store_close(s);
    run_sql("DROP TABLE context; DROP TABLE port; DROP TABLE alias; DROP TABLE capture;"
            "DROP TABLE container; DROP TABLE volume;" OLD_IMAGES OLD_SANDBOXES
            "PRAGMA user_version=4");
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    struct seen seen = {0};
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_int_equal(seen.count, 1);
    silt_sandbox_row_fini(&seen.row);
    assert_int_equal(see_contexts(s).count, 0);
    struct silt_context_row row = {.number = 1, .slot = 1, .cwd = cwd};
    assert_int_equal(silt_store_put_context(s, &row, &e), 0);
    assert_int_equal(see_contexts(s).count, 1);
    silt_store_close(s);
}

struct seen_ports {
    int count;
    struct silt_port_row rows[4];
};

static void keep_port(void *context, const struct silt_port_row *row)
{
    struct seen_ports *seen = context;
    if (seen->count < 4)
        seen->rows[seen->count] = *row;
    seen->count++;
}

static struct seen_ports see_ports(struct silt_store *s)
{
    struct seen_ports seen = {0};
    struct silt_error e;
    assert_int_equal(silt_store_each_port(s, keep_port, &seen, &e), 0);
    return seen;
}

static void ports_and_an_alias_are_the_same_after_a_restart(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    const struct silt_port_row web = {.slot = 1,
                                      .port = 8000,
                                      .route = 1ULL << 60,
                                      .name = "web",
                                      .token = "sixteenletters01",
                                      .locked = true,
                                      .exposed_ms = 77};
    const struct silt_port_row plain = {.slot = 1, .port = 1024, .route = 5, .token = "a"};
    const struct silt_port_row lost = {
        .slot = 3, .port = 1024, .route = 6, .token = "b"}; /* has no sandbox */
    struct silt_sandbox_row named = {.slot = 1, .alias = "sabcdefghijkl"};
    struct seen seen = {0};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    put_box(s, 1, "one");
    assert_int_equal(silt_store_put_port(s, &web, &e), 0);
    assert_int_equal(silt_store_put_port(s, &plain, &e), 0);
    assert_int_equal(silt_store_put_port(s, &lost, &e), 0);
    assert_int_equal(silt_store_put_alias(s, &named, &e), 0);
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    struct seen_ports ports = see_ports(s);
    assert_int_equal(ports.count, 2);
    assert_int_equal(ports.rows[0].port, 1024);
    assert_string_equal(ports.rows[0].name, "");
    assert_int_equal(ports.rows[1].port, 8000);
    assert_int_equal(ports.rows[1].route, 1ULL << 60);
    assert_string_equal(ports.rows[1].name, "web");
    assert_string_equal(ports.rows[1].token, "sixteenletters01");
    assert_true(ports.rows[1].locked);
    assert_int_equal(ports.rows[1].exposed_ms, 77);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_string_equal(seen.row.alias, "sabcdefghijkl");
    assert_int_equal(silt_store_remove_port(s, &web, &e), 0);
    assert_int_equal(see_ports(s).count, 1);
    assert_int_equal(silt_store_remove_ports(s, 1, &e), 0);
    assert_int_equal(see_ports(s).count, 0);
    assert_int_equal(silt_store_each_sandbox(s, keep, &seen, &e), 0);
    assert_string_equal(seen.row.alias, "");
    silt_sandbox_row_fini(&seen.row);
    silt_store_close(s);
}

static void a_secret_is_made_once(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    char first[SILT_SECRET_SIZE], again[SILT_SECRET_SIZE], other[SILT_SECRET_SIZE];
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_secret(s, "one", first, &e), 0);
    assert_int_equal(silt_store_secret(s, "other", other, &e), 0);
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_secret(s, "one", again, &e), 0);
    assert_int_equal(strlen(first), SILT_SECRET_SIZE - 1);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    silt_store_close(s);
}

struct images {
    int count, names;
    char config[256], bytes[64];
};

static void keep_image(void *context, struct silt_image_row *row)
{
    struct images *i = context;
    i->count++;
    if (row->digest[0] == 'b') {
        (void)snprintf(i->config, sizeof(i->config), "%s", row->config);
        (void)snprintf(i->bytes, sizeof(i->bytes), "%llu %d %d", (unsigned long long)row->bytes,
                       row->host_usr, row->layered);
    }
    free(row->config);
}

static void keep_image_name(void *context, const char *name, const uint8_t digest[SILT_DIGEST_SIZE])
{
    struct images *i = context;
    assert_int_equal(digest[0], name[0] == 'o' ? 'o' : 'b');
    i->names++;
}

static void images_from_before_names_are_the_same_and_ours_say_so(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct images seen = {0};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    silt_store_close(s);
    run_sql(
        OLD_IMAGES
        "INSERT INTO image VALUES('base', CAST('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' AS BLOB), 7, 1, "
        "1);"
        "INSERT INTO image VALUES('a', CAST('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' AS BLOB), 7, 1, 1);"
        "INSERT INTO image VALUES('other', CAST('oooooooooooooooooooooooooooooooo' AS BLOB), 8, 2, "
        "0);"
        "DROP TABLE container; DROP TABLE volume;" OLD_CAPTURES OLD_SANDBOXES
        "PRAGMA user_version=7");
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_image(s, keep_image, &seen, &e), 0);
    assert_int_equal(silt_store_each_image_name(s, keep_image_name, &seen, &e), 0);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.names, 3);
    assert_string_equal(seen.config, "{\"Labels\":{\"silt.control\":\"builtin\"}}");
    assert_string_equal(seen.bytes, "7 1 0");
    silt_store_close(s);
}

static void keep_container(void *context, struct silt_container_row *row)
{
    struct silt_container_row *seen = context;
    assert_null(seen->name);
    *seen = *row;
}

static void keep_capture(void *context, struct silt_capture_row *row)
{
    struct silt_capture_row *seen = context;
    assert_int_equal(seen->number, 0);
    *seen = *row;
}

static void containers_from_before_they_kept_ports_certificates_and_copies_get_them(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct silt_container_row container = {0};
    struct silt_capture_row capture = {0};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    silt_store_close(s);
    run_sql(OLD_SANDBOXES OLD_CAPTURES
            "INSERT INTO capture VALUES(5, 4000, 1, '*');"
            "DROP TABLE container; CREATE TABLE container(id TEXT PRIMARY KEY, name "
            "TEXT NOT NULL, uid INTEGER NOT NULL, status INTEGER NOT NULL,"
            " exit_code INTEGER NOT NULL, number INTEGER NOT NULL, created_ms INTEGER "
            "NOT NULL, started_ms INTEGER NOT NULL,"
            " ended_ms INTEGER NOT NULL, digest BLOB NOT NULL, body TEXT NOT NULL, "
            "extra TEXT) WITHOUT ROWID;"
            "INSERT INTO container VALUES('ab', 'x-proxy', 0, 1, 0, 5, 1, 2, 0, '', "
            "'{}', NULL); PRAGMA user_version=10");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(silt_store_open(path, &s, &e), 0);
        assert_int_equal(silt_store_each_container(s, keep_container, &container, &e), 0);
        assert_int_equal(silt_store_each_capture(s, keep_capture, &capture, &e), 0);
        assert_string_equal(container.name, "x-proxy");
        assert_int_equal(container.port, i == 0 ? 0 : 65535);
        assert_int_equal(container.copies_len, i == 0 ? 0 : sizeof("/a\0/b"));
        assert_true(i == 0 || memcmp(container.copies, "/a\0/b", container.copies_len) == 0);
        assert_int_equal(capture.port, 4000);
        if (i == 0) {
            assert_null(capture.certificate);
            capture.certificate = strdup("c");
            capture.key = strdup("k");
        }
        assert_string_equal(capture.certificate, "c");
        assert_string_equal(capture.key, "k");
        container.port = 65535;
        free(container.copies);
        container.copies = memcpy(malloc(sizeof("/a\0/b")), "/a\0/b", sizeof("/a\0/b"));
        container.copies_len = sizeof("/a\0/b");
        assert_int_equal(silt_store_put_container(s, &container, &e), 0);
        assert_int_equal(silt_store_put_capture(s, &capture, &e), 0);
        silt_container_row_fini(&container);
        silt_capture_row_fini(&capture);
        container = (struct silt_container_row){0};
        capture = (struct silt_capture_row){0};
        silt_store_close(s);
    }
}

static void a_store_of_a_newer_version_is_left_alone(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    silt_store_close(s);
    run_sql("PRAGMA user_version=1000");
    assert_int_equal(silt_store_open(path, &s, &e), -1);
    assert_non_null(strstr(e.text, "newer version"));
}

static void a_language_that_is_not_known_is_no_other_memory(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    struct seen_contexts seen = {0};
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    put_box(s, 1, "box");
    silt_store_close(s);
    run_sql("INSERT INTO context VALUES(1,1,'much too long for an identifier of a "
            "context',77,1,NULL,NULL,0,0,0,0,0)");
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_each_context(s, keep_context, &seen, &e), 0);
    assert_in_range(seen.last.language, 0, SILT_LANGUAGE_MAX - 1);
    assert_int_equal(strlen(seen.last.id), SILT_CONTEXT_ID_SIZE - 1);
    assert_int_equal(seen.last.env_len, 0);
    silt_context_row_fini(&seen.last);
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

static void each_start_is_later_than_the_one_before_also_when_the_clock_is_set_back(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    int64_t first, second, third;
    (void)state;
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_start_time(s, 1000, &first, &e), 0);
    assert_int_equal(silt_store_start_time(s, 400, &second, &e), 0);
    silt_store_close(s);
    assert_int_equal(silt_store_open(path, &s, &e), 0);
    assert_int_equal(silt_store_start_time(s, 401, &third, &e), 0);
    silt_store_close(s);
    assert_int_equal(first, 1000);
    assert_true(second - first > 3600000
                && third - second > 3600000); /* what ran meanwhile has numbers, too */
}

static void a_store_that_cannot_be_opened_names_its_path(void **state)
{
    struct silt_store *s;
    struct silt_error e;
    char missing[96];
    (void)state;
    (void)snprintf(missing, sizeof(missing), "%s/none/silt.db", directory);
    assert_int_equal(silt_store_open(missing, &s, &e), -1);
    assert_non_null(strstr(e.text, missing));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_sandbox_is_the_same_after_a_restart),
        T(a_second_sandbox_without_a_name_is_another_one),
        T(rules_are_kept_with_their_sandbox_and_go_with_it),
        T(a_process_is_the_same_after_a_restart_and_goes_with_its_sandbox),
        T(a_context_is_the_same_after_a_restart),
        T(contexts_come_by_number_and_go_alone_or_with_their_sandbox),
        T(ports_and_an_alias_are_the_same_after_a_restart),
        T(a_secret_is_made_once),
        T(a_store_from_before_contexts_is_brought_up_to_date),
        T(images_from_before_names_are_the_same_and_ours_say_so),
        T(containers_from_before_they_kept_ports_certificates_and_copies_get_them),
        T(a_store_of_a_newer_version_is_left_alone),
        T(a_language_that_is_not_known_is_no_other_memory),
        T(another_boot_is_noticed_once),
        T(each_start_is_later_than_the_one_before_also_when_the_clock_is_set_back),
        T(a_store_that_cannot_be_opened_names_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
