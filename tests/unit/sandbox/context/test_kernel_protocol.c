/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between siltd and an interpreter: what is said is one line of JSON whatever the bytes are;
 * what is heard is taken when it is right in every part that we use, and refused otherwise. */
#include "base/own.h"
#include "sandbox/context/kernel_protocol.h"
#include "unit/base/unit.h"

static struct silt_arena arena;
static struct silt_buf told = {.max = 1 << 24};
static struct silt_error e;

static struct silt_kernel_said hear(const char *line)
{
    struct silt_kernel_said said;
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 24);
    silt_buf_clear(&told);
    if (silt_kernel_hear(&arena, &told, silt_slice_of(line), &said, &e) < 0)
        fail_msg("%s: %s", line, e.text);
    return said;
}

static void assert_refused(silt_slice line)
{
    struct silt_kernel_said said;
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 24);
    silt_buf_clear(&told);
    if (silt_kernel_hear(&arena, &told, line, &said, &e) == 0)
        fail_msg("%.*s was taken", (int)(line.len < 200 ? line.len : 200), line.data);
    assert_int_not_equal(e.text[0], 0);
}

static void assert_eq(silt_slice s, const char *want)
{
    if (!silt_slice_eq(s, silt_slice_of(want)))
        fail_msg("got \"%.*s\", want \"%s\"", (int)s.len, s.data, want);
}

/* ---- heard ---- */

TEST(every_kind_of_line_is_taken)
{
    struct silt_kernel_said s = hear("{\"t\":\"ready\",\"version\":\"3.11.2\"}");
    assert_int_equal(s.word, SILT_KERNEL_READY);
    s = hear("{\"t\":\"stale\",\"why\":\"pandas is another version\"}");
    assert_int_equal(s.word, SILT_KERNEL_STALE);
    assert_eq(s.value, "pandas is another version");
    s = hear("{\"t\":\"failed\",\"code\":\"cwd\",\"why\":\"it is not there\"}");
    assert_int_equal(s.word, SILT_KERNEL_FAILED);
    assert_eq(s.name, "cwd");
    assert_eq(s.value, "it is not there");
    s = hear("{\"t\":\"result\",\"id\":7,\"main\":true,\"text\":\"1\"}");
    assert_int_equal(s.word, SILT_KERNEL_RESULT);
    assert_int_equal(s.id, 7);
    assert_true(s.main);
    assert_eq(s.told, "\"text\":\"1\"");
    s = hear("{\"t\":\"input\",\"id\":7,\"prompt\":\"? \",\"password\":true}");
    assert_int_equal(s.word, SILT_KERNEL_INPUT);
    assert_eq(s.value, "? ");
    assert_true(s.password);
    s = hear("{\"t\":\"done\",\"id\":7,\"count\":4294967295}");
    assert_int_equal(s.word, SILT_KERNEL_DONE);
    assert_int_equal(s.count, UINT32_MAX);
    s = hear("{\"t\":\"exit\",\"id\":7,\"status\":255}");
    assert_int_equal(s.word, SILT_KERNEL_EXIT);
    assert_int_equal(s.status, 255);
    s = hear("{\"t\":\"pong\",\"id\":9223372036854775807}");
    assert_int_equal(s.word, SILT_KERNEL_PONG);
    assert_int_equal(s.id, INT64_MAX);
}

TEST(of_a_result_only_what_is_known_and_there_is_told)
{
    struct silt_kernel_said s =
        hear("{\"t\":\"result\",\"id\":7,\"json\":{\"a\":[1,\"\\u0041\"]},\"png\":null,"
             "\"evil\":\"x\",\"text\":\"\\n\"}");
    assert_eq(s.told, "\"text\":\"\\n\",\"json\":{\"a\":[1,\"A\"]}");
    assert_false(s.main);
    assert_eq(hear("{\"t\":\"result\",\"id\":7}").told, "");
}

TEST(what_would_be_told_with_too_many_bytes_is_refused)
{
    size_t max = told.max;
    silt_buf_fini(&told);
    told.max = 16;
    assert_refused(SILT_LIT("{\"t\":\"result\",\"id\":7,\"text\":\"0123456789abcdef\"}"));
    silt_buf_fini(&told);
    told.max = max;
}

TEST(an_error_has_a_name_a_text_a_traceback_and_perhaps_a_line)
{
    struct silt_kernel_said s = hear("{\"t\":\"error\",\"id\":1,\"ename\":\"A\",\"evalue\":\"\","
                                     "\"traceback\":[\"one\",\"two\"],\"line\":3}");
    assert_int_equal(s.word, SILT_KERNEL_ERROR);
    assert_eq(s.name, "A");
    assert_eq(s.value, "");
    assert_eq(s.told,
              "\"ename\":\"A\",\"evalue\":\"\",\"traceback\":[\"one\",\"two\"],\"lineNumber\":3");
    s = hear("{\"t\":\"error\",\"id\":1,\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[]}");
    assert_eq(s.told, "\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[]");
    /* Of use to people only: what cannot be a line is none. */
    assert_eq(hear("{\"t\":\"error\",\"id\":1,\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[],"
                   "\"line\":-1}")
                  .told,
              "\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[]");
    assert_eq(hear("{\"t\":\"error\",\"id\":1,\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[],"
                   "\"line\":\"x\"}")
                  .told,
              "\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[]");
    assert_eq(hear("{\"t\":\"error\",\"id\":1,\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[],"
                   "\"line\":4294967296}")
                  .told,
              "\"ename\":\"A\",\"evalue\":\"b\",\"traceback\":[]");
}

TEST(what_is_not_used_may_be_anything)
{
    assert_int_equal(hear("{\"t\":\"ready\"}").word, SILT_KERNEL_READY);
    assert_int_equal(hear("{\"t\":\"ready\",\"version\":[1],\"id\":-1}").word, SILT_KERNEL_READY);
    assert_false(hear("{\"t\":\"result\",\"id\":1,\"main\":1}").main);
    assert_false(hear("{\"t\":\"result\",\"id\":1,\"png\":{}}").main);
    assert_false(hear("{\"t\":\"input\",\"id\":1,\"prompt\":\"\",\"password\":\"true\"}").password);
    assert_int_equal(hear(" {\"id\":1 , \"t\":\"pong\"} ").word, SILT_KERNEL_PONG);
}

TEST(what_is_no_line_of_ours_is_refused)
{
    static const char *const lines[] = {
        "",
        " ",
        "no json",
        "null",
        "true",
        "5",
        "\"ready\"",
        "[]",
        "[{\"t\":\"ready\"}]",
        "{}",
        "{\"t\":null}",
        "{\"t\":5}",
        "{\"t\":[\"ready\"]}",
        "{\"t\":\"\"}",
        "{\"t\":\"Ready\"}",
        "{\"t\":\"ready \"}",
        "{\"t\":\"run\",\"id\":1}",
        "{\"t\":\"ready\"",
        "{\"t\":\"ready\"}}",
        "{\"t\":\"ready\"}{\"t\":\"ready\"}",
        "{\"t\":\"ready\",\"t\":\"ready\"}",
        "{\"t\":\"done\",\"id\":1,\"id\":2,\"count\":1}",
        "{'t':'ready'}",
        "{\"t\":\"ready\",}",
        "{\"t\":\"ready\",\"x\":NaN}",
        "{\"t\":\"ready\",\"x\":01}",
        "{\"t\":\"re\\u0000ady\"}",
    };
    for (size_t i = 0; i < SILT_COUNT(lines); i++)
        assert_refused(silt_slice_of(lines[i]));
    assert_refused((silt_slice){"{\"t\":\"ready\"}\0", 14});
    assert_refused((silt_slice){"{\"t\":\"ready\",\"x\":\"\xff\"}", 22});
}

TEST(each_wrong_type_is_refused)
{
    static const char *const wrong[] = {"null", "true", "5",   "\"x\"",       "[]",
                                        "{}",   "1.5",  "[5]", "[\"x\",null]"};
    static const struct {
        const char *line;  /* with a hole, % */
        const char *right; /* the first letters of what fits in */
    } lines[] = {
        {"{\"t\":%}", ""},
        {"{\"t\":\"stale\",\"why\":%}", "\""},
        {"{\"t\":\"failed\",\"code\":%,\"why\":\"\"}", "\""},
        {"{\"t\":\"failed\",\"code\":\"\",\"why\":%}", "\""},
        {"{\"t\":\"result\",\"id\":%}", "5"},
        {"{\"t\":\"error\",\"id\":%,\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}", "5"},
        {"{\"t\":\"error\",\"id\":1,\"ename\":%,\"evalue\":\"\",\"traceback\":[]}", "\""},
        {"{\"t\":\"error\",\"id\":1,\"ename\":\"\",\"evalue\":%,\"traceback\":[]}", "\""},
        {"{\"t\":\"error\",\"id\":1,\"ename\":\"\",\"evalue\":\"\",\"traceback\":%}", "[]"},
        {"{\"t\":\"input\",\"id\":%,\"prompt\":\"\"}", "5"},
        {"{\"t\":\"input\",\"id\":1,\"prompt\":%}", "\""},
        {"{\"t\":\"done\",\"id\":%,\"count\":1}", "5"},
        {"{\"t\":\"done\",\"id\":1,\"count\":%}", "5"},
        {"{\"t\":\"exit\",\"id\":%,\"status\":1}", "5"},
        {"{\"t\":\"exit\",\"id\":1,\"status\":%}", "5"},
        {"{\"t\":\"pong\",\"id\":%}", "5"},
    };
    char line[256];
    for (size_t i = 0; i < SILT_COUNT(lines); i++)
        for (size_t w = 0; w < SILT_COUNT(wrong); w++) {
            const char *hole = strchr(lines[i].line, '%');
            (void)snprintf(line, sizeof(line), "%.*s%s%s", (int)(hole - lines[i].line),
                           lines[i].line, wrong[w], hole + 1);
            size_t n = strlen(lines[i].right);
            if (n > 0 && strncmp(wrong[w], lines[i].right, n) == 0)
                (void)hear(line);
            else
                assert_refused(silt_slice_of(line));
        }
}

TEST(missing_and_absurd_numbers_are_refused)
{
    static const char *const lines[] = {
        "{\"t\":\"done\",\"count\":1}",
        "{\"t\":\"done\",\"id\":1}",
        "{\"t\":\"exit\",\"id\":1}",
        "{\"t\":\"pong\"}",
        "{\"t\":\"result\"}",
        "{\"t\":\"input\",\"prompt\":\"\"}",
        "{\"t\":\"input\",\"id\":1}",
        "{\"t\":\"error\",\"id\":1}",
        "{\"t\":\"done\",\"id\":-1,\"count\":1}",
        "{\"t\":\"done\",\"id\":1,\"count\":-1}",
        "{\"t\":\"done\",\"id\":1,\"count\":4294967296}",
        "{\"t\":\"done\",\"id\":9223372036854775808,\"count\":1}",
        "{\"t\":\"done\",\"id\":1e3,\"count\":1}",
        "{\"t\":\"done\",\"id\":1,\"count\":1.0}",
        "{\"t\":\"exit\",\"id\":1,\"status\":256}",
        "{\"t\":\"exit\",\"id\":1,\"status\":-1}",
        "{\"t\":\"pong\",\"id\":99999999999999999999999999999999999999}",
        "{\"t\":\"pong\",\"id\":1e999}",
    };
    for (size_t i = 0; i < SILT_COUNT(lines); i++)
        assert_refused(silt_slice_of(lines[i]));
}

static void add_error(struct silt_buf *b, size_t lines, const char *line)
{
    silt_buf_clear(b);
    silt_buf_addf(b, "{\"t\":\"error\",\"id\":1,\"ename\":\"\",\"evalue\":\"\",\"traceback\":[");
    for (size_t i = 0; i < lines; i++)
        silt_buf_addf(b, "%s%s", i > 0 ? "," : "", line);
    silt_buf_addf(b, "]}");
    assert_false(b->broken);
}

TEST(a_traceback_has_a_bounded_number_of_lines_all_of_them_strings)
{
    silt_auto_buf b;
    struct silt_kernel_said said;
    silt_buf_init(&b, 1 << 20);
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 24);
    add_error(&b, 10000, "\"x\"");
    silt_buf_clear(&told);
    assert_int_equal(silt_kernel_hear(&arena, &told, silt_buf_slice(&b), &said, &e), 0);
    assert_true(said.told.len > 10000 * strlen("\"x\","));
    add_error(&b, 10001, "\"x\"");
    assert_refused(silt_buf_slice(&b));
    add_error(&b, 100, "[\"x\"]");
    assert_refused(silt_buf_slice(&b));
}

TEST(deep_nesting_and_many_values_are_refused_within_the_arena)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8 << 20);
    silt_buf_addf(&b, "{\"t\":\"result\",\"id\":1,\"json\":");
    for (int i = 0; i < 1 << 20; i++)
        silt_buf_add_byte(&b, '[');
    assert_refused(silt_buf_slice(&b));
    silt_buf_clear(&b);
    silt_buf_addf(&b, "{\"t\":\"result\",\"id\":1,\"json\":[0");
    for (int i = 0; i < 1 << 20; i++)
        silt_buf_addf(&b, ",0");
    silt_buf_addf(&b, "]}");
    assert_refused(silt_buf_slice(&b));
    assert_int_equal(e.code, SILT_LIMIT);
}

TEST(every_beginning_of_a_line_is_refused)
{
    static const char line[] = "{\"t\":\"error\",\"id\":1,\"ename\":\"\\u00e4\",\"evalue\":\"b\","
                               "\"traceback\":[\"c\"],\"line\":3}";
    for (size_t len = 0; len < sizeof(line) - 1; len++) {
        char *exact = malloc(len + 1); /* so that a sanitizer sees a read beyond it */
        assert_non_null(exact);
        memcpy(exact, line, len);
        assert_refused((silt_slice){exact, len});
        free(exact);
    }
    (void)hear(line);
}

/* ---- said ---- */

/* One line, valid, with the text in it as UTF-8. */
static const struct silt_json *read_said(const struct silt_buf *b)
{
    const struct silt_json *v;
    silt_slice all = silt_buf_slice(b);
    assert_false(b->broken);
    assert_ptr_equal(memchr(all.data, '\n', all.len), all.data + all.len - 1);
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 24);
    if (silt_json_read(&arena, (silt_slice){all.data, all.len - 1}, &v, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(v->type, SILT_JSON_OBJECT);
    return v;
}

static void check_bytes(silt_slice bytes)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 20);
    silt_kernel_say_run(&b, UINT64_MAX >> 1, bytes);
    const struct silt_json *v = read_said(&b);
    assert_eq(silt_json_get(v, SILT_LIT("t"))->string, "run");
    if (silt_slice_is_utf8(bytes))
        assert_true(silt_slice_eq(silt_json_get(v, SILT_LIT("code"))->string, bytes));
    silt_buf_clear(&b);
    silt_kernel_say_input(&b, 1, bytes, false);
    v = read_said(&b);
    assert_null(silt_json_get(v, SILT_LIT("eof")));
    assert_int_equal(silt_json_get(v, SILT_LIT("text"))->type, SILT_JSON_STRING);
    silt_buf_clear(&b);
    bool one = bytes.len <= 3; /* variable: names that become the same are nobody's here */
    silt_kernel_say_init(&b, &(struct silt_kernel_init){.language = "python",
                                                        .cwd = bytes,
                                                        .env = one ? bytes : SILT_LIT("A=1")});
    (void)read_said(&b);
}

TEST(whatever_is_said_is_one_line_of_json)
{
    char all[513];
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i * 7);
    check_bytes((silt_slice){all, sizeof(all)});
    check_bytes((silt_slice){"", 0});
    check_bytes((silt_slice){NULL, 0});
    for (int i = 0; i < 256; i++) {
        char one[3] = {(char)i, '=', (char)i};
        check_bytes((silt_slice){one, 1});
        check_bytes((silt_slice){one, 3});
    }
    check_bytes(SILT_LIT("print(\"a\\nb\")\r\n\t\u2028\u2029\xf0\x9f\x98\x80"));
    check_bytes(SILT_LIT("\xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xe2\x82"));
}

TEST(an_environment_is_an_object_without_what_is_no_variable)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 16);
    silt_kernel_say_init(
        &b, &(struct silt_kernel_init){.language = "typescript",
                                       .cwd = SILT_LIT("/a b"),
                                       .env = SILT_LIT("A=1\0B=x=y\0nothing\0=x\0C=\0"),
                                       .result_bytes = UINT64_MAX >> 1});
    const struct silt_json *v = read_said(&b);
    const struct silt_json *env = silt_json_get(v, SILT_LIT("env"));
    assert_int_equal(env->items.count, 3);
    assert_eq(silt_json_get(env, SILT_LIT("A"))->string, "1");
    assert_eq(silt_json_get(env, SILT_LIT("B"))->string, "x=y");
    assert_eq(silt_json_get(env, SILT_LIT("C"))->string, "");
    assert_eq(silt_json_get(v, SILT_LIT("language"))->string, "typescript");
    assert_eq(silt_json_get(v, SILT_LIT("cwd"))->string, "/a b");
    const struct silt_json *budget = silt_json_get(v, SILT_LIT("budget"));
    assert_int_equal(silt_json_get(budget, SILT_LIT("result"))->integer, INT64_MAX);
}

TEST(an_end_of_input_has_no_text_and_a_ping_has_its_number)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 16);
    silt_kernel_say_input(&b, 5, SILT_LIT("x"), true);
    const struct silt_json *v = read_said(&b);
    assert_true(silt_json_get(v, SILT_LIT("eof"))->boolean);
    assert_null(silt_json_get(v, SILT_LIT("text")));
    silt_buf_clear(&b);
    silt_kernel_say_ping(&b, 6);
    assert_int_equal(silt_json_get(read_said(&b), SILT_LIT("id"))->integer, 6);
}
