/* SPDX-License-Identifier: Apache-2.0 */
/* nearest: finds the name that somebody probably meant, for "did you mean". Pure. */
#pragma once

#include "base/slice.h"

enum { SILT_NEAREST_MAX = 128 }; /* longer names are near to nothing */

/* How many letters must be added, removed, replaced or swapped with their neighbour; SIZE_MAX if
 * one of the names is too long. */
size_t silt_nearest_distance(silt_slice a, silt_slice b);
/* 0: the same name in another spelling (sleep_after, sleepAfter). Larger: less alike. SIZE_MAX: not
 * alike. */
size_t silt_nearest_unlikeness(silt_slice given, silt_slice known);
