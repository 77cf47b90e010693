/* SPDX-License-Identifier: Apache-2.0 */
/* cli: code that the commands of `silt` share. A command is one function that gets the arguments
 * after its name and returns the exit status; its options and arguments are a row of cli/table.c.
 */
#pragma once

#include "cli/core/client.h"
#include "cli/core/options.h"

#include <stdio.h>

enum {
    SILT_EXIT_OWN = 125, /* the error is silt's, not that of the command in the sandbox */
    SILT_EXIT_INTERRUPTED = 130,
    SILT_CLI_ARENA_MAX = 256 * 1024 * 1024,
};

/* Options that every command accepts. */
struct silt_cli {
    const char *server;
    const char *token_file;
    bool json;
    struct silt_words plain; /* arguments that are not options */
    struct silt_words rest;  /* after -- */
};

/* Parses the arguments with the command's own options and the common ones. plain_max as in
 * options.h; 0: unlimited. Zero-initialize the struct. */
int silt_cli_parse(struct silt_cli *cli, const struct silt_options *own, int argc, char **argv,
                   struct silt_error *e);
/* Prints `silt: <message>` and returns SILT_EXIT_OWN. */
int silt_cli_fail(const struct silt_error *e);
/* The same for wrong arguments: the usage of the command that runs, from the table. */
int silt_cli_usage(void);
int silt_cli_misused(struct silt_error *e); /* only fills e; returns -1 */
int silt_cli_no_command(const char *word);  /* the same for a command that is none */

/* Members of a JSON object; a default if the member is missing or has another type. */
silt_slice silt_cli_text(const struct silt_json *object, const char *key); /* "" */
int64_t silt_cli_number(const struct silt_json *object,
                        const char *key);                              /* 0; truncates fractions */
double silt_cli_real(const struct silt_json *object, const char *key); /* 0 */
bool silt_cli_true(const struct silt_json *object, const char *key);   /* false */
int silt_cli_status(const struct silt_json *object); /* exitCode, as our own exit status */
void silt_cli_write(struct silt_buf *out, const struct silt_json *value); /* as JSON again */
void silt_cli_print_json(const struct silt_json *value);                  /* on stdout, one line */

/* Prints text from the daemon on stdout. Control characters, which a terminal might obey, become
 * '?'. */
void silt_cli_print(silt_slice text);

/* Width of a table column, at least `least`. A text longer than the maximum is ignored. */
enum { SILT_CLI_COLUMN_MAX = 60 };
int silt_cli_widen(int least, silt_slice text);

/* 1.5 GiB */
enum { SILT_CLI_SIZE_TEXT = 16 };
const char *silt_cli_size(int64_t bytes, char out[SILT_CLI_SIZE_TEXT]);

/* The path with {id} replaced by the word, percent-encoded. */
int silt_cli_path(char *out, size_t size, const char *before, const char *word, const char *after,
                  struct silt_error *e);

int silt_cli_exec(int argc, char **argv);
int silt_cli_new(int argc, char **argv);
int silt_cli_run(int argc, char **argv);
int silt_cli_shell(int argc, char **argv);
int silt_cli_ps(int argc, char **argv);
int silt_cli_logs(int argc, char **argv);
int silt_cli_kill(int argc, char **argv);
int silt_cli_cp(int argc, char **argv);
int silt_cli_events(int argc, char **argv);
int silt_cli_watch(int argc, char **argv);
int silt_cli_git_clone(int argc, char **argv);
int silt_cli_ls(int argc, char **argv);
int silt_cli_info(int argc, char **argv);
int silt_cli_rm(int argc, char **argv);
int silt_cli_stop(int argc, char **argv);
int silt_cli_start(int argc, char **argv);
int silt_cli_restart(int argc, char **argv);
int silt_cli_pause(int argc, char **argv);
int silt_cli_resume(int argc, char **argv);
int silt_cli_stats(int argc, char **argv);
int silt_cli_df(int argc, char **argv);
int silt_cli_update(int argc, char **argv);
int silt_cli_snapshot(int argc, char **argv);
int silt_cli_rollback(int argc, char **argv);
int silt_cli_history(int argc, char **argv);
int silt_cli_undo(int argc, char **argv);
int silt_cli_fork(int argc, char **argv);
int silt_cli_net(int argc, char **argv);
int silt_cli_expose(int argc, char **argv);
int silt_cli_create(int argc, char **argv);
int silt_cli_unexpose(int argc, char **argv);
int silt_cli_ports(int argc, char **argv);
int silt_cli_open(int argc, char **argv);
int silt_cli_image(int argc, char **argv);
int silt_cli_tls(int argc, char **argv);
int silt_cli_doctor(int argc, char **argv);
int silt_cli_help(int argc, char **argv);
int silt_cli_version(int argc, char **argv);
int silt_cli_login(int argc, char **argv);
int silt_cli_context(int argc, char **argv);
int silt_cli_token(int argc, char **argv);
int silt_cli_completion(int argc, char **argv);
int silt_cli_complete(int argc, char **argv); /* what the scripts of completion call */
