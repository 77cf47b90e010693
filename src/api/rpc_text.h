/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_text: answers of our handlers, which are JSON, as capnweb writes them: every array in one more, dates as numbers, errors with
 * their code. Works on the text alone: a large answer is copied once. */
#pragma once

#include "base/buf.h"

/* The text of a member; false: there is none, or `object` is no object. */
bool silt_rpc_member(silt_slice object, silt_slice name, silt_slice *ret);
/* A value as it is. */
void silt_rpc_wrap(struct silt_buf *b, silt_slice json);
/* Some members of an object, in this order; those that it does not have are left out. `fields` has for each, between spaces:
 *   name           the member
 *   name=other     what the answer calls other
 *   name@          a time, as a date
 *   name(fields)   of an object, or of each object of an array, only these
 *   name!          not of the answer: `success` is true, `timestamp` is now, anything else is `number` */
void silt_rpc_pick(struct silt_buf *b, silt_slice json, const char *fields, int64_t number);
/* One member instead of an object, as a row of `fields`. */
void silt_rpc_pick_one(struct silt_buf *b, silt_slice json, const char *field);

/* An error of ours. `details` is JSON, or empty. */
void silt_rpc_error(struct silt_buf *b, const char *code, silt_slice message, silt_slice details);
/* What a handler refused with. */
void silt_rpc_refusal(struct silt_buf *b, silt_slice envelope);
/* One that no code stands for, as `TypeError`. */
void silt_rpc_fault(struct silt_buf *b, const char *name, silt_slice message);
