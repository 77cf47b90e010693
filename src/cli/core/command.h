/* SPDX-License-Identifier: Apache-2.0 */
/* command: turns the arguments of a command into the JSON that the daemon expects. */
#pragma once

#include "base/buf.h"
#include "cli/core/options.h"

enum { SILT_CLI_COMMAND_MAX = 16 * 1024 * 1024 };

/* One argument is shell text as it stands; several are a command and its arguments, quoted. */
void silt_command_join(const struct silt_words *words, struct silt_buf *ret);
/* One word, quoted for a shell where it needs to be. */
void silt_command_add_quoted(struct silt_buf *b, const char *word);
/* "5s", "1.5m", "200ms", "2h"; a bare number means seconds. `option` is named in the error. */
int silt_command_time(const char *option, const char *text, int64_t *ret_ms, struct silt_error *e);

/* Write a member into an open object; nothing if the value is NULL or the list is empty. */
void silt_command_add_text(struct silt_buf *b, const char *key, const char *value);
int silt_command_add_time(struct silt_buf *b, const char *key, const char *timeout,
                          struct silt_error *e);
/* NAME=VALUE, or NAME alone for a variable of this process. */
int silt_command_variable(const char *word, silt_slice *ret_name, const char **ret_value,
                          struct silt_error *e);
int silt_command_add_env(struct silt_buf *b, const struct silt_words *env, struct silt_error *e);
int silt_command_add_labels(struct silt_buf *b, const struct silt_words *labels,
                            struct silt_error *e);
/* Limits of a sandbox as options: "512M" and "2G" are sizes, a bare number means MiB. */
struct silt_command_limits {
    const char *cpu, *memory, *disk, *pids;
};
int silt_command_add_limits(struct silt_buf *b, const struct silt_command_limits *l,
                            struct silt_error *e);
/* Writes a network policy, an object. Rules without a mode imply mode allow. */
void silt_command_policy(struct silt_buf *b, const char *mode, const struct silt_words *allow);
int silt_command_add_words(struct silt_buf *b, const struct silt_words *words,
                           struct silt_error *e);
