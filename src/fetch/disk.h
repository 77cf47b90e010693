/* SPDX-License-Identifier: Apache-2.0 */
/* disk: entries of a stranger's tar become files in the current folder, or an error that names the
 * entry.
 *
 * Nothing is written outside the folder: no entry is absolute, climbs by `..`, passes through a
 * symbolic link (but those that lie there from another layer, which are followed inside) or is a
 * hard link to something else. Owners stay as numbers, modes and times stay; extended attributes
 * (file capabilities, overlay's marks) and device nodes are left out. */
#pragma once

#include "fetch/stream.h"

struct silt_disk {
    struct archive *out;
    int folder; /* the current one */
    const struct silt_archive_limits *limits; /* borrowed */
    struct silt_fetch_result *result;         /* borrowed: bytes, entries and left_out grow */
    bool layer;          /* it lies on others: what is in the way goes */
    char path[PATH_MAX]; /* of the entry at hand */
};

int silt_disk_open(struct silt_disk *d, const struct silt_archive_limits *limits,
                   struct silt_fetch_result *result, struct silt_error *e);
void silt_disk_close(struct silt_disk *d); /* fine when it could not be opened */
/* Checks and counts it; its path is clean then, and in d->path: empty for the root. */
int silt_disk_take(struct silt_disk *d, struct archive_entry *entry, struct silt_error *e);
/* One that was taken. */
int silt_disk_write(struct silt_disk *d, struct silt_stream *s, struct archive_entry *entry,
                    struct silt_error *e);
/* Times and modes of folders. */
int silt_disk_finish(struct silt_disk *d, struct silt_error *e);
/* "entry usr/bin/x: why" */
int silt_disk_refuse(struct silt_disk *d, const char *why, struct silt_error *e);
