/* SPDX-License-Identifier: Apache-2.0 */
/* silt stats and df: what sandboxes use now, and what they and images take of the disk. */
#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/wait.h"

enum { ROWS_MAX = 1000, PATH_SIZE = 1024, ROUND_MS = 1000, ID_WIDTH = 20, METRICS_MAX = 4 << 20 };

struct row {
    char id[SILT_ID_MAX + 1], state[16];
    int64_t cpu_ms, before_ms; /* used until now; in the round before, or -1 */
    int64_t memory, memory_max, pids, pids_max, disk, disk_max;
};

struct table {
    struct silt_cli cli;
    bool once;
    struct row rows[ROWS_MAX];
    size_t count, more; /* more: left out */
    int64_t taken_ms, before_ms;
};

/* GET of a path as JSON. */
static int get(struct silt_client *c, const char *path, struct silt_arena *a,
               const struct silt_json **ret, struct silt_error *e)
{
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    return silt_client_call(c, &q, a, ret, e);
}

static void fill(struct row *r, const struct silt_json *s)
{
    const struct silt_json *usage = silt_json_get(s, SILT_LIT("usage")),
                           *limits = silt_json_get(s, SILT_LIT("limits"));
    struct silt_error e;
    if (silt_slice_to_cstr(silt_cli_text(s, "state"), r->state, sizeof(r->state), &e) < 0)
        r->state[0] = 0;
    r->cpu_ms = silt_cli_number(usage, "cpuMs");
    r->memory = silt_cli_number(usage, "memoryBytes");
    r->memory_max = silt_cli_number(limits, "memoryMiB") << 20;
    r->pids = silt_cli_number(usage, "pids");
    r->pids_max = silt_cli_number(limits, "pids");
    r->disk = silt_cli_number(usage, "diskBytes");
    r->disk_max = silt_cli_number(limits, "diskMiB") << 20;
}

static int add_id(struct table *t, silt_slice id, struct silt_error *e)
{
    if (t->count == ROWS_MAX) {
        t->more++;
        return 0;
    }
    struct row *r = &t->rows[t->count];
    *r = (struct row){.before_ms = -1};
    if (silt_slice_to_cstr(id, r->id, sizeof(r->id), e) < 0)
        return -1;
    t->count++;
    return 0;
}

/* Every sandbox, page by page. */
static int list(struct table *t, struct silt_client *c, struct silt_error *e)
{
    char path[PATH_SIZE] = "/v1/sandboxes?limit=200", after[SILT_ID_MAX + 1] = "";
    do {
        silt_auto_arena a;
        const struct silt_json *answer;
        silt_arena_init(&a, SILT_CLI_ARENA_MAX);
        if (after[0] != 0
            && silt_cli_path(path, sizeof(path), "/v1/sandboxes?limit=200&after=", after, "", e)
                   < 0)
            return -1;
        if (get(c, path, &a, &answer, e) < 0)
            return -1;
        const struct silt_json *list = silt_json_get(answer, SILT_LIT("sandboxes"));
        bool good = list != NULL && list->type == SILT_JSON_ARRAY;
        for (const struct silt_json *s = good ? list->items.first : NULL; s != NULL; s = s->next)
            if (add_id(t, silt_cli_text(s, "id"), e) < 0)
                return -1;
        if (silt_slice_to_cstr(silt_cli_text(answer, "next"), after, sizeof(after), e) < 0)
            return -1;
    } while (after[0] != 0);
    return 0;
}

static int look_at(struct row *r, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    char path[PATH_SIZE];
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_id_check(silt_slice_of(r->id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", r->id, "", e) < 0
        || get(c, path, &a, &answer, e) < 0)
        return -1;
    fill(r, answer);
    return 0;
}

/* What each used before, so that a rate can be told. Ids may come and go between two rounds. */
static void remember(struct table *t, const struct table *before)
{
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < before->count; j++)
            if (strcmp(t->rows[i].id, before->rows[j].id) == 0)
                t->rows[i].before_ms = before->rows[j].cpu_ms;
    t->before_ms = before->taken_ms;
}

static int measure(struct table *t, struct silt_client *c, struct silt_error *e)
{
    static struct table before;
    const struct silt_words *w = &t->cli.plain;
    before = *t;
    t->count = t->more = 0;
    for (size_t i = 0; i < w->count; i++)
        if (silt_id_check(silt_slice_of(w->items[i]), e) < 0
            || add_id(t, silt_slice_of(w->items[i]), e) < 0)
            return -1;
    if (w->count == 0 && list(t, c, e) < 0)
        return -1;
    t->taken_ms = silt_clock_ms();
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (look_at(&t->rows[i], c, e) == 0)
            t->rows[kept++] = t->rows[i];
        else if (e->code != SILT_NOT_FOUND || w->count > 0)
            return -1; /* one of a list may be destroyed meanwhile */
    }
    t->count = kept;
    remember(t, &before);
    return 0;
}

/* Of one core; -1: not known yet. */
static double share(const struct table *t, const struct row *r)
{
    int64_t ms = t->taken_ms - t->before_ms;
    if (r->before_ms < 0 || ms <= 0 || r->cpu_ms < r->before_ms)
        return r->before_ms < 0 ? -1 : 0;
    return 100.0 * (double)(r->cpu_ms - r->before_ms) / (double)ms;
}

static void print_rows(const struct table *t)
{
    int width = ID_WIDTH;
    for (size_t i = 0; i < t->count; i++)
        width = silt_cli_widen(width, silt_slice_of(t->rows[i].id));
    (void)printf("%-*s %-8s %7s  %10s / %-10s %11s  %10s / %s\n", width, "ID", "STATE", "CPU",
                 "MEMORY", "LIMIT", "PROCESSES", "DISK", "LIMIT");
    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->rows[i];
        char text[4][SILT_CLI_SIZE_TEXT], cpu[16] = "-", pids[32];
        if (share(t, r) >= 0)
            (void)snprintf(cpu, sizeof(cpu), "%.1f %%", share(t, r));
        (void)snprintf(pids, sizeof(pids), "%lld / %lld", (long long)r->pids,
                       (long long)r->pids_max);
        (void)printf("%-*s %-8s %7s  %10s / %-10s %11s  %10s / %s\n", width, r->id, r->state, cpu,
                     silt_cli_size(r->memory, text[0]), silt_cli_size(r->memory_max, text[1]), pids,
                     silt_cli_size(r->disk, text[2]), silt_cli_size(r->disk_max, text[3]));
    }
    if (t->more > 0)
        (void)fprintf(stderr, "silt: %zu more are left out\n", t->more);
}

static void print_json(const struct table *t)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_CLI_ARENA_MAX);
    silt_json_open(&b, '[');
    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->rows[i];
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("id"));
        silt_json_string(&b, silt_slice_of(r->id));
        silt_json_key(&b, SILT_LIT("state"));
        silt_json_string(&b, silt_slice_of(r->state));
        silt_json_key(&b, SILT_LIT("cpuPercent"));
        if (share(t, r) < 0)
            silt_json_null(&b);
        else
            silt_json_double(&b, share(t, r));
        const struct {
            const char *key;
            int64_t value;
        } numbers[] = {{"cpuMs", r->cpu_ms},
                       {"memoryBytes", r->memory},
                       {"memoryLimitBytes", r->memory_max},
                       {"pids", r->pids},
                       {"pidsLimit", r->pids_max},
                       {"diskBytes", r->disk},
                       {"diskLimitBytes", r->disk_max}};
        for (size_t k = 0; k < SILT_COUNT(numbers); k++) {
            silt_json_key(&b, silt_slice_of(numbers[k].key));
            silt_json_i64(&b, numbers[k].value);
        }
        silt_json_close(&b, '}');
    }
    silt_json_close(&b, ']');
    (void)printf("%.*s\n", (int)b.len, b.data);
}

static int pause_a_round(struct silt_error *e)
{
    short ready;
    return silt_wait_for(-1, 0, ROUND_MS, &ready, e) < 0 && e->code != SILT_TIMEOUT ? -1 : 0;
}

/* Two looks make the first rate. */
static int watch(struct table *t, struct silt_client *c, struct silt_error *e)
{
    bool live = !t->once && isatty(STDOUT_FILENO) == 1;
    if (measure(t, c, e) < 0)
        return -1;
    do {
        if (pause_a_round(e) < 0 || measure(t, c, e) < 0)
            return -1;
        if (live)
            (void)fputs("\033[H\033[2J", stdout);
        if (t->cli.json)
            print_json(t);
        else
            print_rows(t);
        (void)fflush(stdout);
    } while (live);
    return 0;
}

int silt_cli_stats(int argc, char **argv)
{
    static struct table t;
    static struct silt_client client;
    struct silt_error e = {0};
    const struct silt_option own[] = {{.name = "no-stream", .flag = &t.once}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&t.cli, &options, argc, argv, &e) < 0
        || silt_client_init(&client, t.cli.server, t.cli.token_file, &e) < 0
        || silt_wait_catch_interrupt(&e) < 0)
        return silt_cli_fail(&e);
    int got = watch(&t, &client, &e);
    silt_client_fini(&client);
    if (got < 0 && e.code == SILT_INTERRUPTED)
        return EXIT_SUCCESS; /* the only way out */
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

/* df */

struct sums {
    int64_t sandboxes, sandbox_bytes, images, image_bytes, pool, pool_max, left;
};

/* Several names may stand for one image. */
static int sum_images(struct sums *s, struct silt_client *c, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (get(c, "/v1/images", &a, &answer, e) < 0)
        return -1;
    const struct silt_json *list = silt_json_get(answer, SILT_LIT("images"));
    bool good = list != NULL && list->type == SILT_JSON_ARRAY;
    for (const struct silt_json *i = good ? list->items.first : NULL; i != NULL; i = i->next) {
        bool again = false;
        for (const struct silt_json *j = list->items.first; j != i; j = j->next)
            again = again || silt_slice_eq(silt_cli_text(i, "digest"), silt_cli_text(j, "digest"));
        s->images += !again;
        s->image_bytes += again ? 0 : silt_cli_number(i, "sizeBytes");
    }
    return 0;
}

static int64_t metric(silt_slice text, const char *name)
{
    silt_slice line, key = silt_slice_of(name);
    struct silt_error e;
    uint64_t value;
    while (silt_slice_split(&text, '\n', &line))
        if (silt_slice_starts(line, key) && line.len > key.len && line.data[key.len] == ' ') {
            silt_slice number = {line.data + key.len + 1, line.len - key.len - 1};
            return silt_slice_to_u64(number, 0, INT64_MAX, &value, &e) == 0 ? (int64_t)value : 0;
        }
    return 0;
}

static int read_pool(struct sums *s, struct silt_client *c, struct silt_error *e)
{
    silt_auto_buf text;
    silt_slice piece;
    int got;
    struct silt_client_request q = {.method = "GET", .path = "/metrics", .file = -1};
    silt_buf_init(&text, METRICS_MAX);
    if (silt_client_ask(c, &q, e) < 0)
        return -1;
    if (c->head.status != 200)
        return silt_client_fail(c, e);
    while ((got = silt_client_read(c, &piece, e)) > 0)
        silt_buf_add(&text, piece);
    s->pool = metric(silt_buf_slice(&text), "silt_pool_bytes");
    s->pool_max = metric(silt_buf_slice(&text), "silt_pool_max_bytes");
    s->left = metric(silt_buf_slice(&text), "silt_pool_left_bytes");
    return got;
}

static int add_up(struct sums *s, struct silt_client *c, struct silt_error *e)
{
    static struct table t;
    if (measure(&t, c, e) < 0 || sum_images(s, c, e) < 0 || read_pool(s, c, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++)
        s->sandbox_bytes += t.rows[i].disk;
    s->sandboxes = (int64_t)t.count;
    if (t.more > 0)
        (void)fprintf(stderr, "silt: %zu more sandboxes are left out\n", t.more);
    return 0;
}

static void print_sums(const struct sums *s)
{
    char text[SILT_CLI_SIZE_TEXT];
    (void)printf("%-16s %7s  %10s\n", "WHAT", "COUNT", "SIZE");
    (void)printf("%-16s %7lld  %10s\n", "sandboxes", (long long)s->sandboxes,
                 silt_cli_size(s->sandbox_bytes, text));
    (void)printf("%-16s %7lld  %10s\n", "images", (long long)s->images,
                 silt_cli_size(s->image_bytes, text));
    if (s->pool == 0)
        return;
    (void)printf("%-16s %7s  %10s\n", "disk pool", "", silt_cli_size(s->pool, text));
    (void)printf("%-16s %7s  %10s\n", "  may grow to", "", silt_cli_size(s->pool_max, text));
    (void)printf("%-16s %7s  %10s\n", "  free in it", "", silt_cli_size(s->left, text));
}

static void print_sums_json(const struct sums *s)
{
    (void)printf("{\"sandboxes\":%lld,\"sandboxBytes\":%lld,\"images\":%lld,\"imageBytes\":%lld,"
                 "\"poolBytes\":%lld,\"poolMaxBytes\":%lld,\"poolLeftBytes\":%lld}\n",
                 (long long)s->sandboxes, (long long)s->sandbox_bytes, (long long)s->images,
                 (long long)s->image_bytes, (long long)s->pool, (long long)s->pool_max,
                 (long long)s->left);
}

int silt_cli_df(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    struct sums s = {0};
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count > 0)
        return silt_cli_usage();
    if (silt_client_init(&client, cli.server, cli.token_file, &e) < 0
        || add_up(&s, &client, &e) < 0)
        return silt_cli_fail(&e);
    silt_client_fini(&client);
    if (cli.json)
        print_sums_json(&s);
    else
        print_sums(&s);
    return EXIT_SUCCESS;
}
