/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a shell, judged by a shell. */
#include "agent/spawn/script.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_memory(void *arg)
{
    int *copy = arg;
    int fd = memfd_create("test", MFD_CLOEXEC);
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return fd;
}

static int no_file(void *arg)
{
    (void)arg;
    return -1;
}

/* What bash prints when it runs the script from a file. */
static char *run(struct silt_script *s, int copy)
{
    static char out[64 << 10];
    int pair[2];
    struct silt_error e;
    if (!silt_script_flush(s)) {
        copy = memfd_create("test", MFD_CLOEXEC);
        assert_int_equal(silt_fd_write_all(copy, (silt_slice){s->text, s->len}, &e), 0);
    }
    assert_int_equal(lseek(copy, 0, SEEK_SET), 0);
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(copy, 0);
        (void)dup2(pair[1], 1);
        (void)execl("/bin/bash", "bash", "--norc", (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    size_t len = 0;
    ssize_t n;
    while ((n = read(pair[0], out + len, sizeof(out) - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = 0;
    (void)close(pair[0]);
    (void)close(copy);
    (void)waitpid(pid, NULL, 0);
    return out;
}

static const char *const words[] = {
    "",      "'",      "''",    "a'b", "'\\''", "\\", "\\'", "$x `y` \"z\"", "new\nline\n",
    "'''''", "a b  c", "\t'\t", "é'✓",
};

TEST(script_words_reach_the_shell_unchanged_at_every_depth)
{
    for (size_t w = 0; w < SILT_COUNT(words); w++) {
        for (int depth = 0; depth < 4; depth++) {
            struct silt_script s;
            char want[128];
            silt_script_init(&s, no_file, NULL);
            for (int i = 0; i < depth; i++) {
                silt_script_add_c(&s, "eval ");
                silt_script_open_quote(&s);
            }
            silt_script_add_c(&s, "printf '<%s>' ");
            silt_script_add_word(&s, silt_slice_of(words[w]));
            for (int i = 0; i < depth; i++)
                silt_script_close_quote(&s);
            (void)snprintf(want, sizeof(want), "<%s>", words[w]);
            assert_false(s.broken);
            assert_string_equal(run(&s, -1), want);
            silt_script_fini(&s);
        }
    }
}

TEST(script_words_with_many_quotes_reach_the_shell_unchanged_and_soon)
{
    static char text[40000];
    static char want[sizeof(text) + 2];
    silt_slice pattern = SILT_LIT("it's \\ \"$x\" `y` \n");
    size_t len = 0;
    for (; len + pattern.len < sizeof(text); len += pattern.len)
        memcpy(text + len, pattern.data, pattern.len);
    for (int depth = 0; depth < 3; depth++) {
        struct silt_script s;
        int copy = -1;
        silt_script_init(&s, open_memory, &copy);
        silt_script_expect(&s, (silt_slice){text, len});
        for (int i = 0; i < depth; i++) {
            silt_script_add_c(&s, "eval ");
            silt_script_open_quote(&s);
        }
        silt_script_add_c(&s, "printf '<%s>' ");
        silt_script_add_word(&s, (silt_slice){text, len});
        for (int i = 0; i < depth; i++)
            silt_script_close_quote(&s);
        (void)snprintf(want, sizeof(want), "<%s>", text);
        assert_true(silt_script_flush(&s));
        assert_string_equal(run(&s, copy), want);
        silt_script_fini(&s);
    }
}

TEST(script_env_becomes_assignments)
{
    struct silt_script s;
    silt_script_init(&s, no_file, NULL);
    silt_script_add_env(&s, SILT_LIT("A=1\0B=it's = x\0C=\0D\0"));
    assert_slice(((silt_slice){s.text, s.len}), SILT_LIT("A='1' B='it'\\''s = x' C='' D='' "));
    silt_script_fini(&s);
}

TEST(script_that_is_long_goes_to_a_file_in_order)
{
    struct silt_script s;
    int copy = -1;
    char *want = calloc(1, 64 << 10);
    size_t len = 0;
    silt_script_init(&s, open_memory, &copy);
    silt_script_add_c(&s, "printf %s ");
    silt_script_open_quote(&s);
    for (int i = 0; i < 3000; i++) {
        char piece[32];
        int n = snprintf(piece, sizeof(piece), "it's %d;", i);
        silt_script_add_c(&s, piece);
        memcpy(want + len, piece, (size_t)n);
        len += (size_t)n;
    }
    silt_script_close_quote(&s);
    assert_true(silt_script_flush(&s));
    assert_string_equal(run(&s, copy), want);
    silt_script_fini(&s);
    free(want);
}

TEST(script_without_a_place_for_its_file_is_broken)
{
    struct silt_script s;
    char big[SILT_SCRIPT_INLINE + 1];
    memset(big, 'x', sizeof(big));
    silt_script_init(&s, no_file, NULL);
    silt_script_add(&s, (silt_slice){big, SILT_SCRIPT_INLINE});
    assert_false(s.broken);
    silt_script_add(&s, (silt_slice){big, 1});
    assert_true(s.broken);
    silt_script_fini(&s);
}
