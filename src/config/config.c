/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/own.h"
#include "base/slice.h"

#include <errno.h>
#include <ini.h>
#include <stddef.h>

enum { NAME_MAX_LEN = 40, TEXT_MAX = PATH_MAX + 64 };

static const char default_file[] = "/etc/silt/silt.conf";

enum kind { TEXT, PATH, CHOICE, NUMBER, BYTES, LEVEL };

static const struct row {
    const char *name;
    enum kind kind;
    const char *preset;  /* the default, as a user would write it; "": see help */
    uint64_t min, max;   /* NUMBER, BYTES: bounds; TEXT: length */
    const char *choices; /* CHOICE, LEVEL: "a|b|c" */
    size_t at, size;     /* the field */
    const char *help;
} rows[] = {
#define FIELD(field) offsetof(struct silt_config, field), sizeof(((struct silt_config *)0)->field)
    {"instance", TEXT, "silt", 1, 6, NULL, FIELD(instance),
     "Name of this instance, a-z and 0-9. It prefixes control groups and locks, so that several "
     "instances live on one machine."},
    {"listen", TEXT, "127.0.0.1:7458", 1, 63, NULL, FIELD(listen),
     "Address and port of the HTTP API. Port 0 takes a free one; `<run>/address` tells which."},
    {"state", PATH, "/var/lib/silt", 0, 0, NULL, FIELD(state),
     "Folder of everything that must survive a restart: database, images, files of sandboxes."},
    {"run", PATH, "/run/silt", 0, 0, NULL, FIELD(run),
     "Folder of the files `address` and `pid` of a running instance."},
    {"images", PATH, "", 0, 0, NULL, FIELD(images),
     "Folder of the images; `<state>/images` when not set."},
    {"token_file", PATH, "/etc/silt/token", 0, 0, NULL, FIELD(token_file),
     "File with the API token, at least 16 characters. Made with a random token when missing."},
    {"user", TEXT, "silt", 1, 63, NULL, FIELD(user),
     "User, by name or number, that the daemon facing the network runs as. When a user named silt "
     "does not exist, number 64998 is taken."},
    {"ids.base", NUMBER, "268435456", SILT_CONFIG_BLOCK_IDS, 0xff000000, NULL, FIELD(ids_base),
     "First uid and gid of the sandboxes, a multiple of 16777216. No other user or container tool "
     "may use the range."},
    {"ids.count", NUMBER, "16384", 256, 65280, NULL, FIELD(ids_count),
     "Largest number of sandboxes, a multiple of 256; each owns 65536 ids."},
    {"ids.images", NUMBER, "267386880", SILT_CONFIG_SLOT_IDS, 0xffff0000, NULL, FIELD(ids_images),
     "First of the 65536 ids that images are stored with, a multiple of 65536."},
    {"image", TEXT, "base", 1, 64, NULL, FIELD(image),
     "Image of a sandbox that does not ask for another one."},
    {"image.apt_source", TEXT, "", 0, 255, NULL, FIELD(image_apt_source),
     "The apt source line that built images keep. When not set, the main entries of this machine "
     "without credentials."},
    {"type", CHOICE, "standard-1", 0, 0, "lite|basic|standard-1|standard-2|standard-3|standard-4",
     FIELD(type), "Instance type of a sandbox that does not ask for another one."},
    {"pool.sandboxes", NUMBER, "8", 0, 4096, NULL, FIELD(pool_sandboxes),
     "How many sandboxes of the default image are kept ready."},
    {"pool.namespaces", NUMBER, "2", 0, 64, NULL, FIELD(pool_namespaces),
     "How many network namespaces each worker keeps ready."},
    {"workers", NUMBER, "2", 1, 64, NULL, FIELD(workers),
     "How many privileged workers create and end sandboxes side by side."},
    {"disk.pool", BYTES, "64G", 1ULL << 28, 1ULL << 50, NULL, FIELD(disk_pool),
     "Largest size of the pool file that holds the files of all sandboxes; it grows with use. Not "
     "used where the state folder itself is on btrfs."},
    {"cgroup", PATH, "/sys/fs/cgroup", 0, 0, NULL, FIELD(cgroup),
     "Where the control groups are mounted."},
    {"log.level", LEVEL, "info", 0, 0, "debug|info|warn|error", FIELD(log_level),
     "The least important events that are logged."},
    {"http.connections", NUMBER, "10000", 16, 1000000, NULL, FIELD(http_connections),
     "Open connections of the API; more are closed at once."},
    {"http.head_timeout_ms", NUMBER, "10000", 100, 3600000, NULL, FIELD(http_head_timeout_ms),
     "How long the head of a request may take."},
    {"http.body_timeout_ms", NUMBER, "30000", 100, 3600000, NULL, FIELD(http_body_timeout_ms),
     "How long a sender may be silent inside a body."},
    {"http.idle_timeout_ms", NUMBER, "255000", 100, 86400000, NULL, FIELD(http_idle_timeout_ms),
     "How long a connection may be idle between requests."},
#undef FIELD
};

enum { ROWS = SILT_COUNT(rows) };

/* Which of "a|b|c" the text is, or -1. */
static int choice_of(const char *choices, silt_slice text)
{
    silt_slice rest = silt_slice_of(choices), one;
    for (int i = 0; silt_slice_split(&rest, '|', &one); i++)
        if (silt_slice_eq(one, text))
            return i;
    return -1;
}

/* "64G": the power of 1024 behind the digits, which stay in *text. */
static uint64_t unit_of(silt_slice *text)
{
    static const char units[] = "KMGT";
    const char *unit = text->len > 0 ? strchr(units, text->data[text->len - 1]) : NULL;
    if (unit == NULL || *unit == 0)
        return 1;
    text->len--;
    return 1ULL << (10 * (unit - units + 1));
}

static int number_of(const struct row *r, silt_slice text, uint64_t *ret, struct silt_error *e)
{
    uint64_t unit = r->kind == BYTES ? unit_of(&text) : 1, value;
    if (silt_slice_to_u64(text, 0, UINT64_MAX, &value, e) < 0)
        return -1;
    if (__builtin_mul_overflow(value, unit, &value) || value < r->min || value > r->max)
        return silt_fail(e, SILT_INVALID, "not between %llu and %llu", (unsigned long long)r->min,
                         (unsigned long long)r->max);
    *ret = value;
    return 0;
}

static int set_text(const struct row *r, struct silt_config *c, silt_slice text,
                    struct silt_error *e)
{
    if (r->kind == PATH && (text.len == 0 || text.data[0] != '/'))
        return silt_fail(e, SILT_INVALID, "not an absolute path");
    if (r->kind == TEXT && (text.len < r->min || text.len > r->max))
        return silt_fail(e, SILT_INVALID, "has %zu bytes, not %d to %d", text.len, (int)r->min,
                         (int)r->max);
    if (r->kind == CHOICE && choice_of(r->choices, text) < 0)
        return silt_fail(e, SILT_INVALID, "not one of %s", r->choices);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ')
            return silt_fail(e, SILT_INVALID, "holds a control character");
    return silt_slice_to_cstr(text, (char *)c + r->at, r->size, e);
}

static int set_number(const struct row *r, struct silt_config *c, silt_slice text,
                      struct silt_error *e)
{
    uint64_t wide;
    if (number_of(r, text, &wide, e) < 0)
        return -1;
    uint32_t narrow = (uint32_t)wide;
    if (r->size == sizeof(wide))
        memcpy((char *)c + r->at, &wide, sizeof(wide));
    else
        memcpy((char *)c + r->at, &narrow, sizeof(narrow));
    return 0;
}

static int set(const struct row *r, struct silt_config *c, const char *value, struct silt_error *e)
{
    silt_slice text = silt_slice_of(value);
    int level;
    switch (r->kind) {
    case TEXT:
    case PATH:
    case CHOICE:
        return set_text(r, c, text, e);
    case NUMBER:
    case BYTES:
        return set_number(r, c, text, e);
    case LEVEL:
        level = choice_of(r->choices, text);
        if (level < 0)
            return silt_fail(e, SILT_INVALID, "not one of %s", r->choices);
        c->log_level = (enum silt_log_level)level;
        return 0;
    }
    return silt_fail(e, SILT_INTERNAL, "setting of unknown kind");
}

/* How many single-letter changes turn a into b. */
static size_t distance(const char *a, silt_slice b)
{
    size_t line[NAME_MAX_LEN + 1], n = b.len < NAME_MAX_LEN ? b.len : NAME_MAX_LEN;
    for (size_t j = 0; j <= n; j++)
        line[j] = j;
    for (size_t i = 1; a[i - 1] != 0; i++) {
        size_t corner = line[0];
        line[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = line[j], best = corner + (a[i - 1] != b.data[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            best = line[j - 1] + 1 < best ? line[j - 1] + 1 : best;
            corner = above;
            line[j] = best;
        }
    }
    return line[n];
}

static const struct row *find_row(silt_slice name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (silt_slice_eq(silt_slice_of(rows[i].name), name))
            return &rows[i];
    return NULL;
}

static int fail_unknown(silt_slice name, struct silt_error *e)
{
    const struct row *nearest = &rows[0];
    char quoted[SILT_LOG_QUOTE_SIZE];
    for (size_t i = 1; i < ROWS; i++)
        if (distance(rows[i].name, name) < distance(nearest->name, name))
            nearest = &rows[i];
    return silt_fail(e, SILT_INVALID, "unknown setting %s; did you mean %s?",
                     silt_log_quote(name, quoted), nearest->name);
}

static int set_by_name(struct silt_config *c, silt_slice name, const char *value,
                       struct silt_error *e)
{
    const struct row *r = find_row(name);
    if (r == NULL)
        return fail_unknown(name, e);
    if (set(r, c, value, e) < 0)
        return silt_because(e, "setting %s", r->name);
    return 0;
}

static void set_defaults(struct silt_config *c)
{
    struct silt_error e;
    *c = (struct silt_config){0};
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].preset[0] != 0 && set(&rows[i], c, rows[i].preset, &e) < 0)
            abort(); /* a row whose default breaks its own bounds */
}

/* The file */

struct reading {
    struct silt_config *config;
    struct silt_error *e; /* of the first bad line */
    bool failed;
    bool seen[ROWS];
};

static int set_from_line(struct reading *g, const char *section, const char *name,
                         const char *value, struct silt_error *e)
{
    char full[2 * NAME_MAX_LEN];
    int n = snprintf(full, sizeof(full), "%s%s%s", section, section[0] != 0 ? "." : "", name);
    if (n < 0 || (size_t)n >= sizeof(full))
        return silt_fail(e, SILT_INVALID, "unknown setting with a long name");
    const struct row *r = find_row(silt_slice_of(full));
    if (r != NULL && g->seen[r - rows])
        return silt_fail(e, SILT_INVALID, "setting %s given twice", r->name);
    if (r != NULL)
        g->seen[r - rows] = true;
    return set_by_name(g->config, silt_slice_of(full), value, e);
}

static int on_line(void *user, const char *section, const char *name, const char *value)
{
    struct reading *g = user;
    if (g->failed)
        return 0;
    if (set_from_line(g, section, name, value, g->e) == 0)
        return 1;
    g->failed = true;
    return 0;
}

static void close_file(FILE **file)
{
    if (*file != NULL)
        (void)fclose(*file);
}

static int load_file(struct silt_config *c, const char *path, bool must, struct silt_error *e)
{
    __attribute__((cleanup(close_file))) FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT && !must)
        return 0;
    if (file == NULL)
        return silt_fail_errno(e, "open settings %s", path);
    struct reading reading = {.config = c, .e = e};
    int line = ini_parse_file(file, on_line, &reading);
    if (line == 0)
        return 0;
    if (!reading.failed)
        (void)silt_fail(e, SILT_INVALID, "neither a comment, nor a [section], nor name = value");
    return silt_because(e, "%s line %d", path, line);
}

/* The environment: http.connections is SILT_HTTP_CONNECTIONS. Other SILT_ names belong to others.
 */

static void env_name(const struct row *r, char out[NAME_MAX_LEN])
{
    int n = snprintf(out, NAME_MAX_LEN, "SILT_%s", r->name);
    for (int i = 5; i < n && i < NAME_MAX_LEN - 1; i++)
        if (out[i] == '.')
            out[i] = '_';
        else if (out[i] >= 'a' && out[i] <= 'z')
            out[i] = (char)(out[i] - 'a' + 'A');
}

static int load_environment(struct silt_config *c, struct silt_error *e)
{
    for (size_t i = 0; i < ROWS; i++) {
        char name[NAME_MAX_LEN];
        env_name(&rows[i], name);
        const char *value = getenv(name);
        if (value != NULL && set(&rows[i], c, value, e) < 0)
            return silt_because(e, "environment variable %s", name);
    }
    return 0;
}

/* The flags */

/* The part behind the prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int load_flag(struct silt_config *c, const char *flag, struct silt_error *e)
{
    const char *name = after(flag, "--"), *equals = strchr(flag, '=');
    if (strcmp(flag, "--fresh") == 0)
        c->fresh = true;
    else if (strcmp(flag, "--help") == 0)
        c->help = true;
    else if (strcmp(flag, "--version") == 0)
        c->version = true;
    else if (strcmp(flag, "--reference") == 0)
        c->reference = true;
    else if (name == NULL)
        return silt_fail(e, SILT_INVALID, "flags look like --name=value, not %s", flag);
    else if (equals == NULL && find_row(silt_slice_of(name)) != NULL)
        return silt_fail(e, SILT_INVALID, "%s needs a value: %s=...", flag, flag);
    else if (equals == NULL)
        return fail_unknown(silt_slice_of(name), e);
    else
        return set_by_name(c, (silt_slice){name, (size_t)(equals - name)}, equals + 1, e);
    return 0;
}

static int load_flags(int argc, char **argv, struct silt_config *c, struct silt_error *e)
{
    for (int i = 1; i < argc; i++)
        if (after(argv[i], "--config=") == NULL && load_flag(c, argv[i], e) < 0)
            return -1;
    return 0;
}

static const char *named_file(int argc, char **argv)
{
    const char *file = getenv("SILT_CONFIG");
    for (int i = 1; i < argc; i++) {
        const char *value = after(argv[i], "--config=");
        file = value != NULL ? value : file;
    }
    return file;
}

/* What a single row cannot check */

static bool overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
    return a < b + b_len && b < a + a_len;
}

static int check_ids(const struct silt_config *c, struct silt_error *e)
{
    uint64_t ids = (uint64_t)c->ids_count * SILT_CONFIG_SLOT_IDS;
    if (c->ids_base % SILT_CONFIG_BLOCK_IDS != 0)
        return silt_fail(e, SILT_INVALID, "setting ids.base: %u is not a multiple of %d",
                         c->ids_base, SILT_CONFIG_BLOCK_IDS);
    if (c->ids_count % 256 != 0)
        return silt_fail(e, SILT_INVALID, "setting ids.count: %u is not a multiple of 256",
                         c->ids_count);
    if (c->ids_images % SILT_CONFIG_SLOT_IDS != 0)
        return silt_fail(e, SILT_INVALID, "setting ids.images: %u is not a multiple of %d",
                         c->ids_images, SILT_CONFIG_SLOT_IDS);
    /* The last block stays out: it ends in (uid_t)-1 and holds nobody's overflow. */
    if (c->ids_base + ids > 0xff000000)
        return silt_fail(e, SILT_INVALID, "setting ids.count: %u sandboxes from id %u pass 2^32",
                         c->ids_count, c->ids_base);
    if (overlap(c->ids_base, ids, c->ids_images, SILT_CONFIG_SLOT_IDS))
        return silt_fail(e, SILT_INVALID, "setting ids.images: lies in the range of the sandboxes");
    return 0;
}

static int check(struct silt_config *c, struct silt_error *e)
{
    for (const char *p = c->instance; *p != 0; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
            return silt_fail(e, SILT_INVALID, "setting instance: only a-z and 0-9, not %s",
                             c->instance);
    if (silt_id_check_image(silt_slice_of(c->image), e) < 0)
        return silt_because(e, "setting image");
    if (c->images[0] == 0) {
        int n = snprintf(c->images, sizeof(c->images), "%s/images", c->state);
        if (n < 0 || (size_t)n >= sizeof(c->images))
            return silt_fail(e, SILT_INVALID, "setting state: path too long");
    }
    return check_ids(c, e);
}

int silt_config_load(int argc, char **argv, struct silt_config *ret, struct silt_error *e)
{
    const char *file = named_file(argc, argv);
    bool must = file != NULL;
    set_defaults(ret);
    if (!must)
        file = default_file;
    if (file[0] != 0 && load_file(ret, file, must, e) < 0)
        return -1;
    if (load_environment(ret, e) < 0 || load_flags(argc, argv, ret, e) < 0)
        return -1;
    return check(ret, e);
}

/* What comes out of the rows */

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
                  default_file);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        (void)fprintf(out, "  --%s=%s\n", r->name, r->preset);
        print_wrapped(out, r->help, 74);
        if (r->choices != NULL)
            (void)fprintf(out, "      One of %s.\n", r->choices);
    }
}

/* "a|b" would end a table cell. */
static void print_choices(FILE *out, const char *choices)
{
    silt_slice rest = silt_slice_of(choices), one;
    const char *comma = "";
    while (silt_slice_split(&rest, '|', &one)) {
        (void)fprintf(out, "%s`%.*s`", comma, (int)one.len, one.data);
        comma = ", ";
    }
}

static void print_allowed(FILE *out, const struct row *r)
{
    switch (r->kind) {
    case TEXT:
        (void)fprintf(out, "text, %s%llu characters", r->min > 0 ? "1 to " : "up to ",
                      (unsigned long long)r->max);
        return;
    case PATH:
        (void)fputs("absolute path", out);
        return;
    case CHOICE:
    case LEVEL:
        print_choices(out, r->choices);
        return;
    case NUMBER:
        (void)fprintf(out, "%llu to %llu", (unsigned long long)r->min, (unsigned long long)r->max);
        return;
    case BYTES:
        (void)fprintf(out, "%lluM to %lluT (bytes, or with K, M, G, T)",
                      (unsigned long long)(r->min >> 20), (unsigned long long)(r->max >> 40));
        return;
    }
}

void silt_config_reference(FILE *out)
{
    (void)fprintf(out,
                  "# Settings\n\n"
                  "Every setting has one name. It can stand in the file `%s`\n"
                  "(`name = value`, or `[http]` and then `connections = 100`), in the environment\n"
                  "(`SILT_` and the name in capitals, dots as `_`: `SILT_HTTP_CONNECTIONS`) and as "
                  "a flag of\n"
                  "`silt-super` (`--http.connections=100`). The flag wins over the environment, "
                  "the environment\n"
                  "over the file. `--config=FILE` or `SILT_CONFIG` names another file. An unknown "
                  "name is an\n"
                  "error. Settings are read once, at the start.\n\n"
                  "`silt-super --help` prints the same rows; this page is made from them\n"
                  "(`silt-super --reference`).\n\n"
                  "| name | default | allowed | what it does |\n| --- | --- | --- | --- |\n",
                  default_file);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (r->preset[0] != 0)
            (void)fprintf(out, "| `%s` | `%s` | ", r->name, r->preset);
        else
            (void)fprintf(out, "| `%s` | | ", r->name);
        print_allowed(out, r);
        (void)fprintf(out, " | %s |\n", r->help);
    }
}

static int level_text(const struct silt_config *c, const struct row *r, char *out, size_t size)
{
    silt_slice rest = silt_slice_of(r->choices), one = {0};
    for (int i = 0; i <= (int)c->log_level; i++)
        (void)silt_slice_split(&rest, '|', &one);
    return snprintf(out, size, "--%s=%.*s", r->name, (int)one.len, one.data);
}

static int number_text(const struct silt_config *c, const struct row *r, char *out, size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (r->size == sizeof(wide))
        memcpy(&wide, (const char *)c + r->at, sizeof(wide));
    else
        memcpy(&narrow, (const char *)c + r->at, sizeof(narrow));
    return snprintf(out, size, "--%s=%llu", r->name, (unsigned long long)(wide + narrow));
}

static char *to_flag(const struct silt_config *c, const struct row *r)
{
    char text[TEXT_MAX];
    int n = 0;
    switch (r->kind) {
    case TEXT:
    case PATH:
    case CHOICE:
        n = snprintf(text, sizeof(text), "--%s=%s", r->name, (const char *)c + r->at);
        break;
    case NUMBER:
    case BYTES:
        n = number_text(c, r, text, sizeof(text));
        break;
    case LEVEL:
        n = level_text(c, r, text, sizeof(text));
        break;
    }
    if (n < 0 || (size_t)n >= sizeof(text))
        abort();
    return strdup(text);
}

char **silt_config_to_args(const struct silt_config *c, const char *program, const char *more)
{
    char **args = calloc(ROWS + 4, sizeof(char *));
    if (args == NULL)
        abort();
    size_t n = 0;
    args[n++] = strdup(program);
    args[n++] = strdup("--config="); /* everything is said here: no file */
    for (size_t i = 0; i < ROWS; i++)
        args[n++] = to_flag(c, &rows[i]);
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
