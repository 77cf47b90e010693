/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_config c;
static struct silt_error e;

/* Loads with these flags and no file. */
#define LOAD(...)                                                                                  \
    ({                                                                                             \
        const char *args[] = {"test", "--config=", __VA_ARGS__};                                   \
        load(SILT_COUNT(args), args);                                                              \
    })

static int load(size_t count, const char **args)
{
    char *copy[16];
    assert_true(count < SILT_COUNT(copy));
    for (size_t i = 0; i < count; i++)
        assert_non_null(copy[i] = strdup(args[i]));
    int got = silt_config_load((int)count, copy, &c, &e);
    for (size_t i = 0; i < count; i++)
        free(copy[i]);
    return got;
}

static void write_file(char path[32], const char *text)
{
    (void)snprintf(path, 32, "/tmp/silt-config-XXXXXX");
    silt_auto_fd fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int load_text(const char *text)
{
    char path[32], flag[64];
    write_file(path, text);
    (void)snprintf(flag, sizeof(flag), "--config=%s", path);
    const char *args[] = {"test", flag};
    int got = load(SILT_COUNT(args), args);
    assert_int_equal(unlink(path), 0);
    return got;
}

static void assert_says(const char *part)
{
    if (strstr(e.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", e.text, part);
}

TEST(defaults_are_complete)
{
    assert_int_equal(LOAD("--fresh"), 0);
    assert_string_equal(c.instance, "silt");
    assert_string_equal(c.listen, "127.0.0.1:7458");
    assert_string_equal(c.images, "/var/lib/silt/images");
    assert_int_equal(c.ids_base, 0x10000000);
    assert_int_equal(c.ids_images, 0x0ff00000);
    assert_int_equal(c.disk_pool, 64ULL << 30);
    assert_int_equal(c.log_level, SILT_LOG_INFO);
    assert_int_equal(c.http_idle_timeout_ms, 255000);
    assert_true(c.fresh);
}

TEST(images_follow_the_state_directory)
{
    assert_int_equal(LOAD("--state=/srv/x"), 0);
    assert_string_equal(c.images, "/srv/x/images");
    assert_int_equal(LOAD("--state=/srv/x", "--images=/srv/y"), 0);
    assert_string_equal(c.images, "/srv/y");
}

TEST(flag_wins_over_environment_over_file)
{
    assert_int_equal(setenv("SILT_HTTP_CONNECTIONS", "222", 1), 0);
    assert_int_equal(load_text("http.connections = 111\nworkers = 7\n"), 0);
    assert_int_equal(c.http_connections, 222);
    assert_int_equal(c.workers, 7);
    assert_int_equal(LOAD("--http.connections=333"), 0);
    assert_int_equal(c.http_connections, 333);
    assert_int_equal(unsetenv("SILT_HTTP_CONNECTIONS"), 0);
}

TEST(a_section_is_the_first_part_of_the_name)
{
    assert_int_equal(
        load_text("image = host\n[http] ; limits\nconnections = 111\n[log]\nlevel=debug\n"), 0);
    assert_int_equal(c.http_connections, 111);
    assert_int_equal(c.log_level, SILT_LOG_DEBUG);
    assert_string_equal(c.image, "host");
}

TEST(an_unknown_name_tells_the_nearest)
{
    assert_int_equal(LOAD("--htp.conections=1"), -1);
    assert_says("http.connections");
    assert_int_equal(LOAD("--listne"), -1);
    assert_says("did you mean listen?");
    assert_int_equal(load_text("\nworker = 2\n"), -1);
    assert_says("line 2");
    assert_says("did you mean workers?");
    assert_int_equal(LOAD("--bogus=1"), -1);
    assert_says("bogus; silt-super --help");
    assert_int_equal(LOAD("listen=1"), -1);
    assert_says("--name=value");
}

TEST(a_flag_without_value_is_refused)
{
    assert_int_equal(LOAD("--listen"), -1);
    assert_says("--listen needs a value");
}

TEST(values_are_bounded)
{
    const char *bad[] = {
        "--instance=",
        "--instance=toolong",
        "--instance=Upper",
        "--instance=a/b",
        "--state=relative",
        "--state=",
        "--workers=0",
        "--workers=65",
        "--workers=+1",
        "--workers=1x",
        "--workers= 1",
        "--workers=0x2",
        "--disk.pool=1K",
        "--disk.pool=9999999T",
        "--disk.pool=G",
        "--disk.pool=",
        "--log.level=loud",
        "--type=huge",
        "--image=../x",
        "--ids.base=1",
        "--ids.count=257",
        "--ids.count=65280",
        "--ids.images=1",
        "--ids.base=16777217",
        "--ids.images=268435456",
        "--run=/a\nb",
        "--user=",
    };
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (LOAD(bad[i]) == 0)
            fail_msg("%s was taken", bad[i]);
}

TEST(sizes_have_units)
{
    assert_int_equal(LOAD("--disk.pool=512M"), 0);
    assert_int_equal(c.disk_pool, 512ULL << 20);
    assert_int_equal(LOAD("--disk.pool=1073741824"), 0);
    assert_int_equal(c.disk_pool, 1ULL << 30);
}

TEST(a_setting_given_twice_in_the_file_is_refused)
{
    assert_int_equal(load_text("workers = 2\nworkers = 3\n"), -1);
    assert_says("twice");
    assert_int_equal(load_text("workers = 2\n  3\n"), -1); /* a continuation line */
}

TEST(a_line_that_says_nothing_is_refused)
{
    assert_int_equal(load_text("workers = 2\nwhat is this\n"), -1);
    assert_says("line 2");
}

TEST(a_named_file_must_exist)
{
    const char *args[] = {"test", "--config=/nonexistent/silt.conf"};
    assert_int_equal(load(SILT_COUNT(args), args), -1);
    assert_says("/nonexistent/silt.conf");
    assert_int_equal(e.code, SILT_NOT_FOUND);
}

TEST(args_bring_the_same_values_back)
{
    static struct silt_config before;
    assert_int_equal(
        LOAD("--log.level=error", "--disk.pool=3G", "--ids.count=512", "--run=/x y", "--workers=5"),
        0);
    before = c;
    char **args = silt_config_to_args(&before, "siltd", "--fresh");
    int n = 0;
    while (args[n] != NULL)
        n++;
    assert_string_equal(args[0], "siltd");
    assert_int_equal(silt_config_load(n, args, &c, &e), 0);
    silt_config_args_free(args);
    before.fresh = true;
    assert_memory_equal(&before, &c, sizeof(c));
}

TEST(help_names_every_row_of_the_reference)
{
    silt_auto_free char *help = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&help, &len);
    silt_config_help(out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(help, "--http.head_timeout_ms=10000"));
    assert_non_null(strstr(help, "--instance=silt"));
}

static void compare_page(void (*print)(FILE *out), const char *path)
{
    silt_auto_free char *made = NULL, *kept = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&made, &len), *file = fopen(path, "re");
    print(out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(file);
    assert_non_null(kept = calloc(1, 65536));
    assert_true(fread(kept, 1, 65535, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(made, kept);
}

TEST(the_reference_page_is_up_to_date) /* silt-super --reference > docs/settings.md */
{
    compare_page(silt_config_reference, REFERENCE_FILE);
}

TEST(the_manual_page_is_up_to_date) /* silt-super --manual > docs/man/silt.conf.5 */
{
    compare_page(silt_config_manual, MANUAL_FILE);
}
