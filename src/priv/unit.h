/* SPDX-License-Identifier: Apache-2.0 */
/* unit: all that a worker of silt-priv works with. Opened once by the main process; workers inherit
 * it. It remembers nothing about sandboxes: that is in the kernel and in their volumes. */
#pragma once

#include "config/config.h"
#include "engine/cgroup.h"
#include "engine/net.h"
#include "engine/seccomp.h"
#include "engine/volume.h"

enum { SILT_PRIV_NETS_MAX = 64, SILT_PRIV_CAPTIVES_MAX = 8 };

struct silt_priv_unit {
    uint32_t ids_base, ids_images;
    uint32_t slots;
    struct silt_volumes volumes;
    struct silt_cgroups cgroups;
    struct silt_seccomp seccomp;
    int images;
    int init;  /* program silt-init, sealed */
    int fetch; /* program silt-fetch */
    int home_net, home_uts, home_mnt;
    struct silt_net_gate gate;
    int locks; /* see silt_priv_lock */
    int janitor;                              /* channel */
    int nursery;                              /* channel; -1: there is none */
    int later[SILT_LAYERS_MAX + 1];           /* to be closed when the answer is out */
    size_t nlater;
    int claimed; /* volume of a ready sandbox that is one no more: its note goes when the answer is out; -1: none */
    struct silt_net nets[SILT_PRIV_NETS_MAX]; /* ready ones: a worker's own */
    uint32_t nnets, nets_wanted;
    struct silt_net captives[SILT_PRIV_CAPTIVES_MAX]; /* the same, captive ones */
    uint32_t ncaptives, captives_wanted;
};

/* `programs` is the folder of silt-init and silt-fetch. Sets the stage: afterwards the machine's
 * files are out of reach. */
/* `gate`: the routing namespace, or -1. */
int silt_priv_unit_open(struct silt_priv_unit *u, const struct silt_config *c, const char *programs,
                        int gate, struct silt_error *e);
/* At the start of an instance: ends and removes what an earlier one has left. */
int silt_priv_unit_clear(struct silt_priv_unit *u, struct silt_error *e);

static inline uint32_t silt_priv_unit_ids(const struct silt_priv_unit *u, uint32_t slot)
{
    return u->ids_base + slot * SILT_SLOT_IDS;
}

/* Workers do not know of each other, and a siltd that has been taken over may ask several at once for what it owes us
 * one by one: so each staging folder and each slot has a lock. It is free again when its holder dies. */
static inline uint32_t silt_priv_staging_lock(uint32_t staging)
{
    return staging;
}
static inline uint32_t silt_priv_slot_lock(uint32_t slot)
{
    return SILT_STAGINGS_MAX + slot;
}
int silt_priv_lock(const struct silt_priv_unit *u, uint32_t which, struct silt_error *e);
void silt_priv_unlock(const struct silt_priv_unit *u, uint32_t which);
/* Ends what unpacks there; then the folder goes to the trash. All of them, as far as possible. */
void silt_priv_discard_stagings(struct silt_priv_unit *u);
