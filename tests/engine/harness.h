/* SPDX-License-Identifier: Apache-2.0 */
/* harness: a silt-priv of its own for the engine's tests, with the test in the place of silt-super
 * and of siltd, and a world to run in: state directory, btrfs pool, images, instance name and block
 * of ids. */
#pragma once

#include "base/fd.h"
#include "engine/network/gateway.h"
#include "internet.h"
#include "wire/priv.h"

#include <stdbool.h>

enum {
    IMAGE_PLAIN = 1,
    SLOTS = 256,
    CONNECTIONS = 64
}; /* an image's digest is its number, repeated */

struct world {
    char directory[64]; /* everything of this world lies below */
    char programs[96];  /* silt-priv, silt-init (the puppet), silt-fetch */
    char instance[8];
    uint32_t ids_base, ids_images;
    const char *cgroup;
    struct internet internet;
    struct silt_gateway gate; /* ns -1: this machine has no nftables */
    unsigned zygotes;         /* of silt-priv's settings */
    pid_t priv;
    int super; /* our end: silt-super's */
    int siltd; /* our end: siltd's */
    uint64_t seq;
};

/* Aborts the program with a reason when the world cannot be made. `build`: directory of the
 * programs.
 */
void world_open(struct world *w, const char *build);
void world_close(struct world *w); /* nothing of it is left */
void world_start_priv(struct world *w, bool fresh);
void world_end_priv(struct world *w);     /* SIGTERM, waits */
void world_crash_priv(struct world *w);   /* SIGKILL of the main process, waits */
void world_kill_workers(struct world *w); /* SIGKILL of every child of silt-priv's main process */
void world_new_siltd(struct world *w);    /* hangs up, and a new siltd takes over */
/* A directory of a new image with the usual empty directories in it; the path is static. */
const char *world_image(struct world *w, unsigned number);
/* The number of that staging directory of this instance. */
unsigned world_staging(const struct world *w, unsigned staging);

/* Sends; *answer->ok tells. Descriptors of the answer are the caller's. */
void ask(struct world *w, struct silt_priv_request *q, const int *fds, int nfds,
         struct silt_priv_answer *ret, struct silt_parcel *ret_fds);
/* Without descriptors: true when it went well; the error otherwise in w's last_error. */
bool tell(struct world *w, enum silt_priv_op op, uint32_t slot);
const char *last_error(void);
enum silt_code last_code(void);

struct box {
    uint32_t slot;
    int channel; /* to the puppet */
    int pidfd;
};

extern const struct silt_priv_limits ordinary_limits;
struct silt_priv_request create_request(uint32_t slot, unsigned image, uint32_t flags);
bool box_create_by(struct world *w, struct silt_priv_request *q, struct box *ret);
bool box_create(struct world *w, uint32_t slot, uint32_t flags, struct box *ret);
/* The puppet's answer; static. "" when it is gone. */
const char *box_say(struct box *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void box_close(struct box *b);
bool box_is_dead(const struct box *b);
