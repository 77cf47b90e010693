/* SPDX-License-Identifier: Apache-2.0 */
/* image: helpers shared by the image routes. Runs in siltd. */
#pragma once

#include "api/core/api.h"
#include "sandbox/core/image.h"

/* `name` is NULL for an unnamed image. */
void silt_api_answer_image(struct silt_http_request *r, int status, const struct silt_image *i,
                           const char *name);
/* Includes the number of skipped device nodes, if any. */
void silt_api_answer_import(struct silt_http_request *r, const struct silt_image *i,
                            const char *name, uint64_t left_out);
/* Normalizes an image name. False: already answered with an error. */
bool silt_api_image_name(struct silt_http_request *r, silt_slice raw,
                         char ret[SILT_IMAGE_NAME_SIZE]);
/* Accepts everything silt_image_find does. NULL: already answered with an error. */
struct silt_image *silt_api_image_find(struct silt_http_request *r, silt_slice raw);
