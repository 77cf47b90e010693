/* SPDX-License-Identifier: Apache-2.0 */
#include "dockerfile/dockerfile.h"
#include "base/own.h"
#include "cli/docker/ignore.h"
#include "unit/base/unit.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

static struct silt_arena arena;
static struct silt_dockerfile file;
static struct silt_error error;

static bool reads(const char *text)
{
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 64 << 20);
    return silt_dockerfile_read(&arena, silt_slice_of(text), &file, &error) == 0;
}

static char longest[100000]; /* zeros: it is looked at by length */

static silt_slice find(void *context, silt_slice name)
{
    (void)context;
    if (silt_slice_eq(name, SILT_LIT("A")))
        return SILT_LIT("a");
    if (silt_slice_eq(name, SILT_LIT("PATH")))
        return SILT_LIT("/usr/lib/app.tar.gz");
    if (silt_slice_eq(name, SILT_LIT("LONG")))
        return (silt_slice){longest, sizeof(longest)};
    if (silt_slice_eq(name, SILT_LIT("EMPTY")))
        return SILT_LIT("");
    return (silt_slice){NULL, 0};
}

static const char *expanded(const char *word)
{
    static char text[256];
    struct silt_docker_scope scope = {.find = find, .escape = '\\'};
    silt_auto_buf b;
    silt_buf_init(&b, SILT_DOCKER_VALUE_MAX);
    if (silt_docker_expand(&b, silt_slice_of(word), &scope, &error) < 0)
        return "refused";
    (void)snprintf(text, sizeof(text), "%.*s", (int)b.len, b.len > 0 ? b.data : "");
    return text;
}

TEST(a_dockerfile_has_stages_and_steps)
{
    assert_true(reads("ARG V=1\nfrom base as ONE\nrun a\n\n# no\nFROM one\nCOPY --from=one "
                      "--chown=1:2 a b /c/\n"));
    assert_int_equal(file.stage_count, 2);
    assert_int_equal(file.step_count, 5);
    assert_true(silt_slice_eq(file.stages[0].name, SILT_LIT("one")));
    assert_int_equal(file.stages[0].first, 2);
    assert_int_equal(file.stages[0].end, 3);
    assert_true(
        silt_slice_eq(silt_docker_flag(&file.steps[4], SILT_LIT("chown")), SILT_LIT("1:2")));
    assert_int_equal(file.steps[4].word_count, 3);
    assert_int_equal(file.steps[4].line, 7);
    silt_arena_fini(&arena);
}

TEST(lines_are_continued_over_comments_and_nothing)
{
    assert_true(reads("FROM base\nRUN a \\\n  # comment\n\n  b \\\n  c\nRUN d"));
    assert_true(silt_slice_eq(file.steps[1].rest, SILT_LIT("a   b   c")));
    assert_true(silt_slice_eq(file.steps[2].rest, SILT_LIT("d")));
    assert_true(reads("# escape=`\nFROM base\nRUN a `\n b\\\nRUN c"));
    assert_true(silt_slice_eq(file.steps[1].rest, SILT_LIT("a  b\\")));
    silt_arena_fini(&arena);
}

TEST(heredocs_belong_to_their_instruction)
{
    assert_true(reads("FROM base\nRUN <<EOF cat\none\nEOF\nCOPY <<-\"x\" <<y "
                      "/d/\n\ttab\n\tx\n$A\ny\nRUN cat <<< word"));
    assert_int_equal(file.step_count, 4);
    assert_true(silt_slice_eq(file.steps[1].heredocs[0].body, SILT_LIT("one\n")));
    assert_true(file.steps[1].heredocs[0].expand);
    assert_int_equal(file.steps[2].heredoc_count, 2);
    assert_true(silt_slice_eq(file.steps[2].heredocs[0].body, SILT_LIT("tab\n")));
    assert_false(file.steps[2].heredocs[0].expand);
    assert_int_equal(file.steps[3].heredoc_count, 0);
    silt_arena_fini(&arena);
}

TEST(lists_are_json_and_everything_else_is_text)
{
    assert_true(reads("FROM base\nCMD [\"a b\", \"c\"]\nCMD [a]\nCMD [\"a\", 1]\nCMD"));
    assert_true(file.steps[1].json);
    assert_true(silt_slice_eq(file.steps[1].words[0], SILT_LIT("a b")));
    assert_false(file.steps[2].json);
    assert_false(file.steps[3].json);
    silt_arena_fini(&arena);
}

TEST(what_is_no_dockerfile_is_refused_with_its_line)
{
    static const char *const bad[] = {"",
                                      "RUN x",
                                      "FROM base\nFLY",
                                      "FROM base\nRUN",
                                      "FROM a b c",
                                      "FROM a AS x\nFROM b AS X",
                                      "FROM base\nSHELL x",
                                      "FROM base\nRUN <<EOF"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(reads(bad[i]));
    assert_false(reads("FROM base\n\n\nFLY away"));
    assert_non_null(strstr(error.text, "line 4"));
    silt_arena_fini(&arena);
}

TEST(words_are_expanded_as_a_shell_does)
{
    static const char *const pairs[][2] = {
        {"x$A", "xa"},        {"${A}b", "ab"},        {"$B", ""},         {"${B:-c}", "c"},
        {"${A:-c}", "a"},     {"${A:+c}", "c"},       {"${B:+c}", ""},    {"${EMPTY-c}", ""},
        {"${EMPTY:-c}", "c"}, {"${B:-${A}}", "a"},    {"'$A'", "$A"},     {"\"$A b\"", "a b"},
        {"\\$A", "$A"},       {"\"\\$A\"", "$A"},     {"a\\ b", "a b"},   {"$", "$"},
        {"$1", "$1"},         {"${B?no}", "refused"}, {"${A", "refused"}, {"${A!}", "refused"},
        {"'open", "refused"}, {"\"open", "refused"},  {"${}", "refused"}, {"$A$A", "aa"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_string_equal(expanded(pairs[i][0]), pairs[i][1]);
}

TEST(patterns_cut_and_replace)
{
    static const char *const pairs[][2] = {
        {"${PATH#/}", "usr/lib/app.tar.gz"},
        {"${PATH##*/}", "app.tar.gz"},
        {"${PATH#*/}", "usr/lib/app.tar.gz"},
        {"${PATH%.*}", "/usr/lib/app.tar"},
        {"${PATH%%.*}", "/usr/lib/app"},
        {"${PATH%/*}", "/usr/lib"},
        {"${PATH%%*}", ""},
        {"${PATH%*}", "/usr/lib/app.tar.gz"},
        {"${PATH#?usr}", "/lib/app.tar.gz"},
        {"${PATH#\\*}", "/usr/lib/app.tar.gz"},
        {"${PATH/usr/opt}", "/opt/lib/app.tar.gz"},
        {"${PATH//a/A}", "/usr/lib/App.tAr.gz"},
        {"${PATH//\\//-}", "-usr-lib-app.tar.gz"},
        {"${PATH/l*r}", "/usr/.gz"},
        {"${PATH//?/x}", "xxxxxxxxxxxxxxxxxxx"},
        {"${PATH//}", "/usr/lib/app.tar.gz"},
        {"${PATH/none/x}", "/usr/lib/app.tar.gz"},
        {"${PATH/usr/${A}b}", "/ab/lib/app.tar.gz"},
        {"${PATH#/${B:-usr}}", "/lib/app.tar.gz"},
        {"\"${PATH##*/}\"", "app.tar.gz"},
        {"${B#x}", ""},
        {"${B/x/y}", ""},
        {"${PATH#", "refused"},
        {"${PATH/a", "refused"},
        {"${PATH/a/b", "refused"},
        {"${LONG//x/y}", "refused"},
    };
    for (size_t i = 0; i < SILT_COUNT(pairs); i++)
        assert_string_equal(expanded(pairs[i][0]), pairs[i][1]);
    char many[600];
    (void)snprintf(many, sizeof(many), "${PATH#%0300d}", 0);
    assert_string_equal(expanded(many), "refused");
}

TEST(a_word_that_is_too_long_is_not_cut)
{
    silt_auto_buf word;
    silt_buf_init(&word, SILT_DOCKER_VALUE_MAX * 2);
    silt_buf_add(&word, SILT_LIT("${B:-"));
    for (size_t i = 0; i <= SILT_DOCKER_VALUE_MAX; i++)
        silt_buf_add_byte(&word, 'x');
    silt_buf_add(&word, SILT_LIT("}"));
    silt_buf_add_byte(&word, 0);
    assert_false(word.broken);
    assert_string_equal(expanded(word.data), "refused");
}

TEST(pairs_are_cut_at_blanks_outside_of_quotes)
{
    struct silt_docker_pair *pairs;
    size_t count;
    assert_true(reads("FROM base\nENV A=\"x y\" B=c\\ d C='e f'\nENV OLD some   value\nENV ALONE"));
    assert_int_equal(silt_docker_pairs(&arena, &file.steps[1], '\\', &pairs, &count, &error), 0);
    assert_int_equal(count, 3);
    assert_true(silt_slice_eq(pairs[1].value, SILT_LIT("c\\ d")));
    assert_int_equal(silt_docker_pairs(&arena, &file.steps[2], '\\', &pairs, &count, &error), 0);
    assert_int_equal(count, 1);
    assert_true(silt_slice_eq(pairs[0].value, SILT_LIT("some   value")));
    assert_int_equal(silt_docker_pairs(&arena, &file.steps[3], '\\', &pairs, &count, &error), -1);
    silt_arena_fini(&arena);
}

TEST(a_mount_is_names_and_values)
{
    struct silt_docker_mount m;
    assert_int_equal(silt_docker_mount_read(
                         SILT_LIT("type=bind,SRC=a b,dst=/c,from=stage,rw=true,ro"), &m, &error),
                     0);
    assert_true(m.kind == SILT_DOCKER_BIND && silt_slice_eq(m.source, SILT_LIT("a b"))
                && silt_slice_eq(m.target, SILT_LIT("/c"))
                && silt_slice_eq(m.from, SILT_LIT("stage")));
    assert_int_equal(silt_docker_mount_read(SILT_LIT("target=."), &m, &error), 0);
    assert_true(m.kind == SILT_DOCKER_BIND && m.source.len == 0 && m.from.len == 0);
    assert_int_equal(
        silt_docker_mount_read(SILT_LIT("type=secret,id=x,required=true,env=Y"), &m, &error), 0);
    assert_true(m.kind == SILT_DOCKER_SECRET && m.required);
    static const char *const wrong[] = {
        "",           ",",      "type=bind",       "type=", "type=disk,target=/x",
        "target=/x,", "target", "target=/x,what=1"};
    for (size_t i = 0; i < SILT_COUNT(wrong); i++)
        assert_int_equal(silt_docker_mount_read(silt_slice_of(wrong[i]), &m, &error), -1);
}

/* By its regular expression; the command line's own matcher has to agree. */
static bool leaves_out(const char *glob, const char *path)
{
    static struct silt_ignore rules;
    char whole[512];
    regex_t r;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_DOCKER_VALUE_MAX);
    if (silt_docker_exclude(&b, silt_slice_of(glob), &error) < 0)
        return false;
    silt_buf_add_byte(&b, 0);
    (void)snprintf(whole, sizeof(whole), "./%s", path);
    silt_auto_buf anchored;
    silt_buf_init(&anchored, SILT_DOCKER_VALUE_MAX);
    silt_buf_addf(&anchored, "^(%s)$%c", b.data + 1, 0);
    if (regcomp(&r, anchored.data, REG_EXTENDED | REG_NOSUB) != 0)
        fail_msg("%s is no regular expression: %s", glob, b.data);
    bool fits = regexec(&r, whole, 0, NULL, 0) == 0;
    regfree(&r);
    silt_ignore_read(&rules, silt_slice_of(glob));
    if (rules.count == 1 && !rules.takes_back
        && silt_ignore_fits(&rules, silt_slice_of(path)) != fits)
        fail_msg("%s and %s: %s", glob, path, b.data);
    return fits;
}

TEST(what_is_left_out_is_what_a_dockerignore_names)
{
    assert_true(leaves_out("node_modules", "node_modules/a/b"));
    assert_false(leaves_out("*.txt", "a/b.txt"));
    assert_true(leaves_out("**/*.txt", "a/b.txt"));
    assert_true(leaves_out("./a.b/", "a.b"));
    assert_false(leaves_out("a.b", "axb"));
    assert_true(leaves_out("[]^[-]x", "^x"));
    assert_true(leaves_out("[!a]", "b"));
    assert_true(leaves_out("(a|b)+{1}$", "(a|b)+{1}$"));
    assert_false(leaves_out("", "a"));
    assert_false(leaves_out("/", "a"));
}

TEST(any_pattern_means_the_same_to_both)
{
    static const char alphabet[] = "aab/*?[]^-!.\\";
    uint32_t seed = 1;
    for (size_t i = 0; i < 20000; i++) {
        char words[2][9] = {{0}};
        for (size_t k = 0; k < 16; k++) {
            seed = seed * 1664525U + 1013904223U;
            words[k / 8][k % 8] = k < 8 ? alphabet[(seed >> 16) % (sizeof(alphabet) - 1)]
                                        : "ab/^-.]["[(seed >> 16) % 8];
        }
        words[0][1 + i % 8] = 0;
        words[1][1 + i % 5] = 0;
        if (words[0][0] != '!' && words[1][0] != '/' && strstr(words[1], "//") == NULL
            && words[1][strlen(words[1]) - 1] != '/')
            (void)leaves_out(words[0], words[1]);
    }
}

TEST(arguments_have_quotes)
{
    assert_true(reads("ARG A=\"x  y\" B='c d' C=e\\ f D\nFROM base"));
    assert_int_equal(file.steps[0].word_count, 4);
    assert_text(file.steps[0].words[0], "A=\"x  y\"");
    assert_text(file.steps[0].words[2], "C=e\\ f");
}

TEST(only_what_is_known_is_a_directive)
{
    assert_true(reads("#syntax = x\n# ESCAPE= `\nFROM base"));
    assert_int_equal(file.escape, '`');
    assert_true(reads("# note=x\n# escape=`\nFROM base"));
    assert_int_equal(file.escape, '\\');
}
