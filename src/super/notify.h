/* SPDX-License-Identifier: Apache-2.0 */
/* notify: reports our state to the service manager, if there is one (sd_notify(3)). */
#pragma once

void silt_notify(const char *text); /* for example "READY=1" */
