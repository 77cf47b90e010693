/* SPDX-License-Identifier: Apache-2.0 */
/* helper: the state that all workers of silt-priv need. Opened once by the main process and
 * inherited by the workers. It holds nothing about single sandboxes: that is in the kernel and in
 * their volumes. */
#pragma once

#include "config/config.h"
#include "engine/core/cgroup.h"
#include "engine/launch/first_pids.h"
#include "engine/network/net.h"
#include "engine/core/seccomp.h"
#include "engine/storage/volume.h"

enum { SILT_PRIV_NETS_MAX = 64, SILT_PRIV_CAPTIVES_MAX = 8 };

struct silt_priv_helper {
    uint32_t ids_base, ids_images;
    uint32_t slots;
    struct silt_volumes volumes;
    struct silt_first_pids pids;
    struct silt_cgroups cgroups;
    struct silt_seccomp seccomp;
    int images;
    int init;  /* the program silt-init, sealed */
    int fetch; /* the program silt-fetch */
    int home_net, home_uts, home_mnt;
    struct silt_net_gate gate;
    int locks;                      /* see silt_priv_lock */
    int janitor;                    /* channel to the janitor */
    int zygote_parent;              /* channel to zygote_parent; -1: none */
    int later[SILT_LAYERS_MAX + 1]; /* descriptors to close after the response is sent */
    size_t nlater;
    /* volume of a ready sandbox that was just claimed: its mark is removed after the response is
     * sent; -1: none */
    int claimed;
    /* prepared network namespaces, private to each worker */
    struct silt_net nets[SILT_PRIV_NETS_MAX];
    uint32_t nnets, nets_wanted;
    struct silt_net captives[SILT_PRIV_CAPTIVES_MAX]; /* likewise, captive ones */
    uint32_t ncaptives, captives_wanted;
};

/* `programs` is the directory of silt-init and silt-fetch. Enters mount_stage: afterwards the
 * machine's files are out of reach. */
/* `gate`: the gateway's namespace, or -1. */
int silt_priv_helper_open(struct silt_priv_helper *u, const struct silt_config *c,
                          const char *programs, int gate, struct silt_error *e);
/* When an instance starts: kills and removes what an earlier one left behind. */
int silt_priv_helper_clear(struct silt_priv_helper *u, struct silt_error *e);

static inline uint32_t silt_priv_helper_ids(const struct silt_priv_helper *u, uint32_t slot)
{
    return u->ids_base + slot * SILT_SLOT_IDS;
}

/* Workers do not know of each other, and a compromised siltd may send several workers requests that
 * it should send one by one. So each staging directory and each slot has a lock, which is released
 * when its holder dies. */
static inline uint32_t silt_priv_staging_lock(uint32_t staging)
{
    return staging;
}
/* Number of the directory, unique among all instances: several may share one directory of images
 * but not each other's ids. */
static inline uint32_t silt_priv_staging_directory(const struct silt_priv_helper *u,
                                                   uint32_t staging)
{
    return u->ids_base / SILT_CONFIG_BLOCK_IDS * SILT_STAGINGS_MAX + staging;
}
static inline uint32_t silt_priv_slot_lock(uint32_t slot)
{
    return SILT_STAGINGS_MAX + slot;
}
int silt_priv_lock(const struct silt_priv_helper *u, uint32_t which, struct silt_error *e);
void silt_priv_unlock(const struct silt_priv_helper *u, uint32_t which);
/* Closes the descriptors in `later`. */
void silt_priv_close_later(struct silt_priv_helper *u);
/* Kills the unpacking processes and moves all staging directories to the trash, as far as
 * possible. */
void silt_priv_discard_stagings(struct silt_priv_helper *u);
