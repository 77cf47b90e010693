/* SPDX-License-Identifier: Apache-2.0 */
/* silt net: what a sandbox may reach, how much it did, and the change of it. */
#include "base/own.h"
#include "cli/cli.h"
#include "json/json.h"

enum { PATH_SIZE = 1024, BODY_SIZE = 256 };

static void print_traffic(const char *name, const struct silt_json *c, const char *bytes,
                          const char *packets)
{
    char size[SILT_CLI_SIZE_TEXT];
    (void)printf("%-10s %s in %lld packets\n", name, silt_cli_size(silt_cli_number(c, bytes), size),
                 (long long)silt_cli_number(c, packets));
}

static void print_network(const struct silt_json *n)
{
    const struct silt_json *c = silt_json_get(n, SILT_LIT("counters"));
    (void)printf("%-10s ", "mode");
    silt_cli_print(silt_cli_text(n, "mode"));
    (void)printf("%s\n", silt_cli_true(n, "connected") ? "" : " (not connected)");
    if (c == NULL || c->type != SILT_JSON_OBJECT)
        return;
    print_traffic("sent", c, "sentBytes", "sentPackets");
    print_traffic("received", c, "receivedBytes", "receivedPackets");
}

static int show(const struct silt_cli *cli, const char *mode, struct silt_client *c,
                struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_arena a;
    silt_auto_buf body;
    const struct silt_json *answer;
    silt_arena_init(&a, SILT_CLI_ARENA_MAX);
    silt_buf_init(&body, BODY_SIZE);
    if (silt_cli_path(path, sizeof(path), "/v1/sandboxes/", cli->plain.items[0], "/network", e) < 0)
        return -1;
    struct silt_client_request q = {.method = "GET", .path = path, .file = -1};
    if (mode != NULL) {
        silt_json_open(&body, '{');
        silt_json_key(&body, SILT_LIT("mode"));
        silt_json_string(&body, silt_slice_of(mode));
        silt_json_close(&body, '}');
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
    struct silt_error e;
    const char *mode = NULL;
    const struct silt_option own[] = {{.name = "mode", .value = &mode}};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1)
        return silt_cli_usage("silt net ID [--mode none|public] [--json]");
    if (silt_client_init(&client, cli.server, cli.token_file, &e) < 0)
        return silt_cli_fail(&e);
    int got = show(&cli, mode, &client, &e);
    silt_client_fini(&client);
    return got < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
