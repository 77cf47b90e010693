/* SPDX-License-Identifier: Apache-2.0 */
/* jail: what silt-fetch gives up before it reads untrusted input. silt-priv has started it in its
 * own user namespace; here its root becomes the output directory. Cannot be undone. */
#pragma once

#include "base/error.h"

enum {
    SILT_JAIL_INPUT = 0,
    SILT_JAIL_OUTPUT = 1,
    SILT_JAIL_RESULT = 3
}; /* the only descriptors in use */

/* Makes the current directory the root, keeps the four capabilities that unpacking needs, and
 * allows only the system calls of unpacking: no exec, no processes, no sockets, no executable
 * memory. From here on the process ends when the reader of its result goes away. */
int silt_jail_enter(struct silt_error *e);
/* call before writing the result: SIGIO cannot tell a read from a close */
void silt_jail_tell(void);
