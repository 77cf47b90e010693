/* SPDX-License-Identifier: Apache-2.0 */
/* template: the subset of Go templates that `--format` of docker commands needs: text, {{.A.B}},
 * {{.}}, {{json .A}}, {{len .A}}, {{range .A}}…{{end}}, {{if .A}}…{{end}}. */
#pragma once

#include "base/buf.h"
#include "json/json.h"

/* SILT_INVALID: unknown syntax. */
int silt_template_write(silt_slice text, const struct silt_json *value, struct silt_buf *out,
                        struct silt_error *e);
