/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* " path:line:column:text" for each match. */
static void assert_matches(const struct rig_answer *a, const char *want)
{
    char got[4096] = "";
    size_t used = 0;
    for (size_t at = 0; at + sizeof(struct silt_worker_match) <= a->len;) {
        struct silt_worker_match m;
        memcpy(&m, a->bytes + at, sizeof(m));
        at += sizeof(m);
        assert_true(at + m.path_len + m.text_len <= a->len);
        used +=
            (size_t)snprintf(got + used, sizeof(got) - used, " %.*s:%lu:%lu:%.*s", (int)m.path_len,
                             a->bytes + at, (unsigned long)m.line, (unsigned long)m.column,
                             (int)m.text_len, a->bytes + at + m.path_len);
        at += m.path_len + m.text_len;
        at += -at & 7;
    }
    assert_string_equal(got, want);
}

static void check(struct rig *r, const struct rig_ask *q, const char *want)
{
    struct rig_answer a = rig_do(r, q);
    if (a.failed)
        fail_msg("%s", a.error.text);
    assert_matches(&a, want);
    rig_forget(&a);
}
#define CHECK(want, ...) check(r, &(struct rig_ask){.op = SILT_WORKER_SEARCH, __VA_ARGS__}, want)

TEST(search_tells_line_and_column)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    rig_put("d/f", "one\ntwo needle needle\n\nNeedle\nneedle");
    CHECK(" f:2:5:two needle needle f:5:1:needle", .path = "d", .text = "needle");
    CHECK(" f:2:5:two needle needle f:4:1:Needle f:5:1:needle", .path = "d", .text = "neEDle",
          .flags = SILT_WORKER_FOLDED);
    CHECK(" f:1:1:one", .path = "d/f", .text = "one");
    CHECK("", .path = "d", .text = "nothing");
    rig_stop(r);
}

TEST(search_obeys_globs_and_limits)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    assert_int_equal(mkdir("d/sub", 0755), 0);
    rig_put("d/sub/a.c", "x\nx\nx\n");
    rig_put("d/sub/b.h", "x\n");
    CHECK(" sub/b.h:1:1:x", .path = "d", .text = "x", .to = "*.h");
    CHECK(" sub/b.h:1:1:x", .path = "d", .text = "x", .to = "sub/?.h");
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_SEARCH, .path = "d", .text = "x", .to = "**/*.c",
                                 .ask = {.limit = 2});
    assert_matches(&a, " sub/a.c:1:1:x sub/a.c:2:1:x");
    assert_int_equal(a.done.truncated, 1);
    rig_forget(&a);
    a = RIG_DO(.op = SILT_WORKER_SEARCH, .path = "d", .text = "x", .to = "*.c",
               .ask = {.limit = 3});
    assert_int_equal(a.done.truncated, 0);
    assert_int_equal(a.done.entries, 3);
    rig_forget(&a);
    rig_stop(r);
}

TEST(search_passes_over_binaries_links_fifos_and_huge_files)
{
    struct rig *r = rig_start();
    assert_int_equal(mkdir("d", 0755), 0);
    rig_put("out", "needle");
    int fd = open("d/binary", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "needle\0", 7), 7);
    (void)close(fd);
    assert_int_equal(symlink("../out", "d/link"), 0);
    assert_int_equal(mkfifo("d/fifo", 0644), 0);
    rig_put("d/huge", "needle");
    assert_int_equal(truncate("d/huge", (32 << 20) + 1), 0);
    CHECK("", .path = "d", .text = "needle");
    RIG_MUST_FAIL(ENXIO, .op = SILT_WORKER_SEARCH, .path = "d/fifo", .text = "x");
    RIG_MUST_FAIL(0, .op = SILT_WORKER_SEARCH, .path = "d", .text = "");
    rig_stop(r);
}

TEST(search_cuts_long_lines)
{
    struct rig *r = rig_start();
    static char line[5000];
    memset(line, 'a', sizeof(line) - 1);
    rig_put("f", line);
    struct rig_answer a = RIG_DO(.op = SILT_WORKER_SEARCH, .path = "f", .text = "aa");
    assert_int_equal(a.done.entries, 1);
    assert_int_equal(a.len, sizeof(struct silt_worker_match) + ((1 + 1024 + 7) & ~7));
    rig_forget(&a);
    rig_stop(r);
}
