/* SPDX-License-Identifier: Apache-2.0 */
/* harness: the model of siltd with silt-priv, silt-super and silt-init played by the test. */
#pragma once

#include "base/fd.h"
#include "sandbox/core/exec.h"
#include "sandbox/core/image.h"

struct harness {
    struct silt_loop loop;
    struct silt_registry registry;
    int priv;    /* silt-priv's end */
    int super;   /* silt-super's end */
    int agent;   /* silt-init's end of the sandbox made last; -1: none */
    int pidfd;   /* what the answer to CREATE carries: the test's own pidfd */
    int log;     /* what the answer to LOG carries; -1: none yet */
    int kept[2]; /* channel and pidfd that silt-super was told to keep last; -1: none */
    uint32_t kept_key;
    uint32_t link;     /* what answers say of the sandbox's network link */
    uint32_t mode;     /* and of its mode */
    uint32_t recorded; /* how many recovery records were sent by themselves */
    char directory[64];
};

int harness_open(struct harness *h);
void harness_close(struct harness *h);
/* A new siltd on the same store; silt-super gives it what was kept. */
int harness_restart(struct harness *h);
void harness_turn(struct harness *h); /* lets the model run until it waits */
/* The next note to silt-super; 0 when there is none, else its type. */
uint32_t harness_told_super(struct harness *h);
/* Takes the next question to silt-priv; false when there is none. CREATE's channel goes to
 * h->agent. Recovery records are taken and answered here: tests are about other things. */
bool harness_asked(struct harness *h, struct silt_priv_request *ret);
void harness_answer(struct harness *h, const struct silt_priv_request *q, bool ok);
/* The next frame siltd sent to the agent; 0 when there is none, else its type. */
struct harness_frame {
    size_t len; /* of the body */
    int fd;     /* what rode along, the caller's; -1: nothing */
    union {
        char bytes[SILT_FRAME_MAX];
        struct silt_frame frame;
    };
};
uint32_t harness_told(struct harness *h, struct harness_frame *ret);
void harness_say(struct harness *h, uint32_t type, uint32_t flags, uint64_t id, const void *body,
                 size_t len);
void harness_welcome(struct harness *h); /* answers HELLO */
/* An image with digest bytes `byte` has this name. */
struct silt_image *harness_image(struct harness *h, const char *name, uint8_t byte);
