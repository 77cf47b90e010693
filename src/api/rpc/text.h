/* SPDX-License-Identifier: Apache-2.0 */
/* text: converts our handlers' JSON to capnweb values: every array wrapped in another one, dates as
 * numbers, errors with their code. Works on the text alone, so a large response is copied once.
 * Pure. */
#pragma once

#include "base/buf.h"

/* The text of a member; false if there is none or `object` is not an object. */
bool silt_rpc_member(silt_slice object, silt_slice name, silt_slice *ret);
/* Converts a value without picking members. */
void silt_rpc_wrap(struct silt_buf *b, silt_slice json);
/* Writes the listed members of an object, in this order; missing ones are left out. `fields` is a
 * space-separated list of:
 *   name           the member
 *   name=other     the response's member `other`, called `name` in the result
 *   name@          a time, converted to a date
 *   name(fields)   an object, or each object of an array, with only these members
 *   name!          a constant: `success` is true, `timestamp` is now, any other is `number` */
void silt_rpc_pick(struct silt_buf *b, silt_slice json, const char *fields, int64_t number);
/* One member instead of an object; `field` uses the same syntax. */
void silt_rpc_pick_one(struct silt_buf *b, silt_slice json, const char *field);

/* Writes an error of ours. `details` is JSON, or empty. */
void silt_rpc_error(struct silt_buf *b, const char *code, silt_slice message, silt_slice details);
/* Converts a handler's error envelope. */
void silt_rpc_refusal(struct silt_buf *b, silt_slice envelope);
/* An error with a JavaScript name instead of a code, such as `TypeError`. */
void silt_rpc_fault(struct silt_buf *b, const char *name, silt_slice message);
