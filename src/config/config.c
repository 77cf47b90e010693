/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "base/own.h"
#include "base/ip_prefix.h"
#include "base/reference.h"
#include "config/row.h"

#include <errno.h>
#include <ini.h>

/* Edit distance: the number of single-letter changes that turn a into b. */
static size_t distance(const char *a, silt_slice b)
{
    size_t line[SILT_ROW_NAME_MAX + 1], n = b.len < SILT_ROW_NAME_MAX ? b.len : SILT_ROW_NAME_MAX;
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

static int fail_unknown(silt_slice name, struct silt_error *e)
{
    const struct silt_row *nearest = &silt_rows[0];
    char quoted[SILT_LOG_QUOTE_SIZE];
    for (size_t i = 1; i < SILT_ROW_COUNT; i++)
        if (distance(silt_rows[i].name, name) < distance(nearest->name, name))
            nearest = &silt_rows[i];
    if (distance(nearest->name, name) > name.len / 2)
        return silt_fail(e, SILT_INVALID, "unknown setting %s; silt-super --help lists them",
                         silt_log_quote(name, quoted));
    return silt_fail(e, SILT_INVALID, "unknown setting %s; did you mean %s?",
                     silt_log_quote(name, quoted), nearest->name);
}

static int set_by_name(struct silt_config *c, silt_slice name, const char *value,
                       struct silt_error *e)
{
    const struct silt_row *r = silt_row_find(name);
    if (r == NULL)
        return fail_unknown(name, e);
    if (silt_row_set(r, c, value, e) < 0)
        return silt_because(e, "setting %s", r->name);
    return 0;
}

static void set_defaults(struct silt_config *c)
{
    struct silt_error e;
    *c = (struct silt_config){0};
    for (size_t i = 0; i < SILT_ROW_COUNT; i++)
        if (silt_rows[i].preset[0] != 0
            && silt_row_set(&silt_rows[i], c, silt_rows[i].preset, &e) < 0)
            abort(); /* the row's default violates its own bounds */
}

/* The file */

struct reading {
    struct silt_config *config;
    struct silt_error *e; /* the first invalid line's error */
    bool failed;
    bool seen[SILT_ROW_COUNT];
};

static int set_from_line(struct reading *g, const char *section, const char *name,
                         const char *value, struct silt_error *e)
{
    char full[2 * SILT_ROW_NAME_MAX];
    int n = snprintf(full, sizeof(full), "%s%s%s", section, section[0] != 0 ? "." : "", name);
    if (n < 0 || (size_t)n >= sizeof(full))
        return silt_fail(e, SILT_INVALID, "unknown setting with a long name");
    const struct silt_row *r = silt_row_find(silt_slice_of(full));
    if (r != NULL && g->seen[r - silt_rows])
        return silt_fail(e, SILT_INVALID, "setting %s given twice", r->name);
    if (r != NULL)
        g->seen[r - silt_rows] = true;
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

/* The environment: http.connections is SILT_HTTP_CONNECTIONS. Other SILT_ variables are ignored:
 * they have other uses. */

static void env_name(const struct silt_row *r, char out[SILT_ROW_NAME_MAX])
{
    int n = snprintf(out, SILT_ROW_NAME_MAX, "SILT_%s", r->name);
    for (int i = 5; i < n && i < SILT_ROW_NAME_MAX - 1; i++)
        if (out[i] == '.')
            out[i] = '_';
        else if (out[i] >= 'a' && out[i] <= 'z')
            out[i] = (char)(out[i] - 'a' + 'A');
}

static int load_environment(struct silt_config *c, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_ROW_COUNT; i++) {
        char name[SILT_ROW_NAME_MAX];
        env_name(&silt_rows[i], name);
        const char *value = getenv(name);
        if (value != NULL && silt_row_set(&silt_rows[i], c, value, e) < 0)
            return silt_because(e, "environment variable %s", name);
    }
    return 0;
}

/* The flags */

/* The part after the prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int set_handover(struct silt_config *c, const char *value, struct silt_error *e)
{
    uint64_t fd;
    if (silt_slice_to_u64(silt_slice_of(value), 3, INT_MAX, &fd, e) < 0)
        return silt_because(e, "--handover");
    c->handover = (int)fd;
    return 0;
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
    else if (strcmp(flag, "--manual") == 0)
        c->manual = true;
    else if (strcmp(flag, "--reload") == 0)
        c->reload = true;
    else if (strcmp(flag, "--check") == 0)
        c->check = true;
    else if (after(flag, "--handover=") != NULL)
        return set_handover(c, equals + 1, e);
    else if (name == NULL)
        return silt_fail(e, SILT_INVALID, "flags look like --name=value, not %s", flag);
    else if (equals == NULL && silt_row_find(silt_slice_of(name)) != NULL)
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

/* Open files: siltd and silt-super hold up to four per sandbox, siltd one per connection,
 * silt-preview two (the client's and the one to the sandbox). */

enum { FILES_OF_SANDBOX = 4, FILES_BASE = 4096, FILES_START = 2048 };

uint64_t silt_config_files_least(const struct silt_config *c)
{
    uint64_t locks = c->ids_count / 256; /* held by silt-super, one per block of ids */
    return FILES_START + locks + (uint64_t)c->pool_sandboxes * FILES_OF_SANDBOX;
}

uint64_t silt_config_files_most(const struct silt_config *c)
{
    uint64_t api = (uint64_t)c->ids_count * FILES_OF_SANDBOX + c->http_connections + FILES_BASE;
    uint64_t previews = (uint64_t)c->preview_connections_all * 2 + FILES_BASE;
    return api < previews ? previews : api;
}

/* Checks across rows */

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
    /* The last block stays unused: it ends in (uid_t)-1, which is not an id, and no range overflows
     * into it. */
    if (c->ids_base + ids > 0xff000000)
        return silt_fail(e, SILT_INVALID, "setting ids.count: %u sandboxes from id %u pass 2^32",
                         c->ids_count, c->ids_base);
    if (overlap(c->ids_base, ids, c->ids_images, SILT_CONFIG_SLOT_IDS))
        return silt_fail(e, SILT_INVALID, "setting ids.images: lies in the range of the sandboxes");
    return 0;
}

static int check_fronts(const struct silt_config *c, struct silt_error *e)
{
    struct silt_ip_prefix_list ignored;
    if (silt_ip_prefix_list_parse(silt_slice_of(c->fronts), &ignored, e) < 0)
        return silt_because(e, "setting fronts");
    return 0;
}

static int check(struct silt_config *c, struct silt_error *e)
{
    for (const char *p = c->instance; *p != 0; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')))
            return silt_fail(e, SILT_INVALID, "setting instance: only a-z and 0-9, not %s",
                             c->instance);
    char spelled[SILT_REFERENCE_SIZE];
    if (silt_reference_read(silt_slice_of(c->image), spelled, e) < 0)
        return silt_because(e, "setting image");
    if (c->images[0] == 0) {
        int n = snprintf(c->images, sizeof(c->images), "%s/images", c->state);
        if (n < 0 || (size_t)n >= sizeof(c->images))
            return silt_fail(e, SILT_INVALID, "setting state: path too long");
    }
    if ((c->preview_certificate[0] == 0) != (c->preview_key[0] == 0))
        return silt_fail(e, SILT_INVALID,
                         "settings preview.certificate and preview.key: one without the other");
    return check_fronts(c, e) < 0 ? -1 : check_ids(c, e);
}

int silt_config_load(int argc, char **argv, struct silt_config *ret, struct silt_error *e)
{
    const char *file = named_file(argc, argv);
    bool must = file != NULL;
    set_defaults(ret);
    if (!must)
        file = SILT_ROW_DEFAULT_FILE;
    if (file[0] != 0 && load_file(ret, file, must, e) < 0)
        return -1;
    if (load_environment(ret, e) < 0 || load_flags(argc, argv, ret, e) < 0)
        return -1;
    return check(ret, e);
}

/* Names and addresses of loopback, with or without a port. */
static bool is_local(const char *domain)
{
    silt_slice name = {domain, strcspn(domain, domain[0] == '[' ? "]" : ":")};
    silt_slice local = SILT_LIT(".localhost");
    bool below = name.len >= local.len
                 && silt_slice_eq((silt_slice){name.data + name.len - local.len, local.len}, local);
    return below || silt_slice_eq(name, SILT_LIT("localhost"))
           || silt_slice_eq(name, SILT_LIT("[::1")) || silt_slice_starts(name, SILT_LIT("127."));
}

bool silt_config_previews_https(const struct silt_config *c)
{
    if (strcmp(c->preview_scheme, "auto") == 0)
        return c->preview_certificate[0] != 0 || !is_local(c->preview_domain);
    return strcmp(c->preview_scheme, "https") == 0;
}
