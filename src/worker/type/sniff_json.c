/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/type/mime.h"

enum { DEPTH_MAX = 500 };

/* A rough scan of a value: enough to tell JSON from text that only starts like it. Only the start
 * of a file is read, so a truncated value is fine if everything before it is valid. */
struct scan {
    const char *at, *end;
};

static void skip(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || (*s->at >= '\t' && *s->at <= '\r')))
        s->at++;
}

static bool scan_string(struct scan *s)
{
    for (s->at++; s->at < s->end && *s->at != '"'; s->at++) {
        if ((uint8_t)*s->at < ' ')
            return false;
        s->at += *s->at == '\\';
    }
    s->at = s->at < s->end ? s->at + 1 : s->end;
    return true;
}

static bool scan_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *from = s->at;
    while (s->at < s->end
           && (silt_is_any(*s->at, "+-.") || (*s->at >= '0' && *s->at <= '9')
               || (*s->at >= 'a' && *s->at <= 'z') || *s->at == 'E'))
        s->at++;
    size_t len = (size_t)(s->at - from);
    if (len > 0 && (*from == '-' || (*from >= '0' && *from <= '9')))
        return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (len > 0 && strncmp(from, words[i], len) == 0 && (words[i][len] == 0 || s->at == s->end))
            return true;
    return false;
}

static bool scan_scalar(struct scan *s)
{
    return *s->at == '"' ? scan_string(s) : scan_word(s);
}

/* What may come next: a key or the end of an object, a value, or a separator. */
enum want { KEY, VALUE, NEXT };

static bool scan_key(struct scan *s)
{
    if (*s->at != '"' || !scan_string(s))
        return false;
    skip(s);
    if (s->at == s->end)
        return true;
    return *s->at++ == ':';
}

/* Scans one object or array; false: not JSON. */
static bool scan_value(struct scan *s)
{
    char open[DEPTH_MAX];
    size_t depth = 0;
    enum want want = VALUE;
    for (skip(s); s->at < s->end; skip(s)) {
        char c = *s->at;
        if (want != NEXT && (c == '{' || c == '[') && want == VALUE) {
            if (depth == DEPTH_MAX)
                return false;
            open[depth++] = c;
            want = c == '{' ? KEY : VALUE;
            s->at++;
        } else if (depth > 0 && c == (open[depth - 1] == '{' ? '}' : ']')) {
            s->at++;
            want = NEXT;
            if (--depth == 0)
                return true;
        } else if (depth > 0 && want == NEXT && c == ',') {
            s->at++;
            want = open[depth - 1] == '{' ? KEY : VALUE;
        } else if (depth > 0 && want == KEY) {
            if (!scan_key(s))
                return false;
            want = VALUE;
        } else if (depth > 0 && want == VALUE) {
            if (!scan_scalar(s))
                return false;
            want = NEXT;
        } else {
            return false;
        }
    }
    return depth > 0;
}

const char *silt_sniff_json(silt_slice text)
{
    struct scan s = {text.data, text.data + text.len};
    size_t values = 0;
    for (skip(&s); s.at < s.end; skip(&s), values++)
        if (!scan_value(&s))
            return NULL;
    if (values == 0)
        return NULL;
    return values == 1 ? "application/json" : "application/x-ndjson";
}
