/* SPDX-License-Identifier: Apache-2.0 */
/* find: finds the daemon's address and its token: from an option, the environment (SILT_SERVER,
 * SILT_TOKEN) or the settings of this machine. Also finds image recipes and Silt's own programs. */
#pragma once

#include "cli/core/client.h"
#include "config/config.h"

/* The settings of this machine; the defaults if this user may not read their file. */
int silt_find_config(const struct silt_config **ret, struct silt_error *e);
/* "host:port", "http://host:port", "https://host", the path of a unix socket. */
int silt_find_address(const char *text, char ret[SILT_CLIENT_ADDRESS_SIZE], bool *ret_https,
                      struct silt_error *e);
/* option: such an address, or NULL. */
int silt_find_server(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE], bool *ret_https,
                     struct silt_error *e);
/* What `silt login` stored, unless an address is given. *ret NULL: nothing. */
struct silt_context;
int silt_find_context(const char *server, const struct silt_context **ret, struct silt_error *e);
/* An unreadable default file is not an error: ret is "", and the daemon's response will say what is
 * missing. */
int silt_find_token(const char *option, char ret[SILT_CLIENT_TOKEN_SIZE], struct silt_error *e);
/* A program of Silt: beside this one in the build directory, or installed. */
int silt_find_program(const char *name, char ret[PATH_MAX], struct silt_error *e);
/* The path of images/<name>/build. */
int silt_find_recipe(const char *name, char ret[PATH_MAX], struct silt_error *e);
