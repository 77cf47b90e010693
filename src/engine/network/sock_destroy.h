/* SPDX-License-Identifier: Apache-2.0 */
/* sock_destroy: resets the connections that lead out of a network namespace. The gateway's rules
 * already drop their packets; without the reset, a blocked reader would wait forever. */
#pragma once

/* Acts on the caller's current network namespace. On kernels without CONFIG_INET_DIAG_DESTROY it
 * does nothing: the rules alone apply. */
void silt_sock_destroy_outward(void);
