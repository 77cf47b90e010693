/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ws/client.h"

static void refuse_other(struct silt_http_request *r)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_api_envelope(&b, SILT_API_UPGRADE_REQUIRED,
                      SILT_LIT("This path answers WebSocket handshakes of version 13 only"));
    silt_json_raw(&b, SILT_LIT("{}"));
    silt_api_envelope_end(&b, SILT_API_UPGRADE_REQUIRED);
    silt_http_reply(r, 426, SILT_LIT("application/json"),
                    SILT_LIT(SILT_SOCKET_VERSION "Connection: Upgrade\r\n"), silt_buf_slice(&b));
}

bool silt_ws_client_may_enter(struct silt_http_request *r, silt_slice id)
{
    bool upgrade = r->head->upgrade;
    struct silt_error e;
    if (silt_id_check(id, &e) < 0) {
        silt_api_refuse_field(r, "id", e.text);
        return false;
    }
    switch (silt_socket_judge(r)) {
    case SILT_SOCKET_FINE:
        return true;
    case SILT_SOCKET_NOT_ONE:
        if (!upgrade && !silt_api_is_native(r))
            silt_api_refuse(r, SILT_API_UNKNOWN_ROUTE, (silt_slice){NULL, 0},
                            "The requested endpoint was not found");
        else
            refuse_other(r);
        return false;
    case SILT_SOCKET_BAD:
        silt_api_refuse(r, SILT_API_BAD_REQUEST, (silt_slice){NULL, 0},
                        "The WebSocket handshake is malformed");
        return false;
    case SILT_SOCKET_ENDING:
        silt_http_reply(r, 503, SILT_LIT("text/plain"), (silt_slice){NULL, 0},
                        SILT_LIT("The daemon is stopping"));
        return false;
    }
    return false;
}

void silt_ws_client_enter(struct silt_ws_client *g, struct silt_api *api,
                          struct silt_http_request *r, size_t message_max)
{
    silt_list_append(&api->guests, &g->link);
    silt_socket_open(&g->socket, api->loop, r, message_max);
}

void silt_ws_client_say(struct silt_ws_client *g, const struct silt_buf *text)
{
    silt_socket_send(&g->socket, SILT_WS_TEXT, silt_buf_slice(text));
}

void silt_ws_client_leave(struct silt_ws_client *g, int code, silt_slice reason)
{
    silt_list_remove(&g->link);
    silt_socket_close(&g->socket, code, reason);
}

static struct silt_ws_client *find(struct silt_api *api, const void *tag)
{
    silt_list_each(it, &api->guests)
    {
        struct silt_ws_client *g = silt_outer(it, struct silt_ws_client, link);
        if (tag == NULL || (g->socket.request != NULL && g->socket.request->tag == tag))
            return g;
    }
    return NULL;
}

void silt_ws_clients_leave(struct silt_api *api, const void *tag, int code, silt_slice why)
{
    struct silt_ws_client *g;
    while ((g = find(api, tag)) != NULL) { /* closing one may remove others */
        g->on_parting(g);
        silt_ws_client_leave(g, code, why);
    }
}

void silt_api_part_with_guests(struct silt_api *api)
{
    silt_ws_clients_leave(api, NULL, SILT_WS_GOING, SILT_LIT("the daemon is stopping"));
}
