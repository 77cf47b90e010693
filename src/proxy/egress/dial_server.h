/* SPDX-License-Identifier: Apache-2.0 */
/* dial_server: the role silt-dial. It lives in the gateway's network namespace, creates sockets
 * there and passes them to silt-proxy. */
#pragma once

#include "base/error.h"

/* Until silt-super goes. */
int silt_dial_run(struct silt_error *e);
