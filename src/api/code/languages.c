/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/…/languages: which languages the sandbox can run, and with which version. */
#include "api/code/context.h"
#include "api/process/script.h"

/* One line each: a name, its version, and whether nothing is missing. Nothing, where there is no
 * such program. */
#define LOOK                                                                                       \
    "python3 -c 'import platform, importlib.util as u; print(\"python\", "                         \
    "platform.python_version(), u.find_spec(\"IPython\") is not None)' 2>/dev/null\n"              \
    "node -p '\"node \" + process.versions.node + \" True\"' 2>/dev/null\n:"

enum { LOOK_MS = 20000, OUT_MAX = 4096, VERSION_MAX = 64 };

struct found {
    silt_slice version; /* empty: not installed */
    bool ready;
};

/* The text comes from inside: only what looks like a version is one. */
static bool is_version(silt_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(text.data[i] >= '0' && text.data[i] <= '9') && !silt_is_any(text.data[i], ".+-")
            && !(text.data[i] >= 'a' && text.data[i] <= 'z'))
            return false;
    return text.len > 0 && text.len <= VERSION_MAX;
}

static struct found find(silt_slice said, silt_slice program)
{
    silt_slice line, name, version;
    while (silt_slice_split(&said, '\n', &line))
        if (silt_slice_split(&line, ' ', &name) && silt_slice_eq(name, program)
            && silt_slice_split(&line, ' ', &version) && is_version(version))
            return (struct found){version, silt_slice_eq(line, SILT_LIT("True"))};
    return (struct found){{NULL, 0}, false};
}

static void on_looked(struct silt_call *c, const struct silt_script_end *end)
{
    silt_auto_buf b = {0};
    if (end->code < 0) {
        silt_api_refuse_error(c->request, &end->error);
        return;
    }
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("languages"));
    silt_json_open(&b, '[');
    for (int l = SILT_PYTHON; l <= SILT_TYPESCRIPT; l++) {
        struct found f = find(end->out, l == SILT_PYTHON ? SILT_LIT("python") : SILT_LIT("node"));
        silt_json_open(&b, '{');
        silt_json_add_text(&b, "language", silt_language_name((enum silt_language)l));
        silt_json_key(&b, SILT_LIT("version"));
        if (f.version.len > 0)
            silt_json_string(&b, f.version);
        else
            silt_json_null(&b);
        silt_json_add_bool(&b, "ready", f.ready);
        silt_json_close(&b, '}');
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static void look(struct silt_call *c)
{
    struct silt_script_wish w = {
        .text = SILT_LIT(LOOK), .timeout_ms = LOOK_MS, .out_max = OUT_MAX, .done = on_looked};
    silt_script_run(c, &w);
}

static const struct silt_call_kind languages_call = {.native = true, .run = look};

SILT_HANDLER(silt_api_languages)
{
    silt_call_begin(r, args, &languages_call);
}
