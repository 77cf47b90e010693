/* SPDX-License-Identifier: Apache-2.0 */
/* image: what the files about images share. */
#pragma once

#include "api/api.h"
#include "sandbox/image.h"

/* `name` is NULL for one without. */
void silt_api_answer_image(struct silt_http_request *r, int status, const struct silt_image *i, const char *name);
