/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rpc/text.h"
#include "base/clock.h"
#include "base/own.h"
#include "json/json.h"

#include <stdio.h>
#include <time.h>

/* ---- scanning JSON ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The position after the string that starts at `at`. */
static size_t end_of_string(silt_slice s, size_t at)
{
    for (at++; at < s.len; at++) {
        const char *quote = memchr(s.data + at, '"', s.len - at);
        if (quote == NULL)
            return s.len;
        size_t end = (size_t)(quote - s.data), slashes = 0;
        while (end - slashes > at && s.data[end - slashes - 1] == '\\')
            slashes++;
        at = end;
        if (slashes % 2 == 0)
            return end + 1;
    }
    return s.len;
}

/* The position after the value that starts at `at`. */
static size_t end_of_value(silt_slice s, size_t at)
{
    size_t depth = 0;
    while (at < s.len) {
        char c = s.data[at];
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            break;
        if (c == '"') {
            at = end_of_string(s, at);
        } else {
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            at++;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']'))
            break;
    }
    return at;
}

static silt_slice trimmed(silt_slice s)
{
    while (s.len > 0 && is_space(s.data[0]))
        s = (silt_slice){s.data + 1, s.len - 1};
    while (s.len > 0 && is_space(s.data[s.len - 1]))
        s.len--;
    return s;
}

/* Takes the next item off the text between the brackets; members keep their key. */
static bool next_item(silt_slice *inside, silt_slice *ret)
{
    size_t at = 0;
    while (at < inside->len && (is_space(inside->data[at]) || inside->data[at] == ','))
        at++;
    if (at == inside->len)
        return false;
    size_t end = at;
    while (end < inside->len && inside->data[end] != ',') {
        size_t next = end_of_value(*inside, end);
        end = next > end ? next : end + 1;
    }
    *ret = (silt_slice){inside->data + at, end - at};
    *inside = (silt_slice){inside->data + end, inside->len - end};
    return true;
}

static bool is_inside(silt_slice json, char bracket, silt_slice *ret)
{
    json = trimmed(json);
    if (json.len < 2 || json.data[0] != bracket)
        return false;
    *ret = (silt_slice){json.data + 1, json.len - 2};
    return true;
}

bool silt_rpc_member(silt_slice object, silt_slice name, silt_slice *ret)
{
    silt_slice inside, item;
    if (!is_inside(object, '{', &inside))
        return false;
    while (next_item(&inside, &item)) {
        size_t end = item.data[0] == '"' ? end_of_string(item, 0) : 0;
        silt_slice value = trimmed((silt_slice){item.data + end, item.len - end});
        if (end < 2 || value.len == 0 || value.data[0] != ':'
            || !silt_slice_eq((silt_slice){item.data + 1, end - 2}, name))
            continue;
        *ret = trimmed((silt_slice){value.data + 1, value.len - 1});
        return true;
    }
    return false;
}

/* ---- writing ---- */

void silt_rpc_wrap(struct silt_buf *b, silt_slice json)
{
    size_t from = 0, at = 0;
    while (at < json.len) {
        char c = json.data[at];
        if (c == '"') {
            at = end_of_string(json, at);
            continue;
        }
        at++;
        if (c != '[' && c != ']')
            continue;
        silt_buf_add(b, (silt_slice){json.data + from, at - from});
        silt_buf_add_byte(b, c);
        from = at;
    }
    silt_buf_add(b, (silt_slice){json.data + from, json.len - from});
}

struct field {
    silt_slice name, source, fields; /* fields: between its parentheses */
    char sign;                       /* '@', '!', or 0 */
};

static bool next_field(silt_slice *fields, struct field *ret)
{
    size_t depth = 0, n = 0;
    *fields = trimmed(*fields);
    for (; n < fields->len && (depth > 0 || fields->data[n] != ' '); n++) {
        depth += fields->data[n] == '(';
        depth -= fields->data[n] == ')';
    }
    silt_slice word = {fields->data, n}, name;
    *fields = (silt_slice){fields->data + n, fields->len - n};
    *ret = (struct field){0};
    if (n == 0)
        return false;
    const char *open = memchr(word.data, '(', word.len);
    if (open != NULL) {
        size_t at = (size_t)(open - word.data);
        ret->fields = (silt_slice){open + 1, word.len - at - 2};
        word.len = at;
    }
    if (word.data[word.len - 1] == '@' || word.data[word.len - 1] == '!')
        ret->sign = word.data[--word.len];
    (void)silt_slice_split(&word, '=', &name);
    ret->name = name;
    ret->source = word.len > 0 ? word : name;
    return true;
}

/* 2026-01-02T03:04:05.678Z, as our handlers write it. */
static void add_date(struct silt_buf *b, silt_slice json)
{
    struct tm t = {0};
    char text[40];
    int ms = 0;
    struct silt_error e;
    if (json.len < 2
        || silt_slice_to_cstr((silt_slice){json.data + 1, json.len - 2}, text, sizeof(text), &e) < 0
        || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3d", &t.tm_year, &t.tm_mon, &t.tm_mday,
                  &t.tm_hour, &t.tm_min, &t.tm_sec, &ms)
               != 7) { /* widths bound every number */
        silt_buf_add(b, SILT_LIT("[\"date\",null]"));
        return;
    }
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    silt_buf_addf(b, "[\"date\",%lld]", (long long)timegm(&t) * 1000 + ms);
}

static void add_own(struct silt_buf *b, silt_slice name, int64_t number)
{
    char text[SILT_ISO_SIZE];
    if (silt_slice_eq(name, SILT_LIT("success"))) {
        silt_json_bool(b, true);
    } else if (silt_slice_eq(name, SILT_LIT("timestamp"))) {
        silt_clock_iso(silt_clock_wall_ms(), text);
        silt_json_string(b, silt_slice_of(text));
    } else {
        silt_json_i64(b, number);
    }
}

static void pick(struct silt_buf *b, silt_slice json, silt_slice fields, int64_t number);

static void add_value(struct silt_buf *b, silt_slice json, const struct field *f)
{
    silt_slice inside, item;
    if (f->sign == '@') {
        add_date(b, json);
    } else if (f->fields.len == 0) {
        silt_rpc_wrap(b, json);
    } else if (!is_inside(json, '[', &inside)) {
        pick(b, json, f->fields, 0);
    } else {
        silt_buf_add(b, SILT_LIT("[["));
        for (bool first = true; next_item(&inside, &item); first = false) {
            if (!first)
                silt_buf_add_byte(b, ',');
            pick(b, item, f->fields, 0);
        }
        silt_buf_add(b, SILT_LIT("]]"));
    }
}

static void pick(struct silt_buf *b, silt_slice json, silt_slice fields, int64_t number)
{
    struct field f;
    silt_slice value;
    silt_buf_add_byte(b, '{');
    while (next_field(&fields, &f)) {
        if (f.sign == '!') {
            silt_json_key(b, f.name);
            add_own(b, f.name, number);
        } else if (silt_rpc_member(json, f.source, &value)) {
            silt_json_key(b, f.name);
            add_value(b, value, &f);
        }
    }
    silt_buf_add_byte(b, '}');
}

void silt_rpc_pick(struct silt_buf *b, silt_slice json, const char *fields, int64_t number)
{
    pick(b, json, silt_slice_of(fields), number);
}

void silt_rpc_pick_one(struct silt_buf *b, silt_slice json, const char *field)
{
    silt_slice rest = silt_slice_of(field), value;
    struct field f;
    if (next_field(&rest, &f) && silt_rpc_member(json, f.source, &value))
        add_value(b, value, &f);
    else
        silt_buf_add(b, SILT_LIT("[\"undefined\"]"));
}

/* ---- errors ---- */

static void put_error(struct silt_buf *b, silt_slice message_json, silt_slice code_json,
                      silt_slice details)
{
    silt_buf_add(b, SILT_LIT("[\"error\",\"Error\","));
    silt_buf_add(b, message_json);
    silt_buf_add(b, SILT_LIT(",null,{\"code\":"));
    silt_buf_add(b, code_json);
    silt_buf_add(b, SILT_LIT(",\"details\":"));
    silt_rpc_wrap(b, details.len > 0 ? details : SILT_LIT("{}"));
    silt_buf_add(b, SILT_LIT("}]"));
}

static void quote(struct silt_buf *b, silt_slice text)
{
    silt_buf_init(b, 6 * text.len + 2);
    silt_json_string(b, text);
}

void silt_rpc_error(struct silt_buf *b, const char *code, silt_slice message, silt_slice details)
{
    silt_auto_buf text, name;
    quote(&text, message);
    quote(&name, silt_slice_of(code));
    put_error(b, silt_buf_slice(&text), silt_buf_slice(&name), details);
}

/* Clients know only the codes of the wire API; with any other they would blame the transport. */
static bool is_known(silt_slice code)
{
    static const char *const others[] = {"UNAUTHORIZED",
                                         "METHOD_NOT_ALLOWED",
                                         "BODY_TOO_LARGE",
                                         "SANDBOX_NOT_FOUND",
                                         "SANDBOX_ALREADY_EXISTS",
                                         "IMAGE_NOT_FOUND",
                                         "LIMIT_REACHED",
                                         "NOT_AVAILABLE",
                                         "OPERATION_TIMEOUT",
                                         "PRECONDITION_FAILED",
                                         "NOT_A_LINK",
                                         "STDIN_CLOSED",
                                         "UPGRADE_REQUIRED",
                                         "NETWORK_UNAVAILABLE",
                                         "RANGE_NOT_SATISFIABLE"};
    for (size_t i = 0; i < SILT_COUNT(others); i++)
        if (silt_slice_eq(code, silt_slice_of(others[i])))
            return false;
    return true;
}

static void refuse_other(struct silt_buf *b, silt_slice message, silt_slice code,
                         silt_slice context)
{
    silt_auto_buf details;
    silt_slice inside;
    bool any = is_inside(context, '{', &inside) && inside.len > 0;
    silt_buf_init(&details, context.len + code.len + 64);
    silt_buf_add(&details, SILT_LIT("{\"code\":"));
    silt_buf_add(&details, code);
    silt_buf_add(&details, any ? SILT_LIT(",") : SILT_LIT(""));
    silt_buf_add(&details, any ? inside : SILT_LIT(""));
    silt_buf_add_byte(&details, '}');
    put_error(b, message, SILT_LIT("\"INTERNAL_ERROR\""), silt_buf_slice(&details));
}

void silt_rpc_refusal(struct silt_buf *b, silt_slice envelope)
{
    silt_slice code, message, context;
    if (!silt_rpc_member(envelope, SILT_LIT("code"), &code) || code.len < 2 || code.data[0] != '"'
        || !silt_rpc_member(envelope, SILT_LIT("message"), &message)) {
        silt_rpc_error(b, "INTERNAL_ERROR", SILT_LIT("The answer was no error that is known"),
                       (silt_slice){NULL, 0});
        return;
    }
    if (!silt_rpc_member(envelope, SILT_LIT("context"), &context))
        context = SILT_LIT("{}");
    if (is_known((silt_slice){code.data + 1, code.len - 2}))
        put_error(b, message, code, context);
    else
        refuse_other(b, message, code, context);
}

void silt_rpc_fault(struct silt_buf *b, const char *name, silt_slice message)
{
    silt_json_open(b, '[');
    silt_json_string(b, SILT_LIT("error"));
    silt_json_string(b, silt_slice_of(name));
    silt_json_string(b, message);
    silt_json_close(b, ']');
}
