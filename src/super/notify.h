/* SPDX-License-Identifier: Apache-2.0 */
/* notify: tells the service manager, where there is one (sd_notify(3)), how far we are. */
#pragma once

void silt_notify(const char *text); /* "READY=1" */
