/* SPDX-License-Identifier: Apache-2.0 */
/* confine: reduces the TCP watcher's rights to what it needs: entering network namespaces, listing
 * and destroying sockets there, killing processes. */
#pragma once

#include "base/error.h"

/* For the calling process. Cannot be undone. */
int silt_priv_confine_watcher(struct silt_error *e);
