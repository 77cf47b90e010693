/* SPDX-License-Identifier: Apache-2.0 */
/* hello: to whom a TLS client says hello (RFC 8446 4.1.2, RFC 6066 3). The message may be spread
 * over records, a record over reads. Strict: what is not exactly a ClientHello is broken. */
#pragma once

#include "base/slice.h"

enum {
    SILT_HELLO_MAX = 16384,          /* of the message; real ones have 200 to 2,000 bytes */
    SILT_HELLO_RECORD = 5,           /* head of a record */
    SILT_HELLO_RECORD_MAX = 1 << 14, /* without head; plain */
};

enum silt_hello_state { SILT_HELLO_MORE, SILT_HELLO_WHOLE, SILT_HELLO_OTHER, SILT_HELLO_BROKEN };

struct silt_hello {
    size_t len;      /* of the records it lies in: all of them are whole */
    silt_slice name; /* SNI as it was sent, valid until the next call; {NULL, 0}: none */
    bool hidden;     /* an encrypted hello is inside, for whoever */
    bool early;      /* data may follow before the handshake is over */
};

/* `bytes` begin with a record of type handshake. OTHER: another message of the handshake. */
enum silt_hello_state silt_hello_parse(silt_slice bytes, struct silt_hello *ret);
