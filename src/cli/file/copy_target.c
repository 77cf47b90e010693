/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/copy_target.h"
#include "base/buf.h"

int silt_copy_target_parse(const char *word, struct silt_copy_target *ret, struct silt_error *e)
{
    size_t head = strcspn(word, ":/");
    *ret = (struct silt_copy_target){.kind = SILT_COPY_TARGET_LOCAL, .word = word};
    if (word[0] == 0)
        return silt_fail(e, SILT_INVALID, "an empty path");
    if (strcmp(word, "-") == 0)
        ret->kind = SILT_COPY_TARGET_STDIO;
    if (head == 0 || word[head] != ':')
        return silt_slice_to_path(silt_slice_of(word), ret->path, e);
    ret->kind = SILT_COPY_TARGET_BOX;
    if (silt_id_check((silt_slice){word, head}, e) < 0
        || silt_slice_to_cstr((silt_slice){word, head}, ret->id, sizeof(ret->id), e) < 0
        || silt_slice_to_cstr(silt_slice_of(word + head + 1), ret->path, PATH_MAX, e) < 0)
        return silt_because(e, "%s (a local file with a colon is ./%s)", word, word);
    return 0;
}

silt_slice silt_copy_target_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    silt_slice name = {path + start, end - start};
    bool dots = silt_slice_eq(name, SILT_LIT(".")) || silt_slice_eq(name, SILT_LIT(".."));
    return dots ? SILT_LIT("") : name;
}

bool silt_copy_target_is_directory(const char *path)
{
    size_t len = strlen(path);
    return len > 0 && path[len - 1] == '/';
}

int silt_copy_target_add(char path[PATH_MAX], silt_slice name, struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, 2 * (size_t)PATH_MAX);
    silt_buf_add(&b, silt_slice_of(path));
    if (path[0] != 0 && name.len > 0 && !silt_copy_target_is_directory(path))
        silt_buf_add_byte(&b, '/');
    silt_buf_add(&b, name);
    return silt_slice_to_cstr(silt_buf_slice(&b), path, PATH_MAX, e);
}
