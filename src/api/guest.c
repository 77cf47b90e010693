/* SPDX-License-Identifier: Apache-2.0 */
#include "api/guest.h"

static void refuse_other(struct silt_http_request *r)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_api_envelope(&b, SILT_API_UPGRADE_REQUIRED, SILT_LIT("This path answers WebSocket handshakes of version 13 only"));
    silt_json_raw(&b, SILT_LIT("{}"));
    silt_api_envelope_end(&b, SILT_API_UPGRADE_REQUIRED);
    silt_http_reply(r, 426, SILT_LIT("application/json"), SILT_LIT(SILT_SOCKET_VERSION "Connection: Upgrade\r\n"),
                    silt_buf_slice(&b));
}

bool silt_guest_may_enter(struct silt_http_request *r, silt_slice id)
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
        if (!upgrade)
            silt_api_refuse(r, SILT_API_UNKNOWN_ROUTE, (silt_slice){NULL, 0}, "The requested endpoint was not found");
        else
            refuse_other(r);
        return false;
    case SILT_SOCKET_BAD:
        silt_api_refuse(r, SILT_API_BAD_REQUEST, (silt_slice){NULL, 0}, "The WebSocket handshake is malformed");
        return false;
    case SILT_SOCKET_ENDING:
        silt_http_reply(r, 503, SILT_LIT("text/plain"), (silt_slice){NULL, 0}, SILT_LIT("The daemon is stopping"));
        return false;
    }
    return false;
}

void silt_guest_enter(struct silt_guest *g, struct silt_api *api, struct silt_http_request *r, size_t message_max)
{
    silt_list_append(&api->guests, &g->link);
    silt_socket_open(&g->socket, api->loop, r, message_max);
}

void silt_guest_say(struct silt_guest *g, const struct silt_buf *text)
{
    silt_socket_send(&g->socket, SILT_WS_TEXT, silt_buf_slice(text));
}

void silt_guest_leave(struct silt_guest *g, int code, silt_slice reason)
{
    silt_list_remove(&g->link);
    silt_socket_close(&g->socket, code, reason);
}

void silt_api_part_with_guests(struct silt_api *api)
{
    struct silt_guest *g;
    while ((g = silt_list_first(&api->guests, struct silt_guest, link)) != NULL) { /* one may take others along */
        g->on_parting(g);
        silt_guest_leave(g, SILT_WS_GOING, SILT_LIT("the daemon is stopping"));
    }
}
