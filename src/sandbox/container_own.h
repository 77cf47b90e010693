/* SPDX-License-Identifier: Apache-2.0 */
/* container_own: what the files about containers share with each other and nobody else. */
#pragma once

#include "sandbox/container.h"

#include <signal.h>

enum {
    SILT_CONTAINER_KILLED_CODE = 128 + SIGKILL,
    SILT_CONTAINER_SANDBOX_HEX = 40, /* digits in the name of a sandbox, after `w-` */
};

/* container.c */
void silt_container_enter(struct silt_container *c, enum silt_container_state next);
void silt_container_save(struct silt_container *c);
struct silt_loop *silt_container_loop(const struct silt_container *c);
struct silt_sandbox *silt_container_sandbox(struct silt_container *c); /* NULL: there is none */
struct silt_container *silt_container_new(struct silt_containers *all);
void silt_container_add(struct silt_container *c); /* to the list, under its name */
void silt_container_free(struct silt_grave *g);
void silt_container_end(struct silt_container *c, int32_t code);
void silt_container_could_not_start(struct silt_container *c, const struct silt_error *e);

/* container_program.c: its sandbox and what runs there. */
void silt_container_on_stop(struct silt_timer *t);
bool silt_container_is_of_another_image(struct silt_container *c, const struct silt_sandbox *s);
void silt_container_be_running(struct silt_container *c);
void silt_container_watch(struct silt_container *c);
void silt_container_keep_output(struct silt_container *c, struct silt_process *p); /* until it is started again, or removed */
void silt_container_forget_output(struct silt_container *c);
struct silt_process *silt_container_program(struct silt_sandbox *s); /* NULL: none runs */

/* container_words.c. Of a program that has ended by itself: */
void silt_container_hear_last_words(struct silt_container *c, struct silt_process *p, int32_t code);
void silt_container_note_failure(struct silt_container *c, const struct silt_error *e);

/* container_size.c: what its image says about that. SILT_INVALID: nonsense. */
int silt_container_size(const struct silt_registry *r, const struct silt_container_image *image, struct silt_sandbox_options *o,
                        struct silt_error *e);

/* container_remove.c: its removal, and files that wait for the next of its name. */
void silt_container_remove_now(struct silt_container *c);
void silt_container_remove_itself(struct silt_container *c); /* if it was made so, has ended, and nobody reads it any more */
void silt_container_clear(struct silt_container *c, struct silt_sandbox *s);
void silt_container_take_files(struct silt_container *c);
void silt_containers_expire_files(struct silt_containers *all);

/* container_wait.c: who waits for it. */
void silt_container_tell_waits(struct silt_container *c, bool removed);
void silt_container_tell_asks(struct silt_link *asks, const struct silt_error *e);
/* Whether silt-super's number is that of a connection it kept; takes *fd then. */
bool silt_containers_is_of_wait(struct silt_containers *all, uint64_t number, int *fd);

/* container_sidecar.c: its listening socket, which silt-super makes. */
void silt_containers_tell_unlisten(struct silt_containers *all, uint64_t number);
void silt_container_start_sidecar(struct silt_container *c);
void silt_containers_reopen_next(struct silt_containers *all); /* of those that are shut */
void silt_container_was_not_answered(struct silt_container *c);
void silt_container_shut_door(struct silt_container *c);
void silt_container_look_at_sidecar(struct silt_container *c);

/* container_settle.c: what a new siltd finds, and what goes with time. */
void silt_containers_on_upkeep(struct silt_timer *t);

/* container_capture.c: the way out. A sidecar has one from its making to its removal. */
void silt_container_begin_capture(struct silt_container *sidecar);
void silt_container_forget_capture(struct silt_container *sidecar);
void silt_container_choose_network(struct silt_container *c, struct silt_sandbox_options *o);
/* Files that were kept stay in their kind of network, and get the number of the new way out. */
bool silt_container_fits_network(struct silt_container *c, const struct silt_sandbox *s);
void silt_container_give_network(struct silt_container *c, struct silt_sandbox *s);
uint16_t silt_container_egress_port(const struct silt_container *sidecar); /* 0: not known */

/* container_trust.c: whoever sets SANDBOX_INTERCEPT_HTTPS=1 on a control server of ours wants its programs to trust the certificate that
 * the engine's client has put into the container. */
void silt_container_name_trust(struct silt_container *c); /* the variables that programs look for; those of its own stay */
/* `on_trusted` is told when it is so, with no error if nothing was wanted. */
int silt_container_trust(struct silt_container *c, struct silt_sandbox *s,
                         void (*on_trusted)(struct silt_container *c, const struct silt_error *e), struct silt_error *e);
