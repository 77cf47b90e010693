/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/template.h"
#include "base/own.h"
#include "unit/base/unit.h"

#define VALUE                                                                                      \
    "{\"ID\":\"x1\",\"Tags\":[\"a\",\"b\"],\"Config\":{\"Ports\":{\"1/tcp\":{},\"2/"               \
    "tcp\":{}},\"On\":true,\"N\":7},\"Empty\":[]}"

/* NULL: it is refused. */
static const char *written(const char *format)
{
    static char text[256];
    silt_auto_arena a;
    silt_auto_buf out;
    const struct silt_json *v;
    struct silt_error e;
    silt_arena_init(&a, 1 << 20);
    silt_buf_init(&out, sizeof(text) - 1);
    assert_int_equal(silt_json_read(&a, SILT_LIT(VALUE), &v, &e), 0);
    if (silt_template_write(silt_slice_of(format), v, &out, &e) < 0)
        return NULL;
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len > 0 ? out.data : "");
    return text;
}

TEST(what_wrangler_asks_for_is_written)
{
    assert_string_equal(written("{{ range .Tags }}{{ . }}\n{{ end }}"), "a\nb\n");
    assert_string_equal(written("{{ len .Config.Ports }}"), "2");
    assert_string_equal(written("{{json .Tags}}"), "[\"a\",\"b\"]");
    assert_string_equal(written("{{.ID}}"), "x1");
    assert_string_equal(written("id={{.ID}} n={{.Config.N}} {{.Config.On}}"), "id=x1 n=7 true");
    assert_string_equal(written("json"), VALUE);
}

TEST(blocks_are_left_out_or_repeated)
{
    assert_string_equal(
        written("{{range .Empty}}x{{end}}{{if .Empty}}y{{end}}{{if .Config.On}}z{{end}}"), "z");
    assert_string_equal(written("{{range .Tags}}{{if .}}[{{.}}]{{end}}{{end}}"), "[a][b]");
    assert_string_equal(written("{{.Missing.Deep}} {{len .Missing}}"), "<no value> 0");
}

TEST(what_is_not_known_or_not_closed_is_refused)
{
    static const char *const bad[] = {"{{",           "{{end}}", "{{range .Tags}}",
                                      "{{what .ID}}", "{{}}",    "{{if .ID}}x"};
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        assert_null(written(bad[i]));
}
