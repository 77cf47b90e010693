/* SPDX-License-Identifier: Apache-2.0 */
#include "dockerfile/dockerfile.h"
#include "base/own.h"
#include "json/json.h"

static const char *const names[SILT_DOCKER_OP_MAX] = {
    [SILT_DOCKER_ADD] = "ADD",
    [SILT_DOCKER_ARG] = "ARG",
    [SILT_DOCKER_CMD] = "CMD",
    [SILT_DOCKER_COPY] = "COPY",
    [SILT_DOCKER_ENTRYPOINT] = "ENTRYPOINT",
    [SILT_DOCKER_ENV] = "ENV",
    [SILT_DOCKER_EXPOSE] = "EXPOSE",
    [SILT_DOCKER_FROM] = "FROM",
    [SILT_DOCKER_HEALTHCHECK] = "HEALTHCHECK",
    [SILT_DOCKER_LABEL] = "LABEL",
    [SILT_DOCKER_MAINTAINER] = "MAINTAINER",
    [SILT_DOCKER_ONBUILD] = "ONBUILD",
    [SILT_DOCKER_RUN] = "RUN",
    [SILT_DOCKER_SHELL] = "SHELL",
    [SILT_DOCKER_STOPSIGNAL] = "STOPSIGNAL",
    [SILT_DOCKER_USER] = "USER",
    [SILT_DOCKER_VOLUME] = "VOLUME",
    [SILT_DOCKER_WORKDIR] = "WORKDIR",
};

const char *silt_docker_op_name(enum silt_docker_op op)
{
    return names[op];
}

silt_slice silt_docker_flag(const struct silt_docker_step *s, silt_slice name)
{
    for (size_t i = 0; i < s->flag_count; i++)
        if (silt_slice_eq(s->flags[i].name, name))
            return s->flags[i].value;
    return (silt_slice){NULL, 0};
}

struct reader {
    struct silt_arena *arena;
    silt_slice left; /* lines not yet read */
    uint32_t line;   /* number of the last line read */
    bool over;
    struct silt_dockerfile *file;
    struct silt_error *error;
};

static int refuse(struct reader *r, uint32_t line, const char *why)
{
    return silt_fail(r->error, SILT_INVALID, "Dockerfile line %u: %s", line, why);
}

static void *allocate(struct reader *r, size_t size)
{
    void *p = silt_arena_alloc(r->arena, size);
    if (p == NULL)
        (void)silt_fail(r->error, SILT_LIMIT, "the Dockerfile needs too much memory");
    else
        memset(p, 0, size);
    return p;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static silt_slice trim_left(silt_slice s)
{
    for (; s.len > 0 && is_blank(s.data[0]); s.len--)
        s.data++;
    return s;
}

/* False at the end. Strips a trailing carriage return. */
static bool next_line(struct reader *r, silt_slice *ret)
{
    if (r->over || !silt_slice_split(&r->left, '\n', ret))
        return false;
    if (r->left.data == NULL) {
        r->over = true;
        if (ret->len == 0)
            return false; /* after the last newline */
    }
    r->line++;
    if (ret->len > 0 && ret->data[ret->len - 1] == '\r')
        ret->len--;
    return true;
}

static bool is_comment(silt_slice line)
{
    line = trim_left(line);
    return line.len > 0 && line.data[0] == '#';
}

static bool is_directive(silt_slice key)
{
    static const char *const known[] = {"syntax", "escape", "check"};
    for (size_t i = 0; i < SILT_COUNT(known); i++)
        if (silt_slice_ieq(silt_slice_trim(key), silt_slice_of(known[i])))
            return true;
    return false;
}

/* `# escape=` in the comments at the very top; after any other comment it is an ordinary
 * comment. */
static void read_directives(struct reader *r)
{
    struct reader look = *r;
    silt_slice line, key;
    while (next_line(&look, &line) && is_comment(line)) {
        line = trim_left(line);
        line = (silt_slice){line.data + 1, line.len - 1};
        if (!silt_slice_split(&line, '=', &key) || line.data == NULL || !is_directive(key))
            return;
        line = silt_slice_trim(line);
        if (silt_slice_ieq(silt_slice_trim(key), SILT_LIT("escape")) && line.len == 1
            && (line.data[0] == '`' || line.data[0] == '\\'))
            r->file->escape = line.data[0];
    }
}

/* Strips a trailing escape character; true: the next line belongs to this one. */
static bool is_continued(silt_slice *line, char escape)
{
    silt_slice s = *line;
    while (s.len > 0 && is_blank(s.data[s.len - 1]))
        s.len--;
    if (s.len == 0 || s.data[s.len - 1] != escape || (s.len > 1 && s.data[s.len - 2] == escape))
        return false;
    *line = (silt_slice){s.data, s.len - 1};
    return true;
}

/* One instruction with all its lines; empty at the end. */
static int read_logical(struct reader *r, silt_slice *ret, uint32_t *ret_line)
{
    silt_slice line;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_DOCKERFILE_MAX);
    *ret = (silt_slice){NULL, 0};
    bool more = true, begun = false;
    while (more && next_line(r, &line)) {
        if (is_comment(line) || (silt_slice_trim(line).len == 0))
            continue;
        if (!begun)
            *ret_line = r->line;
        begun = true;
        more = is_continued(&line, r->file->escape);
        silt_buf_add(&b, b.len == 0 ? trim_left(line) : line);
    }
    if (!begun)
        return 0;
    char *copy = silt_arena_dup(r->arena, silt_buf_slice(&b));
    if (copy == NULL || b.broken)
        return silt_fail(r->error, SILT_LIMIT, "the Dockerfile needs too much memory");
    *ret = silt_slice_trim((silt_slice){copy, b.len});
    return 0;
}

static silt_slice cut_word(silt_slice *s)
{
    *s = trim_left(*s);
    silt_slice word = {s->data, 0};
    while (word.len < s->len && !is_blank(s->data[word.len]))
        word.len++;
    *s = trim_left((silt_slice){s->data + word.len, s->len - word.len});
    return word;
}

static int find_op(struct reader *r, silt_slice word, uint32_t line, enum silt_docker_op *ret)
{
    for (size_t i = 0; i < SILT_DOCKER_OP_MAX; i++)
        if (silt_slice_ieq(word, silt_slice_of(names[i]))) {
            *ret = (enum silt_docker_op)i;
            return 0;
        }
    return silt_fail(r->error, SILT_INVALID, "Dockerfile line %u: unknown instruction %.*s", line,
                     word.len > 40 ? 40 : (int)word.len, word.data);
}

static int read_flags(struct reader *r, struct silt_docker_step *s)
{
    s->flags = allocate(r, SILT_DOCKER_FLAGS_MAX * sizeof(*s->flags));
    if (s->flags == NULL)
        return -1;
    while (silt_slice_starts(s->rest, SILT_LIT("--"))) {
        silt_slice word = cut_word(&s->rest), name;
        word = (silt_slice){word.data + 2, word.len - 2};
        if (s->flag_count == SILT_DOCKER_FLAGS_MAX)
            return refuse(r, s->line, "too many flags");
        (void)silt_slice_split(&word, '=', &name);
        s->flags[s->flag_count++] =
            (struct silt_docker_flag){name, word.data != NULL ? word : SILT_LIT("")};
    }
    return 0;
}

/* Only an array of strings counts as JSON; anything else is ordinary text. */
static int read_json(struct reader *r, struct silt_docker_step *s)
{
    const struct silt_json *list;
    struct silt_error ignored;
    if (s->rest.len == 0 || s->rest.data[0] != '['
        || silt_json_read(r->arena, s->rest, &list, &ignored) < 0 || list->type != SILT_JSON_ARRAY
        || list->items.count > SILT_DOCKER_WORDS_MAX)
        return 0;
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next)
        if (i->type != SILT_JSON_STRING || silt_slice_has_byte(i->string, 0))
            return 0;
    s->words = allocate(r, (list->items.count + 1) * sizeof(silt_slice));
    if (s->words == NULL)
        return -1;
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next)
        s->words[s->word_count++] = i->string;
    s->json = true;
    return 0;
}

static int read_words(struct reader *r, struct silt_docker_step *s)
{
    silt_slice rest = s->rest;
    size_t most =
        rest.len / 2 + 1 < SILT_DOCKER_WORDS_MAX ? rest.len / 2 + 1 : SILT_DOCKER_WORDS_MAX;
    s->words = allocate(r, most * sizeof(silt_slice));
    if (s->words == NULL)
        return -1;
    while (rest.len > 0) {
        if (s->word_count == most)
            return refuse(r, s->line, "too many words");
        s->words[s->word_count++] =
            s->op == SILT_DOCKER_ARG ? silt_docker_cut(&rest, r->file->escape) : cut_word(&rest);
    }
    return 0;
}

/* ---- heredocs ---- */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '.' || c == '-';
}

static int read_heredoc(struct reader *r, struct silt_docker_step *s, silt_slice name, bool expand,
                        bool tabs)
{
    silt_auto_buf b;
    silt_slice line;
    silt_buf_init(&b, SILT_DOCKERFILE_MAX);
    for (;;) {
        if (!next_line(r, &line))
            return refuse(r, s->line, "a heredoc does not end");
        while (tabs && line.len > 0 && line.data[0] == '\t')
            line = (silt_slice){line.data + 1, line.len - 1};
        if (silt_slice_eq(line, name))
            break;
        silt_buf_add(&b, line);
        silt_buf_add_byte(&b, '\n');
    }
    char *body = silt_arena_dup(r->arena, silt_buf_slice(&b));
    if (body == NULL || b.broken)
        return silt_fail(r->error, SILT_LIMIT, "the Dockerfile needs too much memory");
    s->heredocs[s->heredoc_count++] = (struct silt_docker_heredoc){name, {body, b.len}, expand};
    return 0;
}

/* At "<<": 1 and the name, with *at behind it, or 0. */
static int is_heredoc(silt_slice text, size_t *at, silt_slice *ret, bool *ret_expand,
                      bool *ret_tabs)
{
    size_t i = *at + 2;
    *ret_tabs = i < text.len && text.data[i] == '-';
    i += *ret_tabs;
    char quote = i < text.len && (text.data[i] == '"' || text.data[i] == '\'') ? text.data[i] : 0;
    i += quote != 0;
    size_t begin = i;
    while (i < text.len && is_name(text.data[i]))
        i++;
    *ret = (silt_slice){text.data + begin, i - begin};
    *ret_expand = quote == 0;
    if (ret->len == 0 || (quote != 0 && (i == text.len || text.data[i] != quote)))
        return 0;
    *at = i + (quote != 0);
    return 1;
}

static int read_heredocs(struct reader *r, struct silt_docker_step *s)
{
    char quote = 0;
    s->heredocs = allocate(r, SILT_DOCKER_HEREDOCS_MAX * sizeof(*s->heredocs));
    if (s->heredocs == NULL)
        return -1;
    for (size_t i = 0; i + 1 < s->rest.len;) {
        char c = s->rest.data[i];
        silt_slice name;
        bool expand, tabs;
        if (c == '\\' && quote != '\'') {
            i += 2;
            continue;
        }
        if (quote != 0 || c == '"' || c == '\'') {
            quote = quote == 0 ? c : quote == c ? 0 : quote;
            i++;
            continue;
        }
        if (c == '<' && s->rest.data[i + 1] == '<' && i + 2 < s->rest.len
            && s->rest.data[i + 2] == '<') {
            i += 3; /* a here-string */
            continue;
        }
        if (c != '<' || s->rest.data[i + 1] != '<'
            || !is_heredoc(s->rest, &i, &name, &expand, &tabs)) {
            i++;
            continue;
        }
        if (s->heredoc_count == SILT_DOCKER_HEREDOCS_MAX)
            return refuse(r, s->line, "too many heredocs");
        if (read_heredoc(r, s, name, expand, tabs) < 0)
            return -1;
    }
    return 0;
}

/* ---- steps and stages ---- */

static bool has_flags(enum silt_docker_op op)
{
    return op == SILT_DOCKER_FROM || op == SILT_DOCKER_RUN || op == SILT_DOCKER_COPY
           || op == SILT_DOCKER_ADD;
}

static bool has_json(enum silt_docker_op op)
{
    return op == SILT_DOCKER_RUN || op == SILT_DOCKER_CMD || op == SILT_DOCKER_ENTRYPOINT
           || op == SILT_DOCKER_SHELL || op == SILT_DOCKER_COPY || op == SILT_DOCKER_ADD
           || op == SILT_DOCKER_VOLUME;
}

static bool has_heredocs(enum silt_docker_op op)
{
    return op == SILT_DOCKER_RUN || op == SILT_DOCKER_COPY || op == SILT_DOCKER_ADD;
}

static int read_step(struct reader *r, silt_slice text, struct silt_docker_step *s)
{
    s->text = text;
    s->rest = text;
    silt_slice word = cut_word(&s->rest);
    if (find_op(r, word, s->line, &s->op) < 0)
        return -1;
    if (has_flags(s->op) && read_flags(r, s) < 0)
        return -1;
    if (has_heredocs(s->op) && read_heredocs(r, s) < 0)
        return -1;
    if (has_json(s->op) && s->heredoc_count == 0 && read_json(r, s) < 0)
        return -1;
    if (!s->json && s->op != SILT_DOCKER_RUN && read_words(r, s) < 0)
        return -1;
    if (s->rest.len == 0 && s->op != SILT_DOCKER_CMD && s->op != SILT_DOCKER_ENTRYPOINT)
        return refuse(r, s->line, "the instruction has no arguments");
    if (s->op == SILT_DOCKER_SHELL && (!s->json || s->word_count == 0))
        return refuse(r, s->line, "SHELL needs a JSON list");
    return 0;
}

static int name_stage(struct reader *r, const struct silt_docker_step *s,
                      struct silt_docker_stage *g)
{
    g->image = s->words[0];
    if (s->word_count == 1)
        return 0;
    if (s->word_count != 3 || !silt_slice_ieq(s->words[1], SILT_LIT("AS")))
        return refuse(r, s->line, "expected FROM image, or FROM image AS name");
    char *name = silt_arena_dup(r->arena, s->words[2]);
    if (name == NULL)
        return silt_fail(r->error, SILT_LIMIT, "the Dockerfile needs too much memory");
    for (char *c = name; *c != 0; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
    g->name = (silt_slice){name, s->words[2].len};
    for (size_t i = 0; i < r->file->stage_count; i++)
        if (silt_slice_eq(r->file->stages[i].name, g->name))
            return refuse(r, s->line, "a stage of that name is there already");
    return 0;
}

static int add_step(struct reader *r, const struct silt_docker_step *s)
{
    struct silt_dockerfile *f = r->file;
    f->steps[f->step_count++] = *s;
    if (s->op == SILT_DOCKER_FROM) {
        struct silt_docker_stage g = {
            .from = f->step_count - 1, .first = f->step_count, .end = f->step_count};
        if (f->stage_count == SILT_DOCKER_STAGES_MAX)
            return refuse(r, s->line, "too many stages");
        if (name_stage(r, s, &g) < 0)
            return -1;
        f->stages[f->stage_count++] = g;
        return 0;
    }
    if (f->stage_count == 0 && s->op != SILT_DOCKER_ARG)
        return refuse(r, s->line, "before FROM there may be only ARG");
    if (f->stage_count > 0)
        f->stages[f->stage_count - 1].end = f->step_count;
    return 0;
}

int silt_dockerfile_read(struct silt_arena *a, silt_slice text, struct silt_dockerfile *ret,
                         struct silt_error *e)
{
    struct reader r = {.arena = a, .left = text, .file = ret, .error = e};
    *ret = (struct silt_dockerfile){.escape = '\\'};
    if (text.len > SILT_DOCKERFILE_MAX)
        return silt_fail(e, SILT_LIMIT, "a Dockerfile of %zu bytes, at most %d", text.len,
                         SILT_DOCKERFILE_MAX);
    if (silt_slice_has_byte(text, 0))
        return silt_fail(e, SILT_INVALID, "the Dockerfile holds a NUL byte");
    if (silt_slice_starts(text, SILT_LIT("\xef\xbb\xbf")))
        r.left = (silt_slice){text.data + 3, text.len - 3};
    ret->steps = allocate(&r, SILT_DOCKER_STEPS_MAX * sizeof(struct silt_docker_step));
    ret->stages = allocate(&r, SILT_DOCKER_STAGES_MAX * sizeof(struct silt_docker_stage));
    if (ret->steps == NULL || ret->stages == NULL)
        return -1;
    read_directives(&r);
    for (;;) {
        struct silt_docker_step s = {0};
        silt_slice line;
        if (read_logical(&r, &line, &s.line) < 0)
            return -1;
        if (line.data == NULL)
            break;
        if (ret->step_count == SILT_DOCKER_STEPS_MAX)
            return refuse(&r, s.line, "too many instructions");
        if (read_step(&r, line, &s) < 0 || add_step(&r, &s) < 0)
            return -1;
    }
    return ret->stage_count > 0 ? 0 : silt_fail(e, SILT_INVALID, "the Dockerfile has no FROM");
}
