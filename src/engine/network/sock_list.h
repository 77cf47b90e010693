/* SPDX-License-Identifier: Apache-2.0 */
/* sock_list: lists the sockets of one network namespace (sock_diag) and destroys single ones. It
 * works on the namespace in which silt_sock_list_open was called. */
#pragma once

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <stdbool.h>
#include <stdint.h>

/* Two netlink sockets: one is busy with the list while the other destroys. */
struct silt_sock_list {
    int list, other;
};

struct silt_sock_list_query {
    int family;      /* AF_INET or AF_INET6 */
    int protocol;    /* IPPROTO_TCP or IPPROTO_UDP */
    uint32_t states; /* 1 << TCP_LISTEN, … */
    uint16_t port;   /* local port; 0: any */
};

struct silt_sock_list_socket {
    struct inet_diag_sockid id;
    int family, protocol;
    uint8_t state;    /* TCP_LISTEN, … */
    uint16_t port;    /* local port */
    uint32_t uid;     /* of its creator, in the machine's user namespace */
    bool held;        /* has a descriptor: neither waiting to be accepted nor closed */
    uint32_t backlog; /* TCP_LISTEN: connections waiting to be accepted */
    uint64_t memory;  /* the kernel's accounting of its queues */
    uint64_t receive_max;
};

/* Return false to stop the list. */
typedef bool silt_sock_list_each_fn(void *context, const struct silt_sock_list_socket *s);

/* -1 with errno. */
int silt_sock_list_open(struct silt_sock_list *d);
void silt_sock_list_close(struct silt_sock_list *d);
/* 0 if the list is complete, -1 if it was stopped or the kernel does not answer. Sockets that close
 * during the list may cause others to be skipped. */
int silt_sock_list_each(const struct silt_sock_list *d, const struct silt_sock_list_query *q,
                        silt_sock_list_each_fn *each, void *context);
/* Data in its receive queue stays until its holder closes it; a listener's unaccepted connections
 * are dropped at once. False: the socket is gone, or this kernel lacks CONFIG_INET_DIAG_DESTROY. */
bool silt_sock_list_destroy(const struct silt_sock_list *d, const struct silt_sock_list_socket *s);

/* Parses one message of the list. False: not a socket entry, or too short. */
bool silt_sock_list_read(const struct nlmsghdr *h, int protocol, struct silt_sock_list_socket *ret);
