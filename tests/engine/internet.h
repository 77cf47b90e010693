/* SPDX-License-Identifier: Apache-2.0 */
/* internet: all the network that the engine's tests have. The test itself moves into a namespace of
 * its own, the "host", whose only way leads to another one, the "world", which owns every address
 * that a test tries. In both a small server answers. Nothing can leave the machine. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct internet {
    int world; /* namespace */
    pid_t servers[2];
};

#define PUBLIC4 "93.184.215.14"
#define PUBLIC6 "2606:4700::1111"
#define HOST4 "192.0.2.2"
#define HOST6 "2001:db8:1::2"
enum {
    PORT = 80,
    TLS_PORT = 443,
    SSH_PORT = 22,
    ECHO_PORT = 9000,
    WORLD_LINK = 10 /* index of the host's eth0 */
};

/* The server greets with "<place> <address of the peer>\n" and then sends back what it gets; place
 * is "host" or "world". On UDP it answers each datagram with the greeting. */
bool internet_open(struct internet *i);
void internet_close(struct internet *i);
