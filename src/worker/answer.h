/* SPDX-License-Identifier: Apache-2.0 */
/* answer: as much of HTTP as it takes to look whether a server in the sandbox is ready: the status
 * of an answer and where it sends the reader. */
#pragma once

#include "base/slice.h"

enum { SILT_TARGET_SIZE = 3 * 4096 + 16 };

struct silt_answer {
    uint32_t status;
    silt_slice location; /* of the bytes read; empty: none */
};

/* 1: the head is whole, 0: more is needed, -1: it is not HTTP. Heads of 1xx are passed over. */
int silt_answer_read(silt_slice bytes, struct silt_answer *ret);
/* A path as a request target: a slash in front, no byte that would end it. False: too long. */
bool silt_target_of(silt_slice path, char out[SILT_TARGET_SIZE]);
/* When the answer leads to the same port of this machine: the target becomes that. Else false.
 * `target` is the one that was asked for. */
bool silt_answer_redirect(const struct silt_answer *a, uint16_t port,
                          char target[SILT_TARGET_SIZE]);
