/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/network/sock_destroy.h"
#include "base/clock.h"
#include "engine/network/sock_list.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ALL_MS = 1000, /* a guest may have a million sockets; the rules stop the rest */
};

struct cutting {
    struct silt_sock_list diag;
    int64_t until_ms;
    uint32_t gone; /* in this round */
};

static bool is_loopback(int family, const __be32 to[4])
{
    static const uint8_t zero[16], one[16] = {[15] = 1};
    static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    const uint8_t *b = (const uint8_t *)to;
    if (family == AF_INET)
        return b[0] == 127 || memcmp(b, zero, 4) == 0;
    return memcmp(b, zero, 16) == 0 || memcmp(b, one, 16) == 0 || memcmp(b, mapped, 13) == 0;
}

static bool on_socket(void *context, const struct silt_sock_list_socket *s)
{
    struct cutting *c = context;
    if (!is_loopback(s->family, s->id.idiag_dst))
        c->gone += silt_sock_list_destroy(&c->diag, s);
    return silt_clock_ms() < c->until_ms;
}

/* The kernel's list may skip a socket whose neighbour was destroyed: repeat until none is left. */
static int cut(struct cutting *c, int family, int protocol)
{
    struct silt_sock_list_query q = {.family = family, .protocol = protocol, .states = ~0U};
    int got;
    do {
        c->gone = 0;
        got = silt_sock_list_each(&c->diag, &q, on_socket, c);
    } while (got >= 0 && c->gone > 0);
    return got;
}

void silt_sock_destroy_outward(void)
{
    struct cutting c = {.until_ms = silt_clock_ms() + ALL_MS};
    if (silt_sock_list_open(&c.diag) < 0)
        return;
    /* The first failure means that the time is used up, or that this kernel does not support it. */
    (void)(cut(&c, AF_INET, IPPROTO_TCP) < 0 || cut(&c, AF_INET6, IPPROTO_TCP) < 0
           || cut(&c, AF_INET, IPPROTO_UDP) < 0 || cut(&c, AF_INET6, IPPROTO_UDP) < 0);
    silt_sock_list_close(&c.diag);
}
