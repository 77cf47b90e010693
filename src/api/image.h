/* SPDX-License-Identifier: Apache-2.0 */
/* image: what the files about images share. */
#pragma once

#include "api/api.h"
#include "sandbox/image.h"

/* `name` is NULL for one without. */
void silt_api_answer_image(struct silt_http_request *r, int status, const struct silt_image *i, const char *name);
/* With the number of device nodes that were left out, if any were. */
void silt_api_answer_import(struct silt_http_request *r, const struct silt_image *i, const char *name, uint64_t left_out);
/* A name in its one spelling. False: refused. */
bool silt_api_image_name(struct silt_http_request *r, silt_slice raw, char ret[SILT_IMAGE_NAME_SIZE]);
/* By whatever silt_image_find takes. NULL: refused. */
struct silt_image *silt_api_image_find(struct silt_http_request *r, silt_slice raw);
