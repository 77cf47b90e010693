/* SPDX-License-Identifier: Apache-2.0 */
/* All possible positions in the pattern are tracked at once (a set of states), so nothing is tried
 * twice. */
#include "worker/watch/glob.h"

#include <stdlib.h>

enum kind { LITERAL, ONE, SOME, ALL };

struct token {
    enum kind kind;
    uint32_t c;
};

struct silt_glob {
    size_t count;
    struct token tokens[];
};

/* The next character; an invalid byte stands for itself, distinct from every character. */
static uint32_t next(silt_slice *s)
{
    unsigned char lead = (unsigned char)s->data[0];
    size_t len = lead < 0x80   ? 1
                 : lead < 0xc2 ? 0
                 : lead < 0xe0 ? 2
                 : lead < 0xf0 ? 3
                 : lead < 0xf5 ? 4
                               : 0;
    uint32_t c = len == 1 ? lead : lead & (0x7fU >> len);
    bool good = len > 0 && len <= s->len;
    for (size_t i = 1; good && i < len; i++) {
        good = ((unsigned char)s->data[i] & 0xc0) == 0x80;
        c = c << 6 | ((unsigned char)s->data[i] & 0x3f);
    }
    size_t used = good ? len : 1;
    s->data += used;
    s->len -= used;
    return good ? c : 0x80000000U + lead;
}

struct silt_glob *silt_glob_new(silt_slice pattern)
{
    struct silt_glob *g = pattern.len <= SILT_GLOB_MAX
                              ? malloc(sizeof(*g) + pattern.len * sizeof(struct token))
                              : NULL;
    if (g == NULL)
        return NULL;
    g->count = 0;
    while (pattern.len > 0) {
        uint32_t c = next(&pattern);
        struct token *last = g->count > 0 ? &g->tokens[g->count - 1] : NULL;
        if (c == '*' && last != NULL && (last->kind == SOME || last->kind == ALL))
            last->kind = ALL;
        else
            g->tokens[g->count++] = (struct token){c == '*' ? SOME : c == '?' ? ONE : LITERAL, c};
    }
    return g;
}

void silt_glob_free(struct silt_glob *g)
{
    free(g);
}

/* A star may match nothing: where it begins, what follows may begin too. */
static void enter(const struct silt_glob *g, bool *set, size_t i)
{
    while (!set[i]) {
        set[i] = true;
        if (i == g->count || g->tokens[i].kind < SOME)
            return;
        i++;
    }
}

static void step(const struct silt_glob *g, const bool *now, uint32_t c, bool *then)
{
    memset(then, 0, g->count + 1);
    for (size_t i = 0; i < g->count; i++) {
        if (!now[i])
            continue;
        const struct token *t = &g->tokens[i];
        switch (t->kind) {
        case LITERAL:
            if (t->c == c)
                enter(g, then, i + 1);
            break;
        case ONE:
            if (c != '/')
                enter(g, then, i + 1);
            break;
        case SOME:
            if (c != '/')
                enter(g, then, i);
            break;
        case ALL:
            enter(g, then, i);
            break;
        }
    }
}

bool silt_glob_fits(const struct silt_glob *g, silt_slice path)
{
    bool sets[2][SILT_GLOB_MAX + 1] = {0};
    bool *now = sets[0], *then = sets[1], begins = true;
    for (;;) {
        if (begins)
            enter(g, now, 0);
        if (now[g->count] && (path.len == 0 || path.data[0] == '/'))
            return true;
        if (path.len == 0)
            return false;
        uint32_t c = next(&path);
        step(g, now, c, then);
        bool *spare = now;
        now = then;
        then = spare;
        begins = c == '/';
    }
}
