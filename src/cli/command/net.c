/* SPDX-License-Identifier: Apache-2.0 */
/* silt net: shows and changes a sandbox's network policy; shows its traffic and refused
 * connections. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/command.h"
#include "json/json.h"

enum {
    PATH_SIZE = 1024,
    BODY_MAX = 1 << 20,
    DAY = sizeof("2026-01-01") - 1,
    TIME = sizeof("00:00:00") - 1
};

struct wanted {
    const char *mode;        /* NULL: unchanged */
    struct silt_words allow; /* rules */
};

static void print_traffic(const char *name, const struct silt_json *c, const char *bytes,
                          const char *packets)
{
    char size[SILT_CLI_SIZE_TEXT];
    (void)printf("%-12s %s in %lld packets\n", name, silt_cli_size(silt_cli_number(c, bytes), size),
                 (long long)silt_cli_number(c, packets));
}

static void print_counters(const struct silt_json *c)
{
    static const char *const rows[][2] = {{"connections", "connections"},
                                          {"requests", "requests"},
                                          {"questions", "dnsQuestions"},
                                          {"refused", "refused"}};
    print_traffic("sent", c, "sentBytes", "sentPackets");
    print_traffic("received", c, "receivedBytes", "receivedPackets");
    for (size_t i = 0; i < SILT_COUNT(rows); i++)
        (void)printf("%-12s %lld\n", rows[i][0], (long long)silt_cli_number(c, rows[i][1]));
}

static void print_rules(const struct silt_json *allow)
{
    const char *name = "allow";
    if (allow == NULL || allow->type != SILT_JSON_ARRAY)
        return;
    for (const struct silt_json *r = allow->items.first; r != NULL; r = r->next, name = "") {
        (void)printf("%-12s ", name);
        silt_cli_print(r->type == SILT_JSON_STRING ? r->string : SILT_LIT("?"));
        (void)printf("\n");
    }
    if (allow->items.count == 0)
        (void)printf("%-12s nothing\n", name);
}

/* 2026-01-01T00:00:00.000Z without the fraction. */
static void print_time(silt_slice iso)
{
    bool whole = iso.len > DAY + TIME;
    silt_cli_print((silt_slice){iso.data, whole ? DAY : 0});
    (void)printf(" ");
    silt_cli_print((silt_slice){iso.data + (whole ? DAY + 1 : 0), whole ? TIME : 0});
}

static void print_destination(const struct silt_json *r)
{
    silt_slice name = silt_cli_text(r, "name"), address = silt_cli_text(r, "destination");
    int64_t port = silt_cli_number(r, "port");
    bool brackets = port != 0 && name.len == 0 && silt_slice_has_byte(address, ':');
    silt_cli_print(silt_cli_text(r, "protocol"));
    (void)printf(" %s", brackets ? "[" : "");
    silt_cli_print(name.len > 0 ? name : address);
    (void)printf("%s", brackets ? "]" : "");
    if (port != 0)
        (void)printf(":%lld", (long long)port);
    if (name.len == 0 || address.len == 0)
        return;
    (void)printf(" (");
    silt_cli_print(address);
    (void)printf(")");
}

static void print_refusals(const struct silt_json *refused)
{
    if (refused == NULL || refused->type != SILT_JSON_ARRAY || refused->items.count == 0)
        return;
    (void)printf("\nrefused, the latest first:\n");
    for (const struct silt_json *r = refused->items.first; r != NULL; r = r->next) {
        print_time(silt_cli_text(r, "lastAt"));
        (void)printf("  %5lldx  ", (long long)silt_cli_number(r, "count"));
        print_destination(r);
        (void)printf(": ");
        silt_cli_print(silt_cli_text(r, "message"));
        (void)printf("\n");
    }
}

static void print_network(const struct silt_json *n)
{
    const struct silt_json *c = silt_json_get(n, SILT_LIT("counters"));
    (void)printf("%-12s ", "mode");
    silt_cli_print(silt_cli_text(n, "mode"));
    (void)printf("%s\n", silt_cli_true(n, "connected") ? "" : " (not connected)");
    print_rules(silt_json_get(n, SILT_LIT("allow")));
    if (c != NULL && c->type == SILT_JSON_OBJECT)
        print_counters(c);
    print_refusals(silt_json_get(n, SILT_LIT("refused")));
}

static int show(const struct silt_cli *cli, const struct wanted *w, struct silt_client *c,
                struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_arena a;
    silt_auto_buf body;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_MAX);
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", cli->plain.items[0], "/network", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (w->mode != NULL || w->allow.count > 0) {
        silt_command_policy(&body, w->mode, &w->allow);
        if (body.broken)
            return silt_fail(e, SILT_LIMIT, "the rules are longer than %d bytes", BODY_MAX);
        q = silt_client_post(path, silt_buf_slice(&body));
        q.method = "PUT";
    }
    if (silt_client_call(c, &q, &a, &answer, e) < 0)
        return -1;
    if (cli->json)
        silt_cli_print_json(answer);
    else
        print_network(answer);
    return 0;
}

int silt_cli_net(int argc, char **argv)
{
    static struct silt_cli cli;
    static struct silt_client client;
    static struct wanted wanted;
    struct silt_error e;
    const struct silt_option own[] = {{.name = "mode", .value = &wanted.mode},
                                      {.name = "allow", .words = &wanted.allow}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1)
        return silt_cli_usage();
    if (silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = show(&cli, &wanted, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
