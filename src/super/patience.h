/* SPDX-License-Identifier: Apache-2.0 */
/* patience: bounds how long silt-super blocks when it closes descriptors that siltd gave it. The
 * last close of a TCP socket waits for its peer as long as SO_LINGER says, which siltd chooses. The
 * kernel itself also closes descriptors while it delivers a message with more of them than fit, or
 * with sockets that carry others. A signal interrupts such a wait. */
#pragma once

/* Between begin and end no close blocks longer than 0.1 s. */
void silt_patience_begin(void);
void silt_patience_end(void);
