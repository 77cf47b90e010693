/* SPDX-License-Identifier: Apache-2.0 */
/* table: the process records of a sandbox, including processes that have ended. Records are kept in
 * the store, bounded in number, and freed when nothing uses them any more. Runs in siltd. */
#pragma once

#include "sandbox/process/process.h"

/* Adds it to the sandbox's list, not yet to the store. */
struct silt_process *silt_process_table_new(struct silt_sandbox *s);
/* Takes the strings. */
void silt_process_table_load(struct silt_sandbox *s, struct silt_process_row *row);
/* The sandbox is gone: removes its records. */
void silt_process_table_forget_all(struct silt_sandbox *s);
void silt_process_table_save(struct silt_process *p);
/* The same, for a caller that cannot go on without it. */
int silt_process_table_store(struct silt_process *p, struct silt_error *e);
void silt_process_table_save_all(struct silt_sandbox *s);
void silt_process_table_unlist(struct silt_process *p);
void silt_process_table_remove(struct silt_process *p); /* and its log */
void silt_process_table_remove_log(struct silt_process *p);
/* Removes an ended process after a minute, if its creator asked for that. */
void silt_process_table_clean_up_later(struct silt_process *p);
/* Removes the oldest ended processes that have no readers. SILT_LIMIT if all of them run. */
int silt_process_table_make_room(struct silt_sandbox *s, struct silt_error *e);
uint64_t silt_process_table_log_bytes(const struct silt_process *p);
/* Calls every watch and detaches it. */
void silt_process_table_tell(struct silt_process *p, enum silt_process_event what,
                             const struct silt_error *e);
