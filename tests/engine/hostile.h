/* SPDX-License-Identifier: Apache-2.0 */
/* hostile: the tools of a siltd that has been taken over: images of its own making, and a look
 * whether it got anywhere. */
#pragma once

#include "harness.h"

#define EVIL "silt-evil" /* how the attacker's program calls itself */

/* A tar of an image whose /usr/bin/python3 is `program`, without the end that tells a reader to
 * stop. *ret is the caller's. */
size_t hostile_tar(const char *program, char **ret);
/* As root: silt-trust on such a tar, with its end. */
bool hostile_trust(struct world *w, const char *build, const char *tar, size_t len);
/* Of such a tar, with its end. */
void hostile_digest(const char *tar, size_t len, uint8_t ret[SILT_DIGEST_SIZE]);
/* The path of an image; static. */
const char *hostile_image(struct world *w, const uint8_t digest[SILT_DIGEST_SIZE],
                          const char *suffix);
/* The attacker's program runs with the rights of root. */
bool hostile_is_root(void);
/* Of all that is below the directory: names, modes, owners, contents. 0: it is not there. */
uint64_t hostile_hash(const char *directory);
