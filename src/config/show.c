/* SPDX-License-Identifier: Apache-2.0 */
/* Output generated from the rows: help, the reference page, an argument vector. */
#include "config/row.h"

enum { FLAG_MAX = PATH_MAX + 64 };

static void print_wrapped(FILE *out, const char *text, size_t width)
{
    while (*text != 0) {
        size_t n = strlen(text);
        if (n > width)
            for (n = width; n > 0 && text[n] != ' '; n--)
                ;
        (void)fprintf(out, "      %.*s\n", (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
    }
}

void silt_config_help(FILE *out)
{
    (void)fprintf(out,
                  "Settings, each also as a line in %s and as SILT_<NAME> in the\n"
                  "environment; --config=FILE takes another file.\n\n",
                  SILT_ROW_DEFAULT_FILE);
    for (size_t i = 0; i < SILT_ROW_COUNT; i++) {
        const struct silt_row *r = &silt_rows[i];
        (void)fprintf(out, "  --%s=%s\n", r->name, r->preset);
        print_wrapped(out, r->help, 74);
        if (r->choices != NULL)
            (void)fprintf(out, "      One of %s.\n", r->choices);
    }
}

/* A "|" would end a table cell. */
static void print_choices(FILE *out, const char *choices)
{
    silt_slice rest = silt_slice_of(choices), one;
    const char *comma = "";
    while (silt_slice_split(&rest, '|', &one)) {
        (void)fprintf(out, "%s`%.*s`", comma, (int)one.len, one.data);
        comma = ", ";
    }
}

/* In the largest unit that divides it. */
static void print_bytes(FILE *out, uint64_t bytes)
{
    static const char units[] = "KMGT";
    size_t n = 0;
    for (; n < 4 && bytes > 0 && bytes % 1024 == 0; n++)
        bytes /= 1024;
    (void)fprintf(out, "%llu", (unsigned long long)bytes);
    if (n > 0)
        (void)fputc(units[n - 1], out);
}

static void print_allowed(FILE *out, const struct silt_row *r)
{
    switch (r->kind) {
    case SILT_ROW_TEXT:
        (void)fprintf(out, "text, %s%llu characters", r->min > 0 ? "1 to " : "up to ",
                      (unsigned long long)r->max);
        return;
    case SILT_ROW_PATH:
        (void)fputs("absolute path", out);
        return;
    case SILT_ROW_CHOICE:
    case SILT_ROW_LEVEL:
        print_choices(out, r->choices);
        return;
    case SILT_ROW_NUMBER:
        (void)fprintf(out, "%llu to %llu", (unsigned long long)r->min, (unsigned long long)r->max);
        return;
    case SILT_ROW_BYTES:
        print_bytes(out, r->min);
        (void)fputs(" to ", out);
        print_bytes(out, r->max);
        (void)fputs(" (bytes, or with K, M, G, T)", out);
        return;
    }
}

void silt_config_reference(FILE *out)
{
    (void)fprintf(
        out,
        "# Settings\n\n"
        "Every setting has one name. It can stand in the file `%s`\n"
        "(`name = value`, or `[http]` and then `connections = 100`), in the environment\n"
        "(`SILT_` and the name in capitals, dots as `_`: `SILT_HTTP_CONNECTIONS`) and as "
        "a flag of\n"
        "`silt-super` (`--http.connections=100`). The flag wins over the environment, "
        "the environment\n"
        "over the file. `--config=FILE` or `SILT_CONFIG` names another file. An unknown "
        "name is an\n"
        "error, in the environment it has no effect. Settings are read at the start and by\n"
        "`systemctl reload silt`. Directories, addresses, ids and the network (`instance`, "
        "`state`, "
        "`run`,\n"
        "`images`, `user`, `ids.*`, `cgroup`, `listen`, `preview.listen`, `engine.socket`, "
        "`engine.mode`,\n"
        "`engine.group`, `network`, `network.ipv4`, `network.ipv6`, `network.open`, "
        "`network.connections*`)\n"
        "keep the values of the start until a restart.\n\n"
        "`silt-super --help` prints the same rows; this page is made from them\n"
        "(`silt-super --reference`).\n\n"
        "| name | default | allowed | what it does |\n| --- | --- | --- | --- |\n",
        SILT_ROW_DEFAULT_FILE);
    for (size_t i = 0; i < SILT_ROW_COUNT; i++) {
        const struct silt_row *r = &silt_rows[i];
        if (r->preset[0] != 0)
            (void)fprintf(out, "| `%s` | `%s` | ", r->name, r->preset);
        else
            (void)fprintf(out, "| `%s` | | ", r->name);
        print_allowed(out, r);
        (void)fprintf(out, " | %s |\n", r->help);
    }
}

/* Text of a manual page: hyphens stay hyphens, and backquotes, which our help uses, become italics.
 */
static void print_roff(FILE *out, const char *text)
{
    bool italic = false;
    for (; *text != 0; text++)
        if (*text == '-')
            (void)fputs("\\-", out);
        else if (*text == '\\')
            (void)fputs("\\e", out);
        else if (*text == '`')
            (void)fputs((italic = !italic) ? "\\fI" : "\\fR", out);
        else
            (void)fputc(*text, out);
}

static void print_manual_row(FILE *out, const struct silt_row *r)
{
    (void)fputs(".TP\n.B ", out);
    print_roff(out, r->name);
    if (r->preset[0] != 0) {
        (void)fputs(" = ", out);
        print_roff(out, r->preset);
    }
    (void)fputc('\n', out);
    print_roff(out, r->help);
    if (r->choices != NULL) {
        (void)fputs(" One of ", out);
        print_roff(out, r->choices);
        (void)fputc('.', out);
    }
    (void)fputc('\n', out);
}

void silt_config_manual(FILE *out)
{
    (void)fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n"
                ".\\\" Made by silt-super --manual.\n"
                ".TH SILT.CONF 5 \"\" \"Silt\" \"File Formats\"\n"
                ".SH NAME\nsilt.conf \\- settings of Silt\n"
                ".SH DESCRIPTION\n"
                "The file \\fI" SILT_ROW_DEFAULT_FILE
                "\\fR has a line \\fIname\\fR = \\fIvalue\\fR for each\n"
                "setting that is not the default, or a section \\fI[http]\\fR and then\n"
                "\\fIconnections = 100\\fR. A setting may also stand in the environment\n"
                "(\\fISILT_HTTP_CONNECTIONS\\fR) or be a flag of silt\\-super\n"
                "(\\fI\\-\\-http.connections=100\\fR); the flag wins over the environment, the "
                "environment over the file.\n"
                "An unknown name is an error. The settings are read at the start and by\n"
                "\\fIsystemctl reload silt\\fR.\n"
                ".SH SETTINGS\n",
                out);
    for (size_t i = 0; i < SILT_ROW_COUNT; i++)
        print_manual_row(out, &silt_rows[i]);
    (void)fputs(".SH SEE ALSO\n.BR silt (1),\n.BR silt\\-docker (1)\n", out);
}

static int level_text(const struct silt_config *c, const struct silt_row *r, char *out, size_t size)
{
    silt_slice rest = silt_slice_of(r->choices), one = {0};
    for (int i = 0; i <= (int)c->log_level; i++)
        (void)silt_slice_split(&rest, '|', &one);
    return snprintf(out, size, "--%s=%.*s", r->name, (int)one.len, one.data);
}

static int number_text(const struct silt_config *c, const struct silt_row *r, char *out,
                       size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (r->size == sizeof(wide))
        memcpy(&wide, (const char *)c + r->at, sizeof(wide));
    else
        memcpy(&narrow, (const char *)c + r->at, sizeof(narrow));
    return snprintf(out, size, "--%s=%llu", r->name, (unsigned long long)(wide + narrow));
}

char *silt_row_to_flag(const struct silt_row *r, const struct silt_config *c)
{
    char text[FLAG_MAX];
    int n = 0;
    switch (r->kind) {
    case SILT_ROW_TEXT:
    case SILT_ROW_PATH:
    case SILT_ROW_CHOICE:
        n = snprintf(text, sizeof(text), "--%s=%s", r->name, (const char *)c + r->at);
        break;
    case SILT_ROW_NUMBER:
    case SILT_ROW_BYTES:
        n = number_text(c, r, text, sizeof(text));
        break;
    case SILT_ROW_LEVEL:
        n = level_text(c, r, text, sizeof(text));
        break;
    }
    char *flag = n < 0 || (size_t)n >= sizeof(text) ? NULL : strdup(text);
    if (flag == NULL)
        abort();
    return flag;
}

char **silt_config_to_args(const struct silt_config *c, const char *program, const char *more)
{
    char **args = calloc(SILT_ROW_COUNT + 4, sizeof(char *));
    if (args == NULL)
        abort();
    size_t n = 0;
    args[n++] = strdup(program);
    args[n++] = strdup("--config="); /* no file: everything is in the arguments */
    for (size_t i = 0; i < SILT_ROW_COUNT; i++)
        args[n++] = silt_row_to_flag(&silt_rows[i], c);
    if (more != NULL)
        args[n++] = strdup(more);
    for (size_t i = 0; i < n; i++)
        if (args[i] == NULL)
            abort();
    return args;
}

void silt_config_args_free(char **args)
{
    for (size_t i = 0; args != NULL && args[i] != NULL; i++)
        free(args[i]);
    free(args);
}
