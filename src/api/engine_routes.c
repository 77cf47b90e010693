/* SPDX-License-Identifier: Apache-2.0 */
/* Every route of the engine socket, one line each, without the version that may stand before it; docs/engine.md says what they do. */
#include "api/engine.h"

const struct silt_route silt_engine_routes[] = {
    {"GET", "/_ping", silt_engine_ping, 0},
    {"GET", "/version", silt_engine_version, 0},
    {"GET", "/info", silt_engine_info, 0},
    {"GET", "/networks", silt_engine_network_list, 0},
    {"GET", "/networks/{name}", silt_engine_network, 0},
    {"GET", "/containers/json", silt_engine_container_list, 0},
    {"POST", "/containers/create", silt_engine_container_create, 0},
    {"GET", "/containers/{name}/json", silt_engine_container_inspect, 0},
    {"POST", "/containers/{name}/start", silt_engine_container_start, 0},
    {"POST", "/containers/{name}/wait", silt_engine_container_wait, 0},
    {"POST", "/containers/{name}/kill", silt_engine_container_kill, 0},
    {"POST", "/containers/{name}/stop", silt_engine_container_stop, 0},
    {"DELETE", "/containers/{name}", silt_engine_container_remove, 0},
    {"GET", "/containers/{name}/archive", silt_engine_archive_get, SILT_ENGINE_STREAM},
    {"PUT", "/containers/{name}/archive", silt_engine_archive_put, SILT_ENGINE_STREAM},
    {"GET", "/volumes", silt_engine_volume_list, 0},
    {"POST", "/volumes/create", silt_engine_volume_create, 0},
    {"GET", "/volumes/{name}", silt_engine_volume_inspect, 0},
    {"DELETE", "/volumes/{name}", silt_engine_volume_remove, 0},
    {"POST", "/commit", silt_engine_commit, 0},
    {"POST", "/images/build", silt_engine_build, SILT_ENGINE_STREAM},
    {"GET", "/images/json", silt_engine_image_list, 0},
    {"GET", "/images/{name*}", silt_engine_image_get, 0},
    {"POST", "/images/create", silt_engine_image_create, 0},
    {"POST", "/images/load", silt_engine_image_load, SILT_ENGINE_STREAM},
    {"POST", "/images/import", silt_engine_image_load, SILT_ENGINE_STREAM},
    {"POST", "/images/{name*}", silt_engine_image_tag, 0},
    {"DELETE", "/images/{name*}", silt_engine_image_remove, 0},
    {"POST", "/containers/{name}/exec", silt_engine_exec_create, 0},
    {"POST", "/exec/{id}/start", silt_engine_exec_start, 0},
    {"GET", "/exec/{id}/json", silt_engine_exec_inspect, 0},
    {"POST", "/exec/{id}/resize", silt_engine_exec_resize, 0},
};
const size_t silt_engine_route_count = SILT_COUNT(silt_engine_routes);
