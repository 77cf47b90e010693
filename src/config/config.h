/* SPDX-License-Identifier: Apache-2.0 */
/* config: loads the settings. Each setting is one row (name, kind, default, bounds, help); the
 * file, the environment, the flags, --help and the reference page are all generated from the rows,
 * and other rooms receive values only. Precedence, lowest first: default, file
 * (/etc/silt/silt.conf), environment (SILT_HTTP_CONNECTIONS), flag (--http.connections=100). Used
 * by silt-super, siltd, silt-priv, silt-trust, silt-proxy and silt. An unknown name or an invalid
 * value is an error. */
#pragma once

#include "base/error.h"
#include "base/log.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SILT_CONFIG_BLOCK_IDS = 1 << 24, /* ids.base is a multiple of this; a block has 256 slots */
    SILT_CONFIG_SLOT_IDS = 1 << 16,  /* uids and gids of one sandbox, and of all images together */
};

struct silt_config {
    char instance[8];
    char listen[64];
    char state[PATH_MAX];
    char run[PATH_MAX];
    char images[PATH_MAX]; /* default: <state>/images */
    char token_file[PATH_MAX];
    char user[64];
    uint32_t ids_base;
    uint32_t ids_count;
    uint32_t ids_images;
    char image[256];
    char images_map[1024];
    char images_insecure[1024];
    char images_authorities[PATH_MAX]; /* "": none */
    uint32_t images_pull_timeout, images_pull_silence;
    uint64_t images_pull_max;
    uint32_t build_cache, build_step_timeout;
    uint64_t build_context_max;
    char image_apt_source[256];
    char type[32];
    uint32_t sleep_after_s, stop_after_s;
    uint32_t pool_sandboxes;
    uint32_t pool_namespaces;
    uint32_t agent_deadline_ms;
    uint64_t interpreter_output_max;
    uint32_t interpreter_spares;
    uint32_t interpreter_spare_idle;
    uint32_t interpreter_zygotes;
    uint32_t interpreter_renew;
    uint32_t workers;
    uint64_t disk_pool, disk_reserve;
    char cgroup[PATH_MAX];
    enum silt_log_level log_level;
    char network[8];
    char network_ipv4[32];
    char network_ipv6[64];
    char network_open[1024];
    uint32_t network_connections;
    uint32_t network_connections_all;
    char network_resolvers[256];
    char network_mode[8]; /* public, none, allow */
    char network_allow[4096];
    uint32_t http_connections;
    uint32_t http_head_timeout_ms;
    uint32_t http_body_timeout_ms;
    uint32_t http_idle_timeout_ms;
    char cors_origins[1024];
    char fronts[1024];
    char git_local_remotes[4];          /* on, off */
    char metrics_sandboxes[4];          /* on, off */
    char preview_listen[64];            /* off: no previews */
    char preview_domain[128];           /* default: [silt.]localhost:PORT, set by silt-super */
    char preview_certificate[PATH_MAX]; /* "": none; previews use plain HTTP */
    char preview_key[PATH_MAX];
    char preview_paths[4];  /* on, off */
    char preview_scheme[8]; /* auto, http, https */
    char preview_short_tokens[4];
    char preview_old_form[4];
    char preview_localhost_host[4];
    uint32_t preview_wait_ms;
    uint32_t preview_connections;
    uint32_t preview_connections_all;
    uint32_t preview_idle_timeout_ms;
    uint32_t preview_silence_timeout_ms;
    uint32_t preview_total_timeout_s;
    uint64_t preview_bandwidth;
    char engine_socket[108]; /* off: none; default: <run>/engine.sock, set by silt-super */
    char engine_mode[8];
    char engine_group[64];
    uint32_t engine_exit_delay_ms;
    uint32_t engine_stop_after_ms;
    uint32_t engine_keep_s;
    uint32_t engine_hold_ms;
    char engine_max_instances[4];

    int handover;   /* --handover=FD: what the silt-super before us kept (super/handover.h) */
    bool check;     /* --check: silt-super only says whether it can take that over */
    bool reload;    /* --reload: asks the running silt-super to reload, and waits */
    bool fresh;     /* --fresh: passed by silt-super to the first silt-priv of an instance */
    bool help;      /* --help: the program prints silt_config_help and exits */
    bool version;   /* --version */
    bool reference; /* --reference: silt_config_reference */
    bool manual;    /* --manual: silt_config_manual */
};

/* Reads the file, the environment and the flags. The file may be missing unless --config or
 * SILT_CONFIG named it; an empty name means no file. *ret is 40 KB: keep it static. */
int silt_config_load(int argc, char **argv, struct silt_config *ret, struct silt_error *e);

/* Whether preview URLs are https for their visitors. */
bool silt_config_previews_https(const struct silt_config *c);

/* The number of open files that one program of an instance needs: the minimum to start and run some
 * sandboxes, and the maximum with all sandboxes and connections that the settings allow. */
uint64_t silt_config_files_least(const struct silt_config *c);
uint64_t silt_config_files_most(const struct silt_config *c);

void silt_config_help(FILE *out);      /* lists the flags, one paragraph each */
void silt_config_reference(FILE *out); /* writes docs/settings.md */
void silt_config_manual(FILE *out);    /* writes docs/man/silt.conf.5 */

/* The effective settings as an argument vector, starting with the program; silt_config_load turns
 * it back into the same values without reading a file. The caller frees it; `more` may be NULL. */
char **silt_config_to_args(const struct silt_config *c, const char *program, const char *more);
void silt_config_args_free(char **args);

/* Settings that hold until the instance ends: what was made with them (sockets, ids, networks,
 * directories) outlives a reload. As "--name=value", freed like an argument vector. */
char **silt_config_fixed(const struct silt_config *c);
/* Sets one of them to the value that it had before the reload. *ret_other: it was another one. */
int silt_config_fix(struct silt_config *c, const char *flag, bool *ret_other, struct silt_error *e);
