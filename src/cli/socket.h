/* SPDX-License-Identifier: Apache-2.0 */
/* socket: a WebSocket to the daemon. What is sent waits here until the connection takes it. */
#pragma once

#include "cli/client.h"
#include "http/websocket.h"

struct silt_cli_socket {
    struct silt_client *client; /* borrowed: its connection is ours while we are open */
    struct silt_ws_reader reader;
    struct silt_buf out;
    silt_slice in; /* what came and is not read yet */
    int code;      /* that it was closed with; 0: it broke off */
};

/* An answer that is no WebSocket is an error with the daemon's sentence. */
int silt_cli_socket_open(struct silt_cli_socket *s, struct silt_client *c, const char *path, struct silt_error *e);
void silt_cli_socket_fini(struct silt_cli_socket *s);
void silt_cli_socket_send(struct silt_cli_socket *s, enum silt_ws_op op, silt_slice payload);
short silt_cli_socket_wants(const struct silt_cli_socket *s); /* events of poll on client->fd */
/* The connection is ready for something: sends and receives what it can. -1: it is over. */
int silt_cli_socket_move(struct silt_cli_socket *s, short ready);
/* The next message of what came: 1; 0: none is whole; -1: it is over. s->reader.type tells which. */
int silt_cli_socket_next(struct silt_cli_socket *s, silt_slice *ret);
