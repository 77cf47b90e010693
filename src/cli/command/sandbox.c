/* SPDX-License-Identifier: Apache-2.0 */
/* silt ls, info, rm: lists sandboxes, shows one in detail, removes some. */
#include "base/id.h"
#include "base/own.h"
#include "cli/core/cli.h"

enum { PAGE = 200, PATH_SIZE = 4096, ID_WIDTH = 28, IMAGE_WIDTH = 12, FULL_PERCENT = 90 };

/* A table cell; a longer text is not cut. */
static void print_cell(int width, silt_slice text)
{
    (void)printf("%-*.*s ", width, (int)text.len, text.data);
}

static silt_slice to_seconds(silt_slice iso)
{
    return (silt_slice){iso.data, iso.len < 19 ? iso.len : 19};
}

struct listing {
    struct silt_cli cli;
    struct silt_words labels;
    struct silt_buf json; /* with --json */
    size_t count;
    bool quiet, all;
    int id_width, image_width;
};

static silt_slice image_of(const struct silt_json *s)
{
    return silt_cli_text(silt_json_get(s, SILT_LIT("image")), "name");
}

/* Lists have no usage: the daemon would have to ask each sandbox. */
static void print_row(const struct listing *l, const struct silt_json *s)
{
    silt_slice type = silt_cli_text(s, "type");
    print_cell(l->id_width, silt_cli_text(s, "id"));
    print_cell(8, silt_cli_text(s, "state"));
    print_cell(l->image_width, image_of(s));
    print_cell(11, type.len > 0 ? type : SILT_LIT("own limits"));
    print_cell(20, to_seconds(silt_cli_text(s, "createdAt")));
    silt_slice used = to_seconds(silt_cli_text(s, "lastUsedAt"));
    (void)printf("%.*s\n", (int)used.len, used.data);
}

static int page_path(char out[PATH_SIZE], const struct silt_words *labels, silt_slice after,
                     struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, PATH_SIZE);
    silt_buf_addf(&b, "/v1/sandboxes?limit=%d", PAGE);
    if (after.len > 0)
        silt_buf_addf(&b, "&after=%.*s", (int)after.len, after.data);
    for (size_t i = 0; i < labels->count; i++) {
        char part[PATH_SIZE];
        if (silt_cli_path(part, sizeof(part), "&label=", labels->items[i], "", e) < 0)
            return -1;
        silt_buf_add(&b, silt_slice_of(part));
    }
    if (b.broken)
        return silt_fail(e, SILT_INVALID, "labels too long");
    return silt_slice_to_cstr(silt_buf_slice(&b), out, PATH_SIZE, e);
}

/* The name of a container of the engine socket, because its sandbox id means nothing to a reader.
 */
static void print_container(const struct silt_json *s)
{
    const struct silt_json *labels = silt_json_get(s, SILT_LIT("labels"));
    silt_slice name = silt_cli_text(labels, "silt.container"),
               class = silt_cli_text(labels, "silt.class");
    if (name.len == 0)
        return;
    (void)printf("    container ");
    silt_cli_print(name);
    if (class.len > 0) {
        (void)printf("\n    class ");
        silt_cli_print(class);
        (void)printf(", object ");
        silt_cli_print(silt_cli_text(labels, "silt.object"));
    }
    (void)putchar('\n');
}

static void measure(struct listing *l, const struct silt_json *sandboxes)
{
    l->id_width = l->id_width > 0 ? l->id_width : ID_WIDTH;
    l->image_width = l->image_width > 0 ? l->image_width : IMAGE_WIDTH;
    for (const struct silt_json *s = sandboxes->items.first; s != NULL; s = s->next) {
        l->id_width = silt_cli_widen(l->id_width, silt_cli_text(s, "id"));
        l->image_width = silt_cli_widen(l->image_width, image_of(s));
    }
}

static void show_page(struct listing *l, const struct silt_json *sandboxes)
{
    if (sandboxes == NULL || sandboxes->type != SILT_JSON_ARRAY)
        return;
    measure(l, sandboxes);
    for (const struct silt_json *s = sandboxes->items.first; s != NULL; s = s->next) {
        if (l->quiet) {
            silt_cli_print(silt_cli_text(s, "id"));
            (void)putchar('\n');
            l->count++;
            continue;
        }
        if (!l->cli.json && l->count == 0)
            (void)printf("%-*s %-8s %-*s %-11s %-20s %s\n", l->id_width, "ID", "STATE",
                         l->image_width, "IMAGE", "TYPE", "CREATED (UTC)", "LAST USED (UTC)");
        if (l->cli.json)
            silt_cli_write(&l->json, s);
        else
            print_row(l, s);
        if (!l->cli.json)
            print_container(s);
        l->count++;
    }
}

static int list_pages(struct listing *l, struct silt_client *c, struct silt_error *e)
{
    char path[PATH_SIZE], after[SILT_CLIENT_ADDRESS_SIZE] = "";
    do {
        silt_auto_arena a;
        const struct silt_json *answer;
        silt_arena_init(&a, SILT_CLI_ARENA_MAX);
        if (page_path(path, &l->labels, silt_slice_of(after), e) < 0)
            return -1;
        struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
        if (silt_client_call(c, &q, &a, &answer, e) < 0)
            return -1;
        show_page(l, silt_json_get(answer, SILT_LIT("sandboxes")));
        if (silt_slice_to_cstr(silt_cli_text(answer, "next"), after, sizeof(after), e) < 0)
            return -1;
    } while (after[0] != 0);
    return 0;
}

static int list(struct listing *l, struct silt_client *c, struct silt_error *e)
{
    silt_buf_init(&l->json, SILT_CLI_ARENA_MAX);
    silt_json_open(&l->json, '[');
    if (list_pages(l, c, e) < 0)
        return -1;
    silt_json_close(&l->json, ']');
    if (l->cli.json)
        (void)printf("%.*s\n", (int)l->json.len, l->json.data);
    else if (l->count == 0 && !l->quiet)
        (void)fputs("silt: no sandboxes yet: silt exec my-sandbox -- uname -a\n", stderr);
    return 0;
}

int silt_cli_ls(int argc, char **argv)
{
    static struct listing l;
    static struct silt_client client;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "label", .words = &l.labels},
                                      {.name = "quiet", .letter = 'q', .flag = &l.quiet},
                                      {.name = "all", .letter = 'a', .flag = &l.all}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&l.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (l.cli.plain.count > 0)
        return silt_cli_usage();
    if (silt_client_init(&client, l.cli.server, l.cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = list(&l, &client, &e);
    silt_buf_fini(&l.json);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}

/* info */

static void print_line(const char *name, silt_slice value)
{
    if (value.len == 0)
        return;
    (void)printf("%-13s ", name);
    silt_cli_print(value);
    (void)putchar('\n');
}

static void print_usage(const char *name, int64_t used, int64_t limit)
{
    char a[SILT_CLI_SIZE_TEXT], b[SILT_CLI_SIZE_TEXT];
    (void)printf("%-13s %s of %s\n", name, silt_cli_size(used, a), silt_cli_size(limit, b));
}

static void print_limits(const struct silt_json *s)
{
    const struct silt_json *limits = silt_json_get(s, SILT_LIT("limits"));
    const struct silt_json *usage = silt_json_get(s, SILT_LIT("usage"));
    char peak[SILT_CLI_SIZE_TEXT];
    const struct silt_json *cpu = silt_json_get(limits, SILT_LIT("cpu"));
    if (cpu != NULL && cpu->type == SILT_JSON_NULL)
        (void)printf("%-13s no ceiling", "cpu");
    else
        (void)printf("%-13s %.4g cores", "cpu", silt_cli_real(limits, "cpu"));
    (void)printf(", %.3f s used\n", (double)silt_cli_number(usage, "cpuMs") / 1000);
    print_usage("memory", silt_cli_number(usage, "memoryBytes"),
                silt_cli_number(limits, "memoryMiB") << 20);
    (void)printf("%-13s %s\n", "memory peak",
                 silt_cli_size(silt_cli_number(usage, "memoryPeakBytes"), peak));
    (void)printf("%-13s %lld of %lld\n", "processes", (long long)silt_cli_number(usage, "pids"),
                 (long long)silt_cli_number(limits, "pids"));
    if (silt_cli_number(usage, "pids") * 100 >= silt_cli_number(limits, "pids") * FULL_PERCENT)
        (void)printf(
            "%-13s pids: nearly no process more is allowed; silt kill %.*s --all ends them\n",
            "full", (int)silt_cli_text(s, "id").len, silt_cli_text(s, "id").data);
    print_usage("disk", silt_cli_number(usage, "diskBytes"),
                silt_cli_number(limits, "diskMiB") << 20);
}

static void print_labels(const struct silt_json *labels)
{
    if (labels == NULL || labels->type != SILT_JSON_OBJECT)
        return;
    for (const struct silt_json *l = labels->items.first; l != NULL; l = l->next) {
        if (l->type != SILT_JSON_STRING)
            continue;
        (void)printf("%-13s ", "label");
        silt_cli_print(l->key);
        (void)putchar('=');
        silt_cli_print(l->string);
        (void)putchar('\n');
    }
}

static void print_death(const struct silt_json *death)
{
    if (death == NULL || death->type != SILT_JSON_OBJECT)
        return;
    (void)printf("%-13s ", "last death");
    silt_cli_print(silt_cli_text(death, "cause"));
    (void)fputs(" at ", stdout);
    silt_cli_print(silt_cli_text(death, "at"));
    (void)fputs(": ", stdout);
    silt_cli_print(silt_cli_text(death, "message"));
    (void)putchar('\n');
}

static void print_sandbox(const struct silt_json *s)
{
    const struct silt_json *image = silt_json_get(s, SILT_LIT("image"));
    silt_slice digest = silt_cli_text(image, "digest"), name = silt_cli_text(image, "name");
    print_line("id", silt_cli_text(s, "id"));
    print_line("state", silt_cli_text(s, "state"));
    print_line("since", silt_cli_text(s, "stateSince"));
    print_line("reason", silt_cli_text(s, "stateReason"));
    (void)printf("%-13s %.*s (%.*s)\n", "image", (int)name.len, name.data,
                 (int)(digest.len < 19 ? digest.len : 19), digest.data);
    print_line("type", silt_cli_text(s, "type"));
    print_line("hostname", silt_cli_text(s, "hostname"));
    print_limits(s);
    print_line("incarnation", silt_cli_text(s, "incarnation"));
    print_line("created", silt_cli_text(s, "createdAt"));
    print_line("started", silt_cli_text(s, "startedAt"));
    print_line("last used", silt_cli_text(s, "lastUsedAt"));
    if (silt_cli_real(s, "sleepAfter") > 0)
        (void)printf("%-13s %.4g s\n", "sleep after", silt_cli_real(s, "sleepAfter"));
    if (silt_cli_true(s, "ephemeral"))
        print_line("ephemeral", SILT_LIT("yes"));
    print_labels(silt_json_get(s, SILT_LIT("labels")));
    print_death(silt_json_get(s, SILT_LIT("lastDeath")));
}

static int call_one(struct silt_client *c, const char *method, const char *id, struct silt_arena *a,
                    const struct silt_json **ret, struct silt_error *e)
{
    char path[PATH_SIZE];
    if (silt_id_check(silt_slice_of(id), e) < 0
        || silt_cli_path(path, sizeof(path), "/v1/sandboxes/", id, "", e) < 0)
        return -1;
    struct silt_client_request q = {.method = method, .path = path, .file = -1};
    return silt_client_call(c, &q, a, ret, e);
}

int silt_cli_info(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    const struct silt_json *answer = NULL;
    struct silt_error e;
    silt_auto_arena a;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1)
        return silt_cli_usage();
    int got = silt_client_init(&client, cli.server, cli.token_file, &e);
    if (got == 0)
        got = call_one(&client, "GET", cli.plain.items[0], &a, &answer, &e);
    silt_client_fini(&client);
    if (got < 0)
        return silt_cli_fail(&e);
    if (cli.json)
        silt_cli_print_json(answer);
    else
        print_sandbox(answer);
    return EXIT_SUCCESS;
}

/* rm */

struct removal {
    struct silt_cli cli;
    bool force, all;
    size_t count;
};

static int remove_one(const struct removal *x, struct silt_client *c, const char *id,
                      struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    if (call_one(c, "DELETE", id, &a, &answer, e) < 0)
        return -1;
    if (!silt_cli_true(answer, "destroyed") && !x->force)
        return silt_fail(e, SILT_NOT_FOUND, "no sandbox %s", id);
    if (silt_cli_true(answer, "destroyed"))
        (void)puts(id);
    return 0;
}

/* The ids of all sandboxes, one per line, taken before the first is destroyed. */
static int list_ids(struct silt_client *c, struct silt_buf *ret, size_t *ret_count,
                    struct silt_error *e)
{
    const struct silt_words no_labels = {.count = 0};
    char path[PATH_SIZE], after[SILT_CLIENT_ADDRESS_SIZE] = "";
    do {
        silt_auto_arena a;
        const struct silt_json *answer;
        silt_arena_init(&a, SILT_CLI_ARENA_MAX);
        if (page_path(path, &no_labels, silt_slice_of(after), e) < 0)
            return -1;
        struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
        if (silt_client_call(c, &q, &a, &answer, e) < 0)
            return -1;
        const struct silt_json *list = silt_json_get(answer, SILT_LIT("sandboxes"));
        for (const struct silt_json *s = list != NULL ? list->items.first : NULL; s != NULL;
             s = s->next, ++*ret_count)
            silt_buf_addf(ret, "%.*s\n", (int)silt_cli_text(s, "id").len,
                          silt_cli_text(s, "id").data);
        if (silt_slice_to_cstr(silt_cli_text(answer, "next"), after, sizeof(after), e) < 0)
            return -1;
    } while (after[0] != 0);
    return ret->broken ? silt_fail(e, SILT_LIMIT, "too many sandboxes") : 0;
}

/* Whether the user says yes. */
static int ask(size_t count, struct silt_error *e)
{
    char answer[16] = "";
    if (isatty(STDIN_FILENO) != 1)
        return silt_fail(e, SILT_INVALID, "%zu sandboxes with their files\nTry: silt rm --all -f",
                         count);
    (void)fprintf(stderr, "Destroy %zu sandboxes and their files? [y/N] ", count);
    if (fgets(answer, sizeof(answer), stdin) == NULL || (answer[0] != 'y' && answer[0] != 'Y'))
        return silt_fail(e, SILT_INVALID, "nothing was destroyed");
    return 0;
}

static int remove_all(const struct removal *x, struct silt_client *c, int *ret_status,
                      struct silt_error *e)
{
    silt_auto_buf ids;
    size_t count = 0;
    silt_buf_init(&ids, SILT_CLI_ARENA_MAX);
    if (list_ids(c, &ids, &count, e) < 0 || (count > 0 && !x->force && ask(count, e) < 0))
        return -1;
    silt_slice rest = silt_buf_slice(&ids), one;
    while (silt_slice_split(&rest, '\n', &one) && one.len > 0) {
        char id[SILT_ID_MAX + 1];
        struct silt_error why;
        if (silt_slice_to_cstr(one, id, sizeof(id), &why) < 0 || remove_one(x, c, id, &why) < 0)
            *ret_status = silt_cli_fail(&why);
    }
    return 0;
}

int silt_cli_rm(int argc, char **argv)
{
    static struct removal x;
    static struct silt_client client;
    struct silt_error e;
    int status = EXIT_SUCCESS;
    const struct silt_option own[] = {{.name = "force", .letter = 'f', .flag = &x.force},
                                      {.name = "all", .flag = &x.all}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&x.cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (x.all != (x.cli.plain.count == 0))
        return silt_cli_usage();
    if (silt_client_init(&client, x.cli.server, x.cli.token_file, &e) < 0
        || (x.all && remove_all(&x, &client, &status, &e) < 0))
        return silt_cli_fail(&e);
    for (size_t i = 0; i < x.cli.plain.count; i++)
        if (remove_one(&x, &client, x.cli.plain.items[i], &e) < 0)
            status = silt_cli_fail(&e);
    silt_client_fini(&client);
    return status;
}
