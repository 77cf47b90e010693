/* SPDX-License-Identifier: Apache-2.0 */
/* rpc: capnweb on a WebSocket. Runs in siltd's loop; the connection owns its calls and streams.
 * Private to rpc.c (the connection and its tables), ask.c (incoming pushes), call.c (one call),
 * download_stream.c (a stream to the client), upload_stream.c (a stream from it), ack.c (its
 * acknowledgements), code.c (calls of the client's functions) and long.c (large messages, parsed on
 * a thread).
 *
 * Each side numbers its requests to the other from 1 on, in message order. */
#pragma once

#include "api/ws/client.h"
#include "api/rpc/method.h"
#include "base/map.h"
#include "http/internal_request.h"

enum {
    SILT_RPC_SMALL =
        64 << 10, /* an answer that has room while its own connection holds less than it may */
    SILT_RPC_CLOSE_CODE = 3000,
    SILT_RPC_FRAME_ROOM = 256,     /* of a frame beside its value */
    SILT_RPC_LONG = 256 << 10,     /* a message that is read by a thread */
    SILT_RPC_ARENA_MAX = 96 << 20, /* of what a message is made of */
};

struct silt_rpc { /* one connection */
    struct silt_ws_client guest;
    struct silt_api *api;    /* borrowed */
    struct silt_map exports; /* struct silt_rpc_entry by id: what the client may name */
    struct silt_map waits;   /* struct silt_rpc_wait by id: what the client has to answer */
    struct silt_link calls;  /* the next one to have its turn is first */
    size_t count;            /* of them that are not answered, or flow */
    size_t feeds;            /* in exports */
    int64_t arrived, asked;  /* ids that were given by the client, and by us */
    size_t held;             /* bytes of answers and bodies that wait here */
    size_t feed_bytes;       /* of them: what the client has sent and nobody has taken */
    size_t noted;            /* of held, and of what the client has not taken, in what all hold */
    struct silt_rpc_long *reading; /* NULL: no thread reads anything of it */
    const struct silt_rpc_laid
        *laid; /* borrowed; of the message that is being taken; NULL: nothing is laid out yet */
    struct silt_buf acks; /* that are not due yet */
    struct silt_timer ack_timer;
    bool is_over;
    struct silt_grave grave;
    char id[SILT_ID_MAX + 1]; /* of its sandbox */
};

enum silt_rpc_thing { SILT_RPC_CALL, SILT_RPC_UPLOAD };
struct silt_rpc_entry {
    int64_t id;
    enum silt_rpc_thing thing;
};

/* A call has one state and four small ones beside it, which change independently.
 *
 *   ASKED --whole answer--> ANSWERED --released--> gone
 *      \---a body that flows--> FLOWING --its end, or nobody reads it--> ANSWERED   */
enum silt_rpc_state { SILT_RPC_ASKED, SILT_RPC_FLOWING, SILT_RPC_ANSWERED };

/* The client: UNPULLED --pull--> PULLED --release--> RELEASED
 *                 \-----------release-----------------^      */
enum silt_rpc_client { SILT_RPC_UNPULLED, SILT_RPC_PULLED, SILT_RPC_RELEASED };

/* The source of its body:
 *
 *   OPEN --end--> WHOLE or BROKEN
 *      \--no room for the answer--> TOO_LARGE --end of a stream to the client--> BROKEN
 *
 * From TOO_LARGE on the bytes of the source are dropped. */
enum silt_rpc_source {
    SILT_RPC_SOURCE_OPEN,
    SILT_RPC_SOURCE_TOO_LARGE,
    SILT_RPC_SOURCE_WHOLE,
    SILT_RPC_SOURCE_BROKEN,
};

/* The stream to the client:
 *
 *   HELD --its first event is good, or need not be--> READY --pulled--> OPEN --end--> CLOSING */
enum silt_rpc_pipe {
    SILT_RPC_PIPE_HELD,
    SILT_RPC_PIPE_READY,
    SILT_RPC_PIPE_OPEN,
    SILT_RPC_PIPE_CLOSING, /* the client has been told its end, or has ended it */
};

enum silt_rpc_body { SILT_RPC_BODY_BYTES, SILT_RPC_BODY_JSON, SILT_RPC_BODY_EVENTS };

struct silt_rpc_upload;

struct silt_rpc_call {
    struct silt_http_internal_sink sink; /* first: a cast leads from one to the other */
    struct silt_rpc_entry entry;
    struct silt_link link;
    struct silt_rpc *line;                /* borrowed */
    const struct silt_rpc_method *method; /* borrowed; NULL: nothing that can be called */
    struct silt_http_internal *inner;     /* owned until it is answered or left */
    enum silt_rpc_state state;            /* call.c assigns it */
    enum silt_rpc_client client;          /* call.c assigns it */
    enum silt_rpc_source source;          /* silt_rpc_call_end_source assigns it */
    enum silt_rpc_body body;
    int status;
    struct silt_buf text; /* an answer in pieces; the frame that waits for a pull; part of an event;
                             of RAW: what follows the stream */
    struct silt_timer leave, quiet;
    struct silt_grave grave;
    struct silt_link waits;
    size_t ref_count;
    int64_t *refs; /* of the client: released when it is over */
    int64_t number;
    struct silt_rpc_upload *feed; /* borrowed: its body */
    /* The stream to the client. */
    enum silt_rpc_pipe pipe; /* download_stream.c assigns it */
    int64_t pipe_id;         /* from OPEN on */
    struct silt_buf queue;   /* from `sent` on: not sent yet */
    size_t sent, flying;     /* flying: bytes that the client has not acknowledged */
    unsigned writes;         /* of them */
    /* Functions of the client. */
    int64_t callbacks[SILT_RPC_CALLBACKS];
    bool is_calling; /* one is awaited */
};

enum silt_rpc_wait_for { SILT_RPC_WRITE, SILT_RPC_END, SILT_RPC_CALLBACK };
struct silt_rpc_wait {
    int64_t id;
    struct silt_link link; /* in call->waits */
    struct silt_rpc_call *call;
    enum silt_rpc_wait_for what;
    size_t bytes;
};

/* rpc.c */
void silt_rpc_say(struct silt_rpc *l, const struct silt_buf *frame);
void silt_rpc_say_value(struct silt_rpc *l, const char *kind, int64_t id,
                        silt_slice value); /* resolve, reject */
void silt_rpc_say_release(struct silt_rpc *l, int64_t id);
void silt_rpc_abort(struct silt_rpc *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes that wait here: more, or (less than 0) fewer. */
void silt_rpc_hold(struct silt_rpc *l, ptrdiff_t bytes);
bool silt_rpc_has_room(struct silt_rpc *l, size_t has, size_t more);
void silt_rpc_wait_for(struct silt_rpc_call *c, enum silt_rpc_wait_for what,
                       size_t bytes); /* for what gets the next id of ours */
void silt_rpc_wait_drop(struct silt_rpc_wait *w);
/* An entry of the table of exports. */
void silt_rpc_enter(struct silt_rpc *l, struct silt_rpc_entry *e);
void silt_rpc_forget(struct silt_rpc *l, struct silt_rpc_entry *e);
void *silt_rpc_find(struct silt_rpc *l, int64_t id); /* struct silt_rpc_entry */
/* Lets go of what a value has mentioned. */
void silt_rpc_let_go(struct silt_rpc *l, const struct silt_rpc_refs *refs);

/* A message that was read, or NULL and why not. */
void silt_rpc_heard(struct silt_rpc *l, const struct silt_rpc_message *m,
                    const struct silt_error *e);
void silt_rpc_hear(struct silt_rpc *l, silt_slice bytes); /* reads it now */

/* ack.c */
void silt_rpc_acks_init(struct silt_rpc *l);
void silt_rpc_acks_drop(struct silt_rpc *l);
void silt_rpc_ack(struct silt_rpc *l, int64_t id); /* resolves a write, a little later */

/* rpc_long.c */
struct silt_rpc_laid { /* a call of a method, as a request */
    const struct silt_rpc_method *method;
    struct silt_rpc_request request;
    const char *wrong; /* NULL: nothing */
};
void silt_rpc_lay(struct silt_rpc_laid *ret, const struct silt_rpc_method *m,
                  const struct silt_json *args, const char *sandbox);
void silt_rpc_long_start(struct silt_rpc *l, silt_slice bytes);
void silt_rpc_long_later(struct silt_rpc *l, silt_slice bytes); /* a message that came meanwhile */
void silt_rpc_long_leave(
    struct silt_rpc *l); /* the connection is over; fine when none is under way */

/* rpc_ask.c */
void silt_rpc_call_push(struct silt_rpc *l, const struct silt_json *value);

/* rpc_call.c */
struct silt_rpc_call *silt_rpc_call_new(struct silt_rpc *l); /* with the next id of the client's */
bool silt_rpc_call_flows(const struct silt_rpc_call *c);     /* its answer is a stream */
void silt_rpc_call_end_source(struct silt_rpc_call *c, enum silt_rpc_source next);
static inline bool silt_rpc_call_source_has_ended(const struct silt_rpc_call *c)
{
    return c->source == SILT_RPC_SOURCE_WHOLE || c->source == SILT_RPC_SOURCE_BROKEN;
}
void silt_rpc_call_pull(struct silt_rpc_call *c);
void silt_rpc_call_release(struct silt_rpc_call *c);
void silt_rpc_call_settle(struct silt_rpc_call *c, bool good,
                          silt_slice value); /* it is answered with this value */
void silt_rpc_call_fail(struct silt_rpc_call *c, const char *code, const char *message);
/* Nobody waits for its request any more. Not from inside one of its callbacks: there, _leave_soon.
 */
void silt_rpc_call_leave(struct silt_rpc_call *c);
void silt_rpc_call_leave_soon(struct silt_rpc_call *c);
void silt_rpc_call_done(struct silt_rpc_call *c);    /* a stream has ended */
void silt_rpc_call_drain(struct silt_rpc_call *c);   /* its source may go on, if there is room */
void silt_rpc_call_hang_up(struct silt_rpc_call *c); /* the connection is over */
void silt_rpc_call_keep(struct silt_rpc_call *c, silt_slice bytes); /* adds to its text */
void silt_rpc_call_used(struct silt_rpc_call *c, size_t bytes); /* of its text, from the front */

/* rpc_pipe.c */
size_t silt_rpc_download_pending(const struct silt_rpc_call *c);
void silt_rpc_download_begin(struct silt_rpc_call *c); /* the body begins, or a pull came */
void silt_rpc_download_take(struct silt_rpc_call *c, silt_slice bytes);
void silt_rpc_download_end(struct silt_rpc_call *c, bool whole);
void silt_rpc_download_pump(struct silt_rpc_call *c);
void silt_rpc_download_on_ack(struct silt_rpc_wait *w, bool good);
void silt_rpc_download_on_quiet(struct silt_timer *t);

/* rpc_feed.c */
void silt_rpc_mind(struct silt_rpc *l); /* whether anything is read from the client */
void silt_rpc_upload_new(struct silt_rpc *l, int64_t id);
void silt_rpc_upload_take(struct silt_rpc_upload *f, int64_t id,
                          const struct silt_rpc_invocation *v); /* write, close or abort */
bool silt_rpc_upload_claim(struct silt_rpc_upload *f,
                           struct silt_rpc_call *c);  /* false: somebody has it */
void silt_rpc_upload_flow(struct silt_rpc_upload *f); /* its reader takes more */
void silt_rpc_upload_fail(struct silt_rpc_upload *f,
                          silt_slice reason); /* nobody reads it; a value */
void silt_rpc_upload_release(struct silt_rpc_upload *f);
void silt_rpc_upload_free(struct silt_rpc_upload *f); /* with its entry */
struct silt_rpc_upload *silt_rpc_upload_of(struct silt_rpc_entry *e);

/* rpc_code.c */
void silt_rpc_code_go_on(struct silt_rpc_call *c);
void silt_rpc_code_on_answer(struct silt_rpc_wait *w, bool good, const struct silt_json *value);
