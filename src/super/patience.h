/* SPDX-License-Identifier: Apache-2.0 */
/* patience: how long silt-super waits while it closes what siltd gave it to keep. The last close of a TCP socket waits for its
 * peer as long as whoever made it likes (SO_LINGER); also the kernel closes, while it hands over a message with more
 * descriptors than fit, or with sockets that carry others. A signal ends such a wait. */
#pragma once

/* From here to the end no close waits longer than a tenth of a second. */
void silt_patience_begin(void);
void silt_patience_end(void);
