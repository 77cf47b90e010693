/* SPDX-License-Identifier: Apache-2.0 */
/* disk_full: events of type diskFull. One for a sandbox that has used up its own limit, at most
 * once a minute; one for the pool of all when it becomes full. Runs in siltd. */
#pragma once

struct silt_registry;
struct silt_sandbox;

/* Something in this sandbox, which may be NULL, has found no room. */
void silt_disk_full_note(struct silt_registry *r, struct silt_sandbox *s);
/* Now and then: whether the pool has become full, or is so no more. */
void silt_disk_full_look(struct silt_registry *r);
