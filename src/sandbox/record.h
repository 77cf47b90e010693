/* SPDX-License-Identifier: Apache-2.0 */
/* record: the processes that a sandbox knows, those that are over too: kept in the store, bounded, and gone when
 * nobody uses them any more. */
#pragma once

#include "sandbox/process.h"

struct silt_process *silt_record_new(struct silt_sandbox *s); /* in its list, not yet in the store */
void silt_record_load(struct silt_sandbox *s, struct silt_process_row *row); /* takes the strings */
void silt_record_forget_all(struct silt_sandbox *s); /* the sandbox is gone: its records go */
void silt_record_save(struct silt_process *p);
void silt_record_unlist(struct silt_process *p);
void silt_record_remove(struct silt_process *p); /* with its log */
void silt_record_remove_log(struct silt_process *p);
/* It is over, and goes in a minute if it was asked to. */
void silt_record_clean_up_later(struct silt_process *p);
/* The oldest that are over go first, unless somebody reads them. SILT_LIMIT when all that is there runs. */
int silt_record_make_room(struct silt_sandbox *s, struct silt_error *e);
uint64_t silt_record_log_bytes(const struct silt_process *p);
/* Each watch hears of it, and watches no more. */
void silt_record_tell(struct silt_process *p, enum silt_process_event what, const struct silt_error *e);
