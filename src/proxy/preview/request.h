/* SPDX-License-Identifier: Apache-2.0 */
/* request: one proxied HTTP request and its response. Private to request.c (finds the route and a
 * socket), forward.c (copies head and body) and upgrade.c (the bytes after a 101). */
#pragma once

#include "proxy/core/relay.h"
#include "proxy/preview/client_conn.h"

/* Who is asked.
 *
 *  NEW --unknown name--> FINDING --route--> DIALING --socket--> PASSING --all is said--> over
 *    \---route that is known---------------^ \---an idle socket---^ \--101--> TUNNEL --> over
 *
 * A socket that was lost before it answered leads from PASSING back to DIALING. */
enum silt_proxied_request_stage {
    SILT_PROXIED_REQUEST_NEW,
    SILT_PROXIED_REQUEST_FINDING,
    SILT_PROXIED_REQUEST_DIALING,
    SILT_PROXIED_REQUEST_PASSING,
    SILT_PROXIED_REQUEST_TUNNEL,
};

/* The request's side: its body, from the visitor towards the service.
 *
 *  UNSENT --some of it--> SENDING --its end--> SENT
 *     \---its end, nothing in it---> BODILESS          (here, too, a request without a body begins)
 */
enum silt_proxied_request_body {
    SILT_PROXIED_REQUEST_UNSENT,
    SILT_PROXIED_REQUEST_SENDING,
    SILT_PROXIED_REQUEST_SENT, /* all of it is in to_up, or sent */
    SILT_PROXIED_REQUEST_BODILESS,
};

/* The response's side, from the service towards the visitor.
 *
 *  SILENT --bytes--> HEARD --final head, 101--> TOLD --its end, both ends of a tunnel--> COMPLETE
 */
enum silt_proxied_response {
    SILT_PROXIED_RESPONSE_SILENT,   /* nothing came: another socket may be asked */
    SILT_PROXIED_RESPONSE_HEARD,    /* something; the visitor can still get a page */
    SILT_PROXIED_RESPONSE_TOLD,     /* its head: what goes wrong now breaks the connection */
    SILT_PROXIED_RESPONSE_COMPLETE, /* in v->out, or sent */
};

struct silt_proxied_request {
    struct silt_client_conn *visitor; /* borrowed */
    struct silt_grave grave;
    enum silt_proxied_request_stage stage;
    struct sockaddr_in6 from; /* the client's address, behind trusted proxies */
    bool tls;                 /* the client uses https */
    struct silt_route *route; /* borrowed; while it is used */
    struct silt_route_wait wait;
    struct silt_route_user user;
    struct silt_bandwidth_wait tokens;
    struct silt_preview_channel_ask dial;
    struct silt_upstream *up;
    uint32_t flags; /* of the route */
    uint16_t port;
    uint16_t head_len;                     /* of the head in v->in; 0: already rewritten */
    uint8_t attempts;                      /* sockets tried */
    const struct silt_parsed_head *parsed; /* NEW: borrowed from the caller; later NULL */
    /* What the request is like */
    bool head_only, repeatable, upgrade, expects, old, keeps, html;
    bool throttled[SILT_BANDWIDTH_WAYS]; /* waits for bandwidth */
    enum silt_proxied_request_body body;
    enum silt_proxied_response response;
    struct silt_body_framing request, answer;
    enum silt_body_framing_kind as; /* framing towards the client */
    struct silt_buf head;           /* the rewritten request head */
    struct silt_buf to_up;          /* pending for the service */
    struct silt_buf from_up;        /* an incomplete response head */
    struct silt_buf cookie;         /* to set with the response */
    struct silt_relay relay;        /* TUNNEL */
    int64_t began_ms, active_ms;
};

/* A parsed request head and the preview it names; points into v->in. */
struct silt_parsed_head {
    struct silt_http_head head;
    struct silt_host host;
};

/* request.c */
/* The only places that assign the stage and the states of both sides. */
void silt_proxied_request_enter(struct silt_proxied_request *x,
                                enum silt_proxied_request_stage next);
void silt_proxied_request_enter_body(struct silt_proxied_request *x,
                                     enum silt_proxied_request_body next);
void silt_proxied_request_enter_response(struct silt_proxied_request *x,
                                         enum silt_proxied_response next);
/* The whole request was read from the client. */
bool silt_proxied_request_is_read(const struct silt_proxied_request *x);
void silt_proxied_request_page(struct silt_proxied_request *x, enum silt_error_page_kind kind,
                               const char *text);
int64_t silt_proxied_request_check_ms(
    const struct silt_proxied_request *x); /* how often a request in progress is checked */
/* The service closed before it answered: retries on another socket if that is safe, otherwise sends
 * an error page. */
void silt_proxied_request_lost(struct silt_proxied_request *x, bool refused);
void silt_proxied_request_over(struct silt_proxied_request *x); /* both sides are done */
/* The response cannot be completed: sends an error page if no head was sent yet, otherwise cuts the
 * connection. */
void silt_proxied_request_fail(struct silt_proxied_request *x, enum silt_error_page_kind kind);

/* forward.c */
void silt_forward_attach(struct silt_proxied_request *x, struct silt_upstream *u);
void silt_forward_on_visitor(struct silt_proxied_request *x);
void silt_forward_on_written(struct silt_proxied_request *x);
void silt_forward_settle(struct silt_proxied_request *x);
/* Also for upgrade.c. */
void silt_forward_flush(struct silt_proxied_request *x);
void silt_forward_watch(struct silt_proxied_request *x, bool reads); /* the service */
/* Bytes that may be read now; 0: continues when there is bandwidth again. */
size_t silt_forward_room(struct silt_proxied_request *x, enum silt_bandwidth_way way);

/* upgrade.c */
void silt_upgrade_start(struct silt_proxied_request *x);
void silt_upgrade_on_visitor(struct silt_proxied_request *x);
