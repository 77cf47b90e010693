/* SPDX-License-Identifier: Apache-2.0 */
/* id: checks the names that clients choose, and makes random ones. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

enum { SILT_ID_MAX = 128, SILT_HOSTNAME_SIZE = 64 };

/* 1..128 of [A-Za-z0-9._-], no leading or trailing - or ., no "..", not a reserved word. */
int silt_id_check(silt_slice id, struct silt_error *e);
/* The first 63 bytes; a character that is not allowed in a host name becomes '-'. */
void silt_id_hostname(silt_slice id, char out[SILT_HOSTNAME_SIZE]);
/* [a-z][a-z0-9._-]{0,63}: names of images. */
int silt_id_check_image(silt_slice name, struct silt_error *e);
/* [A-Za-z_][A-Za-z0-9_]* of at most 256 bytes: names of environment variables. */
bool silt_id_is_env_name(silt_slice name);
/* 64 random hexadecimal digits and a terminator. */
void silt_id_random_hex(char out[65]);
/* n random characters of [a-z2-7] and a terminator. */
void silt_id_random(char *out, size_t n);
