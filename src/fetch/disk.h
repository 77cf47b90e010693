/* SPDX-License-Identifier: Apache-2.0 */
/* disk: writes entries of an untrusted tar as files into the current directory, or fails with an
 * error that names the entry.
 *
 * Nothing is written outside the directory: no entry may be absolute, contain `..`, pass through a
 * symbolic link (except links of lower layers, which are followed inside the directory) or be a
 * hard link to something else. Owners stay as numbers, modes and times are kept; extended
 * attributes (file capabilities, overlay's marks) and device nodes are left out. */
#pragma once

#include "fetch/stream.h"

struct silt_disk {
    struct archive *out;
    int directory;                            /* the current one */
    const struct silt_archive_limits *limits; /* borrowed */
    struct silt_fetch_result *result; /* borrowed: bytes, entries and left_out are added up */
    bool layer;                       /* on top of other layers: replaces what is in the way */
    char path[PATH_MAX];              /* of the current entry */
};

int silt_disk_open(struct silt_disk *d, const struct silt_archive_limits *limits,
                   struct silt_fetch_result *result, struct silt_error *e);
void silt_disk_close(struct silt_disk *d); /* fine if open failed */
/* Checks and counts the entry; d->path is its clean path, empty for the root. */
int silt_disk_take(struct silt_disk *d, struct archive_entry *entry, struct silt_error *e);
/* Writes an entry that was taken. */
int silt_disk_write(struct silt_disk *d, struct silt_stream *s, struct archive_entry *entry,
                    struct silt_error *e);
/* Sets times and modes of directories. */
int silt_disk_finish(struct silt_disk *d, struct silt_error *e);
/* Fails with "entry usr/bin/x: why". */
int silt_disk_refuse(struct silt_disk *d, const char *why, struct silt_error *e);
