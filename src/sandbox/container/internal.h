/* SPDX-License-Identifier: Apache-2.0 */
/* internal: functions shared by the files of sandbox/container only. */
#pragma once

#include "sandbox/container/container.h"

#include <signal.h>

enum {
    SILT_CONTAINER_NOT_FOUND_CODE = 127,
    SILT_CONTAINER_KILLED_CODE = 128 + SIGKILL,
    SILT_CONTAINER_SANDBOX_HEX = 40, /* hex digits in a sandbox's name, after `w-` */
};

/* container.c */
void silt_container_enter(struct silt_container *c, enum silt_container_state next);
void silt_container_save(struct silt_container *c);
struct silt_loop *silt_container_loop(const struct silt_container *c);
struct silt_sandbox *silt_container_sandbox(struct silt_container *c); /* NULL: none */
struct silt_container *silt_container_new(struct silt_containers *all);
void silt_container_add(struct silt_container *c); /* to the list and the name table */
void silt_container_free(struct silt_grave *g);
void silt_container_end(struct silt_container *c, int32_t code);
/* `how`: one of the states from ENDING to ENDING_CONDEMNED. */
void silt_container_end_as(struct silt_container *c, int32_t code, enum silt_container_state how);
void silt_container_could_not_start(struct silt_container *c, const struct silt_error *e);

/* program.c: its sandbox and its program. */
void silt_container_on_stop(struct silt_timer *t);
bool silt_container_is_of_another_image(struct silt_container *c, const struct silt_sandbox *s);
void silt_container_be_running(struct silt_container *c);
void silt_container_tell_start(struct silt_container *c); /* it is up: saves and answers that */
void silt_container_watch(struct silt_container *c);
/* Held until the container is started again or removed. */
void silt_container_keep_output(struct silt_container *c, struct silt_process *p);
void silt_container_forget_output(struct silt_container *c);
struct silt_process *silt_container_program(struct silt_sandbox *s); /* NULL: none runs */

/* last_words.c */
void silt_container_forget_last_words(struct silt_container *c);
/* Its program has ended by itself. True: it failed right after its start, and the container stays
 * while clients are told why. */
bool silt_container_hear_last_words(struct silt_container *c, struct silt_process *p, int32_t code);
/* Its program could not be started; note_failure has set the words. Returns the same. */
bool silt_container_tell_failure(struct silt_container *c, int32_t code);

/* size.c: limits from its image's labels. SILT_INVALID: malformed. */
int silt_container_size(const struct silt_registry *r, const struct silt_container_image *image,
                        struct silt_sandbox_options *o, struct silt_error *e);

/* remove.c: removal, and files kept for the next container of its name. */
/* It does not run. `whole`: its files must not be kept. */
void silt_container_remove_now(struct silt_container *c, bool whole);
/* If it was created so, has ended and has no readers. */
void silt_container_remove_itself(struct silt_container *c);
/* Removes files of an earlier container. If that fails, the container can only be removed. */
void silt_container_clear(struct silt_container *c, struct silt_sandbox *s);
/* Of a new container; if it fails, the container is gone. */
int silt_container_take_files(struct silt_container *c, struct silt_error *e);
void silt_containers_expire_files(struct silt_containers *all);

/* wait.c: clients that wait for it. */
void silt_container_tell_waits(struct silt_container *c, bool removed);
void silt_container_tell_asks(struct silt_link *asks, const struct silt_error *e);
/* True if silt-super's number belongs to a kept connection; takes *fd then. */
bool silt_containers_is_of_wait(struct silt_containers *all, uint64_t number, int *fd);

/* sidecar.c: its listening socket, created by silt-super. */
void silt_containers_tell_unlisten(struct silt_containers *all, uint64_t number);
void silt_container_start_sidecar(struct silt_container *c);
void silt_containers_reopen_next(struct silt_containers *all); /* of the shut ones */
void silt_container_was_not_answered(struct silt_container *c);
void silt_container_shut_door(struct silt_container *c);
void silt_container_look_at_sidecar(struct silt_container *c);

/* recover.c: what a new siltd finds, and periodic upkeep. */
void silt_containers_on_upkeep(struct silt_timer *t);

/* intercept.c: the outgoing network. A sidecar has an intercept from its creation to its
 * removal. */
void silt_container_begin_capture(struct silt_container *sidecar);
void silt_container_forget_capture(struct silt_container *sidecar);
void silt_container_choose_network(struct silt_container *c, struct silt_sandbox_options *o);
/* Kept files stay in their network mode and get the number of the new intercept. */
bool silt_container_fits_network(struct silt_container *c, const struct silt_sandbox *s);
void silt_container_give_network(struct silt_container *c, struct silt_sandbox *s);
uint16_t silt_container_egress_port(const struct silt_container *sidecar); /* 0: unknown */

/* trust.c: SANDBOX_INTERCEPT_HTTPS=1 on a builtin control server makes its programs trust the
 * certificate that the engine's client put into the container. */
/* Sets the variables that programs look for; its own values take precedence. */
void silt_container_name_trust(struct silt_container *c);
/* Calls `on_trusted` when done, without an error if nothing was requested. */
int silt_container_trust(struct silt_container *c, struct silt_sandbox *s,
                         void (*on_trusted)(struct silt_container *c, const struct silt_error *e),
                         struct silt_error *e);

void silt_containers_free(struct silt_containers *all); /* container.c; NULL is allowed */
