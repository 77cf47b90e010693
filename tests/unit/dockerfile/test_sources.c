/* SPDX-License-Identifier: Apache-2.0 */
#include "dockerfile/sources.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_docker_sources sources;

/* The patterns with blanks between them; "all: LINE REASON". */
static const char *sources_of(const char *text)
{
    static char out[1024];
    struct silt_dockerfile file;
    struct silt_error e;
    silt_auto_arena a;
    silt_arena_init(&a, 64 << 20);
    if (silt_dockerfile_read(&a, silt_slice_of(text), &file, &e) < 0)
        return "unreadable";
    silt_docker_sources_read(&a, &file, &sources);
    if (sources.all) {
        (void)snprintf(out, sizeof(out), "all: %u %s", sources.line, sources.reason);
        return out;
    }
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < sources.count; i++)
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%.*s", i > 0 ? " " : "",
                                (int)sources.patterns[i].len, sources.patterns[i].data);
    return out;
}

TEST(what_copies_nothing_needs_nothing)
{
    assert_string_equal(sources_of("FROM base\nEXPOSE 8080\nENV A=1\nRUN make\nCMD [\"x\"]"), "");
    assert_string_equal(
        sources_of("FROM base AS one\nFROM two\nCOPY --from=one . /\nADD --from=x $A /\n"), "");
    assert_string_equal(
        sources_of("FROM base\nCOPY <<a <<b /d/\n$X\na\n.\nb\nRUN <<E\nCOPY . .\nE\n"), "");
}

TEST(sources_of_copy_add_and_bind_mounts_are_named)
{
    assert_string_equal(
        sources_of("FROM base\nCOPY --chown=1 a ./b//c/ /etc/d . \nADD [\"e f\", \"g\", \"/h\"]\n"),
        "a b/c etc/d e f g");
    assert_string_equal(
        sources_of("FROM base\nCOPY package*.json \"c\"d 'e' /\nCOPY [\"a b\", \"/\"]\n"),
        "package*.json cd e a b");
    assert_string_equal(
        sources_of("FROM base\nRUN --mount=type=bind,source=lib,target=/l "
                   "--mount=type=cache,target=/c --mount=type=bind,from=x,target=/y make\n"),
        "lib");
}

TEST(the_whole_directory_says_which_line)
{
    assert_string_equal(sources_of("FROM base\nCOPY a /\nCOPY . /app\nCOPY b /"),
                        "all: 3 uses the whole directory");
    assert_string_equal(sources_of("FROM base\nCOPY / /app"), "all: 2 uses the whole directory");
    assert_string_equal(sources_of("FROM base\nCOPY \"\" /app"), "all: 2 uses the whole directory");
    assert_string_equal(sources_of("FROM base\nCOPY ** /app"), "all: 2 uses the whole directory");
    assert_string_equal(sources_of("FROM base\nRUN --mount=target=/src make"),
                        "all: 2 uses the whole directory");
}

TEST(what_cannot_be_decided_is_everything)
{
    assert_string_equal(sources_of("ARG D=x\nFROM base\nCOPY $D /"),
                        "all: 3 names a source by a variable");
    assert_string_equal(sources_of("FROM base\nCOPY a${D:-b} /"),
                        "all: 2 names a source by a variable");
    assert_string_equal(sources_of("FROM base\nRUN --mount=source=$A,target=/a x"),
                        "all: 2 names a source by a variable");
    assert_string_equal(sources_of("FROM base\nCOPY a/../b /"), "all: 2 names a source with ..");
    assert_string_equal(sources_of("FROM base\nCOPY 'a /"), "all: 2 cannot be read");
    assert_string_equal(sources_of("FROM base\nRUN --mount=what x"), "all: 2 cannot be read");
    assert_string_equal(sources_of("FROM base\nONBUILD COPY a b"), "all: 2 is ONBUILD");
    assert_string_equal(sources_of("FROM base\nFLY"), "unreadable");
}

TEST(patterns_match_too_much_rather_than_too_little)
{
    assert_string_equal(sources_of("FROM base\nCOPY a?c/d[ef]g/h*i \\*x /"), "a*/d*/h*i *x");
    assert_string_equal(sources_of("FROM base\nCOPY --parents src/**/*.ts /"), "src");
    assert_string_equal(sources_of("FROM base\nCOPY '\\$x' /"), "*");
}

TEST(too_many_sources_are_everything)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 16);
    silt_buf_add(&b, SILT_LIT("FROM base\nCOPY"));
    for (int i = 0; i <= SILT_DOCKER_SOURCES_MAX; i++)
        silt_buf_addf(&b, " f%d", i);
    silt_buf_add(&b, SILT_LIT(" /\n"));
    silt_buf_add_byte(&b, 0);
    assert_string_equal(sources_of(b.data), "all: 2 names too many sources");
}
