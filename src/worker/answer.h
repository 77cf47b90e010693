/* SPDX-License-Identifier: Apache-2.0 */
/* answer: the part of HTTP that a readiness probe needs: the status and redirect of a response from
 * a server in the sandbox. Runs in a worker. */
#pragma once

#include "base/slice.h"

enum { SILT_TARGET_SIZE = 3 * 4096 + 16 };

struct silt_answer {
    uint32_t status;
    silt_slice location; /* points into the bytes read; empty: none */
};

/* 1: the header is complete, 0: more is needed, -1: not HTTP. Skips 1xx responses. */
int silt_answer_read(silt_slice bytes, struct silt_answer *ret);
/* Turns a path into a request target: adds a leading slash and escapes bytes that would end it.
 * False: too long. */
bool silt_target_of(silt_slice path, char out[SILT_TARGET_SIZE]);
/* If the response redirects to the same port of this machine, sets `target`, the one requested
 * before, to the new one. Else returns false. */
bool silt_answer_redirect(const struct silt_answer *a, uint16_t port,
                          char target[SILT_TARGET_SIZE]);
