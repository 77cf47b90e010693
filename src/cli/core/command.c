/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/command.h"
#include "base/id.h"
#include "base/own.h"
#include "json/json.h"

#include <math.h>

int silt_command_time(const char *option, const char *text, int64_t *ret_ms, struct silt_error *e)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < SILT_COUNT(units); i++) {
        double ms = number * units[i].ms;
        if (end == text || strcmp(end, units[i].name) != 0 || !isfinite(ms) || ms < 1 || ms > 1e12)
            continue;
        *ret_ms = (int64_t)ms;
        return 0;
    }
    return silt_fail(e, SILT_INVALID, "%s %s: not a time like 5s, 500ms, 2m or 1h", option, text);
}

void silt_command_add_quoted(struct silt_buf *b, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%_+=:,./-";
    if (word[0] != 0 && strspn(word, safe) == strlen(word)) {
        silt_buf_add(b, silt_slice_of(word));
        return;
    }
    silt_buf_add_byte(b, '\'');
    for (const char *p = word; *p != 0; p++)
        if (*p == '\'')
            silt_buf_add(b, SILT_LIT("'\\''"));
        else
            silt_buf_add_byte(b, *p);
    silt_buf_add_byte(b, '\'');
}

void silt_command_join(const struct silt_words *words, struct silt_buf *ret)
{
    if (words->count == 1) {
        silt_buf_add(ret, silt_slice_of(words->items[0]));
        return;
    }
    for (size_t i = 0; i < words->count; i++) {
        if (i > 0)
            silt_buf_add_byte(ret, ' ');
        silt_command_add_quoted(ret, words->items[i]);
    }
}

int silt_command_variable(const char *word, silt_slice *ret_name, const char **ret_value,
                          struct silt_error *e)
{
    const char *equals = strchr(word, '=');
    *ret_name = (silt_slice){word, equals != NULL ? (size_t)(equals - word) : strlen(word)};
    if (!silt_id_is_env_name(*ret_name))
        return silt_fail(e, SILT_INVALID, "--env %s: not NAME=VALUE", word);
    *ret_value = equals != NULL ? equals + 1 : getenv(word);
    if (*ret_value == NULL)
        return silt_fail(e, SILT_INVALID, "--env %s: not NAME=VALUE, and not set here", word);
    return 0;
}

int silt_command_add_env(struct silt_buf *b, const struct silt_words *env, struct silt_error *e)
{
    if (env->count == 0)
        return 0;
    silt_json_key(b, SILT_LIT("env"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < env->count; i++) {
        silt_slice name;
        const char *value;
        if (silt_command_variable(env->items[i], &name, &value, e) < 0)
            return -1;
        silt_json_key(b, name);
        silt_json_string(b, silt_slice_of(value));
    }
    silt_json_close(b, '}');
    return 0;
}

static int add_number(struct silt_buf *b, const char *key, const char *option, const char *text,
                      bool is_size, struct silt_error *e)
{
    static const struct {
        const char *name;
        double mib;
    } units[] = {{"", 1}, {"M", 1}, {"MiB", 1}, {"G", 1024}, {"GiB", 1024}, {"T", 1048576}};
    char *end;
    if (text == NULL)
        return 0;
    double number = strtod(text, &end);
    for (size_t i = 0; i < (is_size ? SILT_COUNT(units) : 1); i++) {
        if (end == text || strcmp(end, units[i].name) != 0 || !isfinite(number) || number < 0)
            continue;
        silt_json_key(b, silt_slice_of(key));
        silt_json_double(b, number * units[i].mib);
        return 0;
    }
    return silt_fail(e, SILT_INVALID, "--%s %s: not a %s", option, text,
                     is_size ? "size like 512, 512M or 2G" : "number");
}

int silt_command_add_limits(struct silt_buf *b, const struct silt_command_limits *l,
                            struct silt_error *e)
{
    if (l->cpu == NULL && l->memory == NULL && l->disk == NULL && l->pids == NULL)
        return 0;
    silt_json_key(b, SILT_LIT("limits"));
    silt_json_open(b, '{');
    if (add_number(b, "cpu", "cpu", l->cpu, false, e) < 0
        || add_number(b, "memoryMiB", "memory", l->memory, true, e) < 0
        || add_number(b, "diskMiB", "disk", l->disk, true, e) < 0
        || add_number(b, "pids", "pids", l->pids, false, e) < 0)
        return -1;
    silt_json_close(b, '}');
    return 0;
}

void silt_command_add_text(struct silt_buf *b, const char *key, const char *value)
{
    if (value == NULL)
        return;
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, silt_slice_of(value));
}

int silt_command_add_time(struct silt_buf *b, const char *key, const char *timeout,
                          struct silt_error *e)
{
    int64_t ms;
    if (timeout == NULL)
        return 0;
    if (silt_command_time("--timeout", timeout, &ms, e) < 0)
        return -1;
    silt_json_key(b, silt_slice_of(key));
    silt_json_i64(b, ms);
    return 0;
}

int silt_command_add_labels(struct silt_buf *b, const struct silt_words *labels,
                            struct silt_error *e)
{
    if (labels->count == 0)
        return 0;
    silt_json_key(b, SILT_LIT("labels"));
    silt_json_open(b, '{');
    for (size_t i = 0; i < labels->count; i++) {
        const char *word = labels->items[i], *equals = strchr(word, '=');
        if (equals == NULL || equals == word)
            return silt_fail(e, SILT_INVALID, "--label %s: not KEY=VALUE", word);
        silt_json_key(b, (silt_slice){word, (size_t)(equals - word)});
        silt_json_string(b, silt_slice_of(equals + 1));
    }
    silt_json_close(b, '}');
    return 0;
}

void silt_command_policy(struct silt_buf *b, const char *mode, const struct silt_words *allow)
{
    silt_json_open(b, '{');
    silt_command_add_text(b, "mode", mode != NULL ? mode : "allow");
    if (mode == NULL || strcmp(mode, "allow") == 0 || allow->count > 0) {
        silt_json_key(b, SILT_LIT("allow"));
        silt_json_open(b, '[');
        for (size_t i = 0; i < allow->count; i++)
            silt_json_string(b, silt_slice_of(allow->items[i]));
        silt_json_close(b, ']');
    }
    silt_json_close(b, '}');
}

int silt_command_add_words(struct silt_buf *b, const struct silt_words *words, struct silt_error *e)
{
    silt_auto_buf command;
    silt_buf_init(&command, SILT_CLI_COMMAND_MAX);
    silt_command_join(words, &command);
    silt_json_key(b, SILT_LIT("command"));
    silt_json_string(b, silt_buf_slice(&command));
    if (b->broken || command.broken)
        return silt_fail(e, SILT_LIMIT, "command larger than %d bytes", SILT_CLI_COMMAND_MAX);
    return 0;
}
