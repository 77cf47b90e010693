/* SPDX-License-Identifier: Apache-2.0 */
/* find: where the daemon is and what its token is: an option, the environment (SILT_SERVER,
 * SILT_TOKEN), else what the settings of this machine say. Also where image recipes lie. */
#pragma once

#include "cli/client.h"
#include "config/config.h"

/* This machine's settings; the defaults when their file may not be read by this user. */
int silt_find_config(const struct silt_config **ret, struct silt_error *e);
/* "host:port", "http://host:port" or NULL. */
int silt_find_server(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE], struct silt_error *e);
/* An unreadable default file is no error here: ret is "" and the daemon will say what it wants. */
int silt_find_token(const char *option, char ret[SILT_CLIENT_TOKEN_SIZE], struct silt_error *e);
/* One of our own: beside us in the build folder, or where it is installed. */
int silt_find_program(const char *name, char ret[PATH_MAX], struct silt_error *e);
/* The path of images/<name>/build. */
int silt_find_recipe(const char *name, char ret[PATH_MAX], struct silt_error *e);
