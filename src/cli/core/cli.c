/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/cli.h"
#include "base/own.h"
#include "cli/core/context.h"
#include "cli/core/help.h"

#include <assert.h>

enum { OPTIONS_MAX = 32, USAGE_MAX = 400 };

/* An option is known to the code and to the table, or to neither. A command with verbs gives the
 * options of all of them; those of the other verbs are not taken. */
static bool is_of_this_verb(const struct silt_option *o)
{
    const struct silt_table_row *row = silt_table_current;
    if (row == NULL)
        return true;
    const struct silt_table_option *known = silt_table_option(row, silt_slice_of(o->name));
    assert(known != NULL || silt_table_has_verbs(row));
    assert(known == NULL
           || (known->letter == o->letter && (known->value == NULL) == (o->flag != NULL)
               && known->many == (o->words != NULL)));
    return known != NULL;
}

static void check_table(const struct silt_options *all)
{
    const struct silt_table_row *row = silt_table_current;
    for (const struct silt_table_option *o = row != NULL ? row->options : NULL;
         o != NULL && o->name != NULL; o++) {
        bool found = false;
        for (size_t i = 0; i < all->count; i++)
            found = found || strcmp(all->table[i].name, o->name) == 0;
        assert(found);
    }
}

int silt_cli_parse(struct silt_cli *cli, const struct silt_options *own, int argc, char **argv,
                   struct silt_error *e)
{
    const char *context = NULL;
    struct silt_option table[OPTIONS_MAX] = {
        {.name = "server", .value = &cli->server},
        {.name = "token-file", .value = &cli->token_file},
        {.name = "context", .value = &context},
    };
    struct silt_options all = {.table = table, .count = 3, .plain_max = SIZE_MAX};
    const struct silt_option json = {.name = "json", .flag = &cli->json};
    if (silt_table_current == NULL
        || silt_table_option(silt_table_current, SILT_LIT("json")) != NULL)
        table[all.count++] = json;
    assert(own == NULL || own->count <= OPTIONS_MAX - all.count);
    for (size_t i = 0; own != NULL && i < own->count; i++)
        if (is_of_this_verb(&own->table[i]))
            table[all.count++] = own->table[i];
    check_table(&all);
    if (own != NULL && own->plain_max > 0)
        all.plain_max = own->plain_max;
    int got = silt_options_parse(&all, argc, argv, &cli->plain, &cli->rest, e);
    silt_context_choose(context);
    return got;
}

static void put(FILE *out, silt_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.data[i + 1] : 0;
        bool two = c == 0xc2 && next >= 0x80
                   && next <= 0x9f; /* U+0080 to U+009F: some terminals obey these, too */
        bool control = two || (c < ' ' && c != '\n') || c == 0x7f;
        (void)fputc(control ? '?' : c, out);
        i += two;
    }
}

int silt_cli_fail(const struct silt_error *e)
{
    (void)fflush(stdout);
    (void)fputs("silt: ", stderr);
    put(stderr, silt_slice_of(e->text));
    (void)fputc('\n', stderr);
    return SILT_EXIT_OWN;
}

int silt_cli_misused(struct silt_error *e)
{
    silt_auto_buf usage;
    const struct silt_table_row *row = silt_table_current;
    assert(row != NULL);
    silt_buf_init(&usage, USAGE_MAX);
    silt_help_usage(row, "\n       ", &usage);
    return silt_fail(e, SILT_INVALID, "usage: %.*s\nTry: silt help %s", (int)usage.len, usage.data,
                     row->name);
}

int silt_cli_usage(void)
{
    struct silt_error e;
    (void)silt_cli_misused(&e);
    return silt_cli_fail(&e);
}

int silt_cli_no_command(const char *word)
{
    struct silt_error e;
    const char *hint = silt_table_hint(word);
    silt_slice near = silt_table_near_command(silt_slice_of(word));
    if (hint != NULL)
        (void)silt_fail(&e, SILT_INVALID, "no command %s\n%s", word, hint);
    else if (near.len > 0)
        (void)silt_fail(&e, SILT_INVALID, "no command %s\nDid you mean: silt %.*s", word,
                        (int)near.len, near.data);
    else
        (void)silt_fail(&e, SILT_INVALID, "no command %s\nTry: silt help", word);
    return silt_cli_fail(&e);
}

void silt_cli_print(silt_slice text)
{
    for (silt_slice line; silt_slice_split(&text, '\n', &line);) {
        put(stdout, line);
        if (text.data != NULL)
            (void)putchar(' ');
    }
}

static const struct silt_json *get(const struct silt_json *object, const char *key)
{
    return object != NULL ? silt_json_get(object, silt_slice_of(key)) : NULL;
}

silt_slice silt_cli_text(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    return v != NULL && v->type == SILT_JSON_STRING ? v->string : SILT_LIT("");
}

double silt_cli_real(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    if (v != NULL && v->type == SILT_JSON_DOUBLE)
        return v->number;
    return v != NULL && v->type == SILT_JSON_INT ? (double)v->integer : 0;
}

int64_t silt_cli_number(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    if (v != NULL && v->type == SILT_JSON_INT)
        return v->integer;
    double real = silt_cli_real(object, key);
    return real > -9e18 && real < 9e18 ? (int64_t)real : 0;
}

bool silt_cli_true(const struct silt_json *object, const char *key)
{
    const struct silt_json *v = get(object, key);
    return v != NULL && v->type == SILT_JSON_BOOL && v->boolean;
}

int silt_cli_status(const struct silt_json *object)
{
    const struct silt_json *v = get(object, "exitCode");
    bool fits = v != NULL && v->type == SILT_JSON_INT && v->integer >= 0 && v->integer <= 255;
    return fits ? (int)v->integer : SILT_EXIT_OWN;
}

static void write_items(struct silt_buf *out, const struct silt_json *value)
{
    bool object = value->type == SILT_JSON_OBJECT;
    silt_json_open(out, object ? '{' : '[');
    for (const struct silt_json *i = value->items.first; i != NULL; i = i->next) {
        if (object)
            silt_json_key(out, i->key);
        silt_cli_write(out, i);
    }
    silt_json_close(out, object ? '}' : ']');
}

void silt_cli_write(struct silt_buf *out, const struct silt_json *value)
{
    switch (value->type) {
    case SILT_JSON_NULL:
        silt_json_null(out);
        return;
    case SILT_JSON_BOOL:
        silt_json_bool(out, value->boolean);
        return;
    case SILT_JSON_INT:
        silt_json_i64(out, value->integer);
        return;
    case SILT_JSON_DOUBLE:
        silt_json_double(out, value->number);
        return;
    case SILT_JSON_STRING:
        silt_json_string(out, value->string);
        return;
    case SILT_JSON_ARRAY:
    case SILT_JSON_OBJECT:
        write_items(out, value); /* the JSON reader limits the depth */
        return;
    }
}

void silt_cli_print_json(const struct silt_json *value)
{
    silt_auto_buf out;
    silt_buf_init(&out, SILT_CLI_ARENA_MAX);
    silt_cli_write(&out, value);
    (void)printf("%.*s\n", (int)out.len, out.data);
}

int silt_cli_widen(int least, silt_slice text)
{
    return text.len > (size_t)least && text.len <= SILT_CLI_COLUMN_MAX ? (int)text.len : least;
}

const char *silt_cli_size(int64_t bytes, char out[SILT_CLI_SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < SILT_COUNT(units); unit++)
        value /= 1024;
    (void)snprintf(out, SILT_CLI_SIZE_TEXT, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s",
                   value, units[unit]);
    return out;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || silt_is_any(c, "-._~");
}

int silt_cli_path(char *out, size_t size, const char *before, const char *word, const char *after,
                  struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, size);
    silt_buf_add(&b, silt_slice_of(before));
    for (const char *p = word; *p != 0; p++)
        if (is_plain(*p))
            silt_buf_add_byte(&b, *p);
        else
            silt_buf_addf(&b, "%%%02X", (unsigned char)*p);
    silt_buf_add(&b, silt_slice_of(after));
    if (b.broken)
        return silt_fail(e, SILT_INVALID, "name of %zu bytes is too long", strlen(word));
    return silt_slice_to_cstr(silt_buf_slice(&b), out, size, e);
}
