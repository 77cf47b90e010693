/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/json/tree.h"

static void write_items(struct silt_buf *b, const struct silt_json *v)
{
    for (const struct silt_json *m = v->items.first; m != NULL; m = m->next) {
        if (v->type == SILT_JSON_OBJECT)
            silt_json_key(b, m->key);
        tree_write(b, m);
    }
}

void tree_write(struct silt_buf *b, const struct silt_json *v)
{
    switch (v->type) {
    case SILT_JSON_NULL:
        silt_json_null(b);
        return;
    case SILT_JSON_BOOL:
        silt_json_bool(b, v->boolean);
        return;
    case SILT_JSON_INT:
        silt_json_i64(b, v->integer);
        return;
    case SILT_JSON_DOUBLE:
        silt_json_double(b, v->number);
        return;
    case SILT_JSON_STRING:
        silt_json_string(b, v->string);
        return;
    case SILT_JSON_ARRAY:
        silt_json_open(b, '[');
        write_items(b, v);
        silt_json_close(b, ']');
        return;
    case SILT_JSON_OBJECT:
        silt_json_open(b, '{');
        write_items(b, v);
        silt_json_close(b, '}');
        return;
    }
}
