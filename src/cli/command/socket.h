/* SPDX-License-Identifier: Apache-2.0 */
/* socket: a WebSocket connection to the daemon. Outgoing messages are queued until the connection
 * takes them. */
#pragma once

#include "cli/core/client.h"
#include "http/websocket.h"

struct silt_cli_socket {
    struct silt_client
        *client; /* borrowed: its connection belongs to the socket while that is open */
    struct silt_ws_reader reader;
    struct silt_buf out;
    silt_slice in; /* received bytes that are not read yet */
    int code;      /* close code; 0: the connection broke */
};

/* A response other than an upgrade is an error with the daemon's message. */
int silt_cli_socket_open(struct silt_cli_socket *s, struct silt_client *c, const char *path,
                         struct silt_error *e);
void silt_cli_socket_fini(struct silt_cli_socket *s);
void silt_cli_socket_send(struct silt_cli_socket *s, enum silt_ws_op op, silt_slice payload);
short silt_cli_socket_wants(const struct silt_cli_socket *s); /* events of poll on client->fd */
/* Sends and receives as much as possible after poll. -1: the connection is closed. */
int silt_cli_socket_move(struct silt_cli_socket *s, short ready);
/* 1: the next message, of type s->reader.type; 0: no complete message; -1: the connection is
 * closed. */
int silt_cli_socket_next(struct silt_cli_socket *s, silt_slice *ret);
