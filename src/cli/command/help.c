/* SPDX-License-Identifier: Apache-2.0 */
/* silt help, version, token. */
#include "base/own.h"
#include "cli/core/cli.h"
#include "cli/core/find.h"
#include "cli/core/help.h"

int silt_cli_help(int argc, char **argv)
{
    struct silt_error e;
    int words;
    if (argc == 0) {
        silt_help_all();
        return EXIT_SUCCESS;
    }
    const struct silt_table_row *row = silt_table_find(argc, argv, &words);
    if (row == NULL)
        return silt_cli_no_command(argv[0]);
    silt_slice name = silt_slice_of(argv[0]);
    bool verbs =
        silt_table_has_verbs(row) && words == 1 && silt_slice_eq(name, silt_table_command(row));
    if (verbs && argc > 1) {
        (void)silt_fail(&e, SILT_INVALID, "silt %s has no %s\nTry: silt help %s", argv[0], argv[1],
                        argv[0]);
        return silt_cli_fail(&e);
    }
    silt_help_row(row, verbs);
    return EXIT_SUCCESS;
}

int silt_cli_version(int argc, char **argv)
{
    static struct silt_cli cli;
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count > 0)
        return silt_cli_usage();
    (void)puts("silt " SILT_VERSION);
    return EXIT_SUCCESS;
}

int silt_cli_token(int argc, char **argv)
{
    static struct silt_cli cli;
    const struct silt_config *config;
    char token[SILT_CLIENT_TOKEN_SIZE];
    struct silt_error e;
    if (silt_cli_parse(&cli, NULL, argc, argv, &e) < 0 || silt_find_config(&config, &e) < 0
        || silt_find_token(cli.token_file, token, &e) < 0)
        return silt_cli_fail(&e);
    if (token[0] == 0) {
        (void)silt_fail(&e, SILT_DENIED, "no token: %s cannot be read\nTry: sudo silt token",
                        config->token_file);
        return silt_cli_fail(&e);
    }
    (void)puts(token);
    return EXIT_SUCCESS;
}
