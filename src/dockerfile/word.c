/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a Dockerfile: quotes, escapes, variables, and name=value. */
#include "base/id.h"
#include "dockerfile/dockerfile.h"

#include <string.h>

enum { DEPTH_MAX = 16, TOKENS_MAX = 256, STEPS_LEAST = 8 };

/* Steps per match: a few hundredths of a second, during which the loop is blocked. */
static const uint64_t STEPS_MAX = 16 << 20;

struct expander {
    const struct silt_docker_scope *scope;
    struct silt_buf *out;
    silt_slice text;
    size_t at;
    bool quotes; /* quotes are removed; else they are text */
    bool raw;    /* inside a pattern: escapes are kept */
    int depth;
    struct silt_error *error;
};

static int expand_until(struct expander *x, const char *stops);

static bool more(const struct expander *x)
{
    return x->at < x->text.len;
}

static char peek(const struct expander *x)
{
    return x->text.data[x->at];
}

/* Looks at each byte once: names may be long and numerous. */
static bool continues_name(char c, bool first)
{
    const char name[] = {'_', c};
    return silt_id_is_env_name(first ? (silt_slice){name + 1, 1} : (silt_slice){name, 2});
}

static silt_slice read_name(struct expander *x)
{
    size_t begin = x->at;
    while (more(x) && continues_name(peek(x), x->at == begin) && x->at - begin < 255)
        x->at++;
    return (silt_slice){x->text.data + begin, x->at - begin};
}

static silt_slice find(const struct expander *x, silt_slice name)
{
    return x->scope->find(x->scope->context, name);
}

static int unclear(struct expander *x)
{
    return silt_fail(x->error, SILT_INVALID,
                     "'%.*s': a variable is written as $name, ${name}, ${name:-word}, "
                     "${name:+word} or ${name#pattern}",
                     x->text.len > 80 ? 80 : (int)x->text.len, x->text.data);
}

/* ---- patterns ---- */

enum { ANY = 256, STARS = 257 };

struct pattern { /* literal bytes, ANY single byte, STARS for any number */
    uint16_t tokens[TOKENS_MAX];
    size_t count;
};

static int read_pattern(const struct expander *x, silt_slice text, struct pattern *p)
{
    p->count = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.data[i] == x->scope->escape && i + 1 < text.len;
        char c = text.data[i + escaped];
        i += escaped;
        if (p->count == TOKENS_MAX)
            return silt_fail(x->error, SILT_LIMIT, "a pattern of more than %d bytes", TOKENS_MAX);
        p->tokens[p->count++] = escaped    ? (unsigned char)c
                                : c == '*' ? STARS
                                : c == '?' ? ANY
                                           : (unsigned char)c;
    }
    return 0;
}

/* Length of the matching prefix or suffix; -1: no match. Advances all positions of the pattern at
 * once. */
static ssize_t fit(const struct pattern *p, silt_slice text, bool backwards, bool longest)
{
    bool at[TOKENS_MAX + 1] = {true}, next[TOKENS_MAX + 1]; /* one byte each */
    ssize_t best = -1;
    for (size_t i = 0; i <= text.len; i++) {
        unsigned char c =
            i == text.len ? 0 : (unsigned char)text.data[backwards ? text.len - 1 - i : i];
        memset(next, 0, p->count + 1);
        for (size_t k = 0; k < p->count; k++) {
            uint16_t token = p->tokens[backwards ? p->count - 1 - k : k];
            at[k + 1] = at[k + 1] || (at[k] && token == STARS);
            next[k] = next[k] || (at[k] && token == STARS);
            next[k + 1] = at[k] && (token == c || token == ANY);
        }
        best = at[p->count] ? (ssize_t)i : best;
        if (at[p->count] && !longest)
            return best;
        memcpy(at, next, p->count + 1);
    }
    return best;
}

static void replace(const struct pattern *p, silt_slice value, silt_slice by, bool all,
                    struct silt_buf *out)
{
    for (size_t i = 0; i < value.len;) {
        ssize_t n = fit(p, (silt_slice){value.data + i, value.len - i}, false, true);
        if (n <= 0) {
            silt_buf_add_byte(out, value.data[i++]);
            continue;
        }
        silt_buf_add(out, by);
        i += (size_t)n;
        if (!all) {
            silt_buf_add(out, (silt_slice){value.data + i, value.len - i});
            return;
        }
    }
}

static void cut_off(const struct pattern *p, silt_slice value, bool end, bool longest,
                    struct silt_buf *out)
{
    ssize_t n = fit(p, value, end, longest);
    size_t cut = n > 0 ? (size_t)n : 0;
    silt_buf_add(out, (silt_slice){value.data + (end ? 0 : cut), value.len - cut});
}

/* Expands up to one of `stops`, into a buf of its own. */
static int expand_part(struct expander *x, const char *stops, bool raw, struct silt_buf *part)
{
    struct silt_buf *out = x->out;
    bool before = x->raw;
    x->out = part;
    x->raw = raw;
    int done = expand_until(x, stops);
    x->out = out;
    x->raw = before;
    out->broken = out->broken || part->broken;
    return done == 0 && !more(x) ? unclear(x) : done;
}

/* After ${name: `#x`, `##x`, `%x`, `%%x`, `/x/y`, `//x/y`, up to the brace. */
static int expand_pattern(struct expander *x, silt_slice value)
{
    struct pattern p;
    silt_auto_buf text, by;
    silt_buf_init(&text, SILT_DOCKER_VALUE_MAX);
    silt_buf_init(&by, SILT_DOCKER_VALUE_MAX);
    char how = peek(x);
    x->at++;
    bool twice = more(x) && peek(x) == how;
    x->at += twice;
    if (expand_part(x, how == '/' ? "/}" : "}", true, &text) < 0)
        return -1;
    bool replaces = how == '/' && peek(x) == '/';
    x->at += replaces;
    if ((replaces && expand_part(x, "}", false, &by) < 0)
        || read_pattern(x, silt_buf_slice(&text), &p) < 0)
        return -1;
    x->at++;
    if (value.len == 0)
        return 0;
    uint64_t steps = (uint64_t)value.len * (p.count + STEPS_LEAST) * (how == '/' ? value.len : 1);
    if (steps > STEPS_MAX)
        return silt_fail(x->error, SILT_LIMIT, "a value of %zu bytes is too long for a pattern",
                         value.len);
    if (x->scope->steps != NULL)
        *x->scope->steps += steps;
    if (how == '/')
        replace(&p, value, silt_buf_slice(&by), twice, x->out);
    else
        cut_off(&p, value, how == '%', twice, x->out);
    return 0;
}

/* After ${name: `-word`, `:+word` and so on, up to the brace. */
static int expand_choice(struct expander *x, silt_slice value)
{
    bool colon = peek(x) == ':';
    x->at += colon;
    if (!more(x))
        return unclear(x);
    char how = peek(x);
    x->at++;
    bool is_set = value.data != NULL && (!colon || value.len > 0);
    if (how != '-' && how != '+' && how != '?')
        return unclear(x);
    struct silt_buf *out = x->out;
    silt_auto_buf word;
    silt_buf_init(&word, SILT_DOCKER_VALUE_MAX);
    if (expand_part(x, "}", false, &word) < 0)
        return -1;
    x->at++;
    if (how == '?' && !is_set)
        return silt_fail(x->error, SILT_INVALID, "%.*s", word.len > 200 ? 200 : (int)word.len,
                         word.len > 0 ? word.data : "a variable is not set");
    if (how == '+')
        silt_buf_add(out, is_set ? silt_buf_slice(&word) : (silt_slice){NULL, 0});
    else
        silt_buf_add(out, is_set ? value : silt_buf_slice(&word));
    return 0;
}

static int expand_variable(struct expander *x)
{
    x->at++; /* skips the $ */
    if (!more(x)) {
        silt_buf_add_byte(x->out, '$');
        return 0;
    }
    bool braces = peek(x) == '{';
    x->at += braces;
    silt_slice name = read_name(x);
    if (name.len == 0 && !braces) {
        silt_buf_add_byte(x->out, '$');
        return 0;
    }
    if (braces && (name.len == 0 || !more(x)))
        return unclear(x);
    silt_slice value = find(x, name);
    if (braces && strchr("#%/", peek(x)) != NULL)
        return expand_pattern(x, value);
    if (braces && peek(x) != '}')
        return expand_choice(x, value);
    x->at += braces;
    silt_buf_add(x->out, value);
    return 0;
}

static int expand_single(struct expander *x)
{
    for (x->at++; more(x) && peek(x) != '\''; x->at++)
        silt_buf_add_byte(x->out, peek(x));
    if (!more(x))
        return silt_fail(x->error, SILT_INVALID, "a quote does not end");
    x->at++;
    return 0;
}

static int expand_double(struct expander *x)
{
    x->at++;
    while (more(x) && peek(x) != '"') {
        char c = peek(x), next = x->at + 1 < x->text.len ? x->text.data[x->at + 1] : 0;
        if (c == '$') {
            if (expand_variable(x) < 0)
                return -1;
            continue;
        }
        if (c == x->scope->escape && (next == '"' || next == '$' || next == x->scope->escape)) {
            c = next;
            x->at++;
        }
        silt_buf_add_byte(x->out, c);
        x->at++;
    }
    if (!more(x))
        return silt_fail(x->error, SILT_INVALID, "a quote does not end");
    x->at++;
    return 0;
}

static int expand_plain(struct expander *x)
{
    char c = peek(x);
    bool escapes = c == x->scope->escape && x->at + 1 < x->text.len;
    if (escapes && x->raw) {
        silt_buf_add(x->out, (silt_slice){x->text.data + x->at, 2});
        x->at += 2;
        return 0;
    }
    if (escapes && (x->quotes || x->text.data[x->at + 1] == '$' || x->text.data[x->at + 1] == c)) {
        x->at++;
        c = peek(x);
    }
    silt_buf_add_byte(x->out, c);
    x->at++;
    return 0;
}

static int expand_until(struct expander *x, const char *stops)
{
    int done = 0;
    if (x->depth == DEPTH_MAX)
        return unclear(x);
    x->depth++;
    while (done == 0 && more(x) && !silt_is_any(peek(x), stops)) {
        char c = peek(x);
        done = c == '$'                 ? expand_variable(x)
               : c == '\'' && x->quotes ? expand_single(x)
               : c == '"' && x->quotes  ? expand_double(x)
                                        : expand_plain(x);
    }
    x->depth--;
    return done;
}

static int expand(struct silt_buf *b, silt_slice text, const struct silt_docker_scope *s,
                  bool quotes, struct silt_error *e)
{
    struct expander x = {.scope = s, .out = b, .text = text, .quotes = quotes, .error = e};
    if (expand_until(&x, "") < 0)
        return -1;
    return b->broken
               ? silt_fail(e, SILT_LIMIT, "a value of more than %d bytes", SILT_DOCKER_VALUE_MAX)
               : 0;
}

int silt_docker_expand(struct silt_buf *b, silt_slice word, const struct silt_docker_scope *s,
                       struct silt_error *e)
{
    return expand(b, word, s, true, e);
}

int silt_docker_expand_text(struct silt_buf *b, silt_slice text, const struct silt_docker_scope *s,
                            struct silt_error *e)
{
    return expand(b, text, s, false, e);
}

/* ---- pairs ---- */

silt_slice silt_docker_cut(silt_slice *rest, char escape)
{
    char quote = 0;
    size_t n = 0;
    while (n < rest->len) {
        char c = rest->data[n];
        if (c == escape && quote != '\'' && n + 1 < rest->len)
            n++;
        else if (quote == 0 && (c == ' ' || c == '\t'))
            break;
        else if (c == '"' || c == '\'')
            quote = quote == 0 ? c : quote == c ? 0 : quote;
        n++;
    }
    silt_slice word = {rest->data, n};
    *rest = silt_slice_trim((silt_slice){rest->data + n, rest->len - n});
    return word;
}

int silt_docker_pairs(struct silt_arena *a, const struct silt_docker_step *s, char escape,
                      struct silt_docker_pair **ret, size_t *ret_count, struct silt_error *e)
{
    silt_slice rest = s->rest, name;
    struct silt_docker_pair *pairs = silt_arena_alloc(a, (s->word_count + 1) * sizeof(*pairs));
    size_t count = 0;
    if (pairs == NULL)
        return silt_fail(e, SILT_LIMIT, "the Dockerfile needs too much memory");
    silt_slice first = s->word_count > 0 ? s->words[0] : rest;
    if (!silt_slice_has_byte(first, '=')) {
        rest = silt_slice_trim((silt_slice){rest.data + first.len, rest.len - first.len});
        if (rest.len == 0)
            return silt_fail(e, SILT_INVALID, "line %u: %s needs a value", s->line,
                             silt_docker_op_name(s->op));
        pairs[count++] = (struct silt_docker_pair){first, rest};
    }
    while (count < s->word_count + 1 && rest.len > 0 && silt_slice_has_byte(first, '=')) {
        silt_slice word = silt_docker_cut(&rest, escape);
        if (!silt_slice_split(&word, '=', &name) || word.data == NULL || name.len == 0)
            return silt_fail(e, SILT_INVALID, "line %u: '%.*s' is no name=value", s->line,
                             (int)(name.len > 80 ? 80 : name.len), name.data);
        pairs[count++] = (struct silt_docker_pair){name, word};
    }
    *ret = pairs;
    *ret_count = count;
    return 0;
}
