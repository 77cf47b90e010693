/* SPDX-License-Identifier: Apache-2.0 */
/* cut: breaks off the connections of a network namespace that lead out of it. The gate's rules have
 * stopped their packets already; without this a reader that only waits would wait on. */
#pragma once

/* In the caller's namespace of the moment. Kernels that cannot (CONFIG_INET_DIAG_DESTROY) leave it
 * to the rules. */
void silt_cut_connections(void);
