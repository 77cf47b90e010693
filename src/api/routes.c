/* SPDX-License-Identifier: Apache-2.0 */
/* Every route, one line each; docs/openapi.json says the same and a test compares the two. */
#include "api/api.h"

const struct silt_route silt_routes[] = {
    /* what is asked most is found first */
    {"POST", "/sandboxes/{id}/api/execute", silt_api_execute, 0},
    {"POST", "/sandboxes/{id}/api/execute/stream", silt_api_execute_stream, 0},
    {"POST", "/sandboxes/{id}/api/read", silt_api_file_read, 0},
    {"POST", "/sandboxes/{id}/api/write", silt_api_file_write, 0},
    {"POST", "/sandboxes/{id}/api/exists", silt_api_file_exists, 0},
    {"GET", "/healthz", silt_api_healthz, SILT_ROUTE_OPEN},
    {"GET", "/metrics", silt_api_metrics, 0},
    {"GET", "/v1/openapi.json", silt_api_openapi, 0},
    {"GET", "/v1/sandboxes", silt_api_sandbox_list, 0},
    {"POST", "/v1/sandboxes", silt_api_sandbox_create, 0},
    {"GET", "/v1/sandboxes/{id}", silt_api_sandbox_get, 0},
    {"DELETE", "/v1/sandboxes/{id}", silt_api_sandbox_destroy, 0},
    {"GET", "/v1/images", silt_api_image_list, 0},
    {"PUT", "/v1/images/{name}", silt_api_image_put, 0},
    {"DELETE", "/v1/images/{name}", silt_api_image_remove, 0},
    {"GET", "/sandboxes/{id}/", silt_api_root, 0},
    {"GET", "/sandboxes/{id}/api/ping", silt_api_ping, 0},
    {"GET", "/sandboxes/{id}/api/version", silt_api_version, 0},
    {"GET", "/sandboxes/{id}/api/commands", silt_api_commands, 0},
    {"POST", "/sandboxes/{id}/api/session/create", silt_api_session_create, 0},
    {"GET", "/sandboxes/{id}/api/session/list", silt_api_session_list, 0},
    {"POST", "/sandboxes/{id}/api/session/delete", silt_api_session_delete, 0},
    {"POST", "/sandboxes/{id}/api/watch", silt_api_watch, 0},
    {"POST", "/sandboxes/{id}/api/watch/check", silt_api_watch_check, 0},
    {"POST", "/v1/sandboxes/{id}/watch", silt_api_watch_native, 0},
    {"POST", "/sandboxes/{id}/api/read/stream", silt_api_file_read_stream, 0},
    {"POST", "/sandboxes/{id}/api/delete", silt_api_file_delete, 0},
    {"POST", "/sandboxes/{id}/api/rename", silt_api_file_rename, 0},
    {"POST", "/sandboxes/{id}/api/move", silt_api_file_move, 0},
    {"POST", "/sandboxes/{id}/api/mkdir", silt_api_file_mkdir, 0},
    {"POST", "/sandboxes/{id}/api/list-files", silt_api_file_list, 0},
};
const size_t silt_route_count = SILT_COUNT(silt_routes);
