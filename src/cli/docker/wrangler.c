/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/wrangler.h"
#include "base/fd.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

#define PREFIX "cloudflare-dev/" /* of every image that `wrangler dev` builds */

/* Smallest first. */
static const struct {
    const char *name, *old_name;
    double vcpu, memory_mib, disk_mb;
} types[] = {
    {"lite", "dev", 0.0625, 256, 2000},          {"basic", NULL, 0.25, 1024, 4000},
    {"standard-1", "standard", 0.5, 4096, 8000}, {"standard-2", NULL, 1, 6144, 12000},
    {"standard-3", NULL, 2, 8192, 16000},        {"standard-4", NULL, 4, 12288, 20000},
};

/* The end of a string or comment that begins at i; i if none does. */
static size_t skip_string(const char *text, size_t len, size_t i)
{
    if (text[i] != '"')
        return i;
    for (i++; i < len && text[i] != '"'; i++)
        i += text[i] == '\\';
    return i < len ? i + 1 : len;
}

static size_t skip_comment(const char *text, size_t len, size_t i)
{
    if (text[i] != '/' || i + 1 >= len || (text[i + 1] != '/' && text[i + 1] != '*'))
        return i;
    const char *end = text[i + 1] == '/' ? memchr(text + i, '\n', len - i)
                                         : memmem(text + i + 2, len - i - 2, "*/", 2);
    return end == NULL ? len : (size_t)(end - text) + (text[i + 1] == '/' ? 0 : 2);
}

void silt_wrangler_plain(char *text, size_t len)
{
    size_t comma = len;
    for (size_t i = 0, next; i < len; i = next) {
        next = skip_string(text, len, i);
        if (next > i) {
            comma = len;
            continue;
        }
        next = skip_comment(text, len, i);
        if (next > i) {
            memset(text + i, ' ', next - i);
            continue;
        }
        next = i + 1;
        if ((text[i] == '}' || text[i] == ']') && comma < len)
            text[comma] = ' ';
        if (!silt_is_any(text[i], " \t\r\n"))
            comma = text[i] == ',' ? i : len;
    }
}

static int read_config(struct silt_arena *a, const struct silt_json **ret, struct silt_error *e)
{
    static const char *const names[] = {"wrangler.json",
                                        "wrangler.jsonc"}; /* in wrangler's order */
    silt_auto_free char *text = NULL;
    size_t len = 0;
    *ret = NULL;
    for (size_t i = 0; i < SILT_COUNT(names); i++) {
        if (silt_fd_read_file(AT_FDCWD, names[i], FILE_MAX, &text, &len, e) < 0)
            continue;
        silt_wrangler_plain(text, len);
        char *copy = silt_arena_dup(a, (silt_slice){text, len});
        if (copy == NULL || silt_json_read(a, (silt_slice){copy, len}, ret, e) < 0)
            return copy == NULL ? silt_fail(e, SILT_LIMIT, "%s is too large", names[i])
                                : silt_because(e, "%s", names[i]);
        return 0;
    }
    return 0;
}

static silt_slice text_of(const struct silt_json *o, const char *name)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    return v != NULL && v->type == SILT_JSON_STRING ? v->string : (silt_slice){"", 0};
}

static double number_of(const struct silt_json *o, const char *name)
{
    const struct silt_json *v = silt_json_get(o, silt_slice_of(name));
    return v == NULL                     ? 0
           : v->type == SILT_JSON_INT    ? (double)v->integer
           : v->type == SILT_JSON_DOUBLE ? v->number
                                         : 0;
}

/* cloudflare-dev/CLASS:… belongs to that class; an image that a person builds, to the only one. */
static const struct silt_json *find_container(const struct silt_json *config, const char *tag)
{
    const struct silt_json *list = silt_json_get(config, SILT_LIT("containers"));
    size_t prefix = strlen(PREFIX);
    if (list == NULL || list->type != SILT_JSON_ARRAY)
        return NULL;
    if (strncmp(tag, PREFIX, prefix) != 0)
        return list->items.count == 1 ? list->items.first : NULL;
    silt_slice name = {tag + prefix, strcspn(tag + prefix, ":@")};
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next)
        if (silt_slice_ieq(text_of(i, "class_name"), name))
            return i;
    return NULL;
}

static const char *find_type(const struct silt_json *wanted)
{
    if (wanted == NULL)
        return NULL;
    for (size_t i = 0; wanted->type == SILT_JSON_STRING && i < SILT_COUNT(types); i++)
        if (silt_slice_eq(wanted->string, silt_slice_of(types[i].name))
            || (types[i].old_name != NULL
                && silt_slice_eq(wanted->string, silt_slice_of(types[i].old_name))))
            return types[i].name;
    if (wanted->type != SILT_JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < SILT_COUNT(types) - 1;
         i++) /* a custom size: the smallest type that fits it */
        if (number_of(wanted, "vcpu") <= types[i].vcpu
            && number_of(wanted, "memory_mib") <= types[i].memory_mib
            && number_of(wanted, "disk_mb") <= types[i].disk_mb)
            return types[i].name;
    return types[SILT_COUNT(types) - 1].name;
}

int silt_wrangler_size(struct silt_arena *a, const char *tag, struct silt_wrangler_size *ret,
                       struct silt_error *e)
{
    const struct silt_json *config;
    *ret = (struct silt_wrangler_size){0};
    if (read_config(a, &config, e) < 0)
        return -1;
    const struct silt_json *container = config != NULL ? find_container(config, tag) : NULL;
    if (container == NULL)
        return 0;
    double count = number_of(container, "max_instances");
    ret->type = find_type(silt_json_get(container, SILT_LIT("instance_type")));
    ret->max_instances = count >= 1 && count <= 1000000 ? (uint64_t)count : 0;
    return 0;
}

bool silt_wrangler_pulls(struct silt_arena *a, silt_slice *ret_image)
{
    const struct silt_json *config = NULL, *list;
    struct silt_error ignored;
    char path[PATH_MAX];
    if (read_config(a, &config, &ignored) < 0 || config == NULL)
        return false;
    list = silt_json_get(config, SILT_LIT("containers"));
    if (list == NULL || list->type != SILT_JSON_ARRAY)
        return false;
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next) {
        *ret_image = text_of(i, "image");
        if (ret_image->len > 0 && silt_slice_to_path(*ret_image, path, &ignored) == 0
            && access(path, F_OK) < 0)
            return true;
    }
    return false;
}
