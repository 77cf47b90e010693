/* SPDX-License-Identifier: Apache-2.0 */
/* client_hello: finds the server name (SNI) in a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3). The
 * message may span records, and a record may span reads. Strict: anything that is not exactly a
 * ClientHello is rejected. */
#pragma once

#include "base/slice.h"

enum {
    SILT_CLIENT_HELLO_MAX = 16384,          /* of the message; real ones have 200 to 2,000 bytes */
    SILT_CLIENT_HELLO_RECORD = 5,           /* head of a record */
    SILT_CLIENT_HELLO_RECORD_MAX = 1 << 14, /* without head; plain */
};

enum silt_client_hello_state {
    SILT_CLIENT_HELLO_MORE,
    SILT_CLIENT_HELLO_WHOLE,
    SILT_CLIENT_HELLO_OTHER,
    SILT_CLIENT_HELLO_BROKEN
};

struct silt_client_hello {
    size_t len;      /* of the records it lies in: all of them are whole */
    silt_slice name; /* SNI as it was sent, valid until the next call; {NULL, 0}: none */
    bool hidden;     /* an encrypted hello is inside, for whoever */
    bool early;      /* data may follow before the handshake is over */
};

/* `bytes` begin with a record of type handshake. OTHER: another message of the handshake. */
enum silt_client_hello_state silt_client_hello_parse(silt_slice bytes,
                                                     struct silt_client_hello *ret);
