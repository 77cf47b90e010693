/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/item.h"

#include <stdio.h>

/* Items are padded to 8 bytes after their text. */
static bool cut(silt_slice *body, size_t head, uint64_t text)
{
    uint64_t size = head + (text + 7) / 8 * 8;
    if (size > body->len)
        return false;
    body->data += size;
    body->len -= (size_t)size;
    return true;
}

bool silt_file_entry(silt_slice *body, struct silt_worker_entry *ret, silt_slice *ret_name)
{
    if (body->len < sizeof(*ret))
        return false;
    const char *text = body->data + sizeof(*ret);
    memcpy(ret, body->data, sizeof(*ret));
    if (ret->name_len == 0 || ret->name_len > SILT_WORKER_PATH_MAX
        || !cut(body, sizeof(*ret), ret->name_len))
        return false;
    *ret_name = (silt_slice){text, ret->name_len};
    return true;
}

bool silt_file_match(silt_slice *body, struct silt_worker_match *ret, silt_slice *ret_path,
                     silt_slice *ret_text)
{
    if (body->len < sizeof(*ret))
        return false;
    const char *text = body->data + sizeof(*ret);
    memcpy(ret, body->data, sizeof(*ret));
    if (ret->path_len > SILT_WORKER_PATH_MAX
        || !cut(body, sizeof(*ret), (uint64_t)ret->path_len + ret->text_len))
        return false;
    *ret_path = (silt_slice){text, ret->path_len};
    *ret_text = (silt_slice){text + ret->path_len, ret->text_len};
    return true;
}

static bool is_mime(silt_slice s)
{
    size_t slashes = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        slashes += c == '/';
        if (!letter && !silt_is_any(c, "/.+-_!#$&^"))
            return false;
    }
    return slashes == 1;
}

bool silt_file_meta_of(silt_slice body, struct silt_worker_meta *ret, silt_slice *ret_rest)
{
    if (body.len < sizeof(*ret))
        return false;
    memcpy(ret, body.data, sizeof(*ret));
    ret->mime[sizeof(ret->mime) - 1] = 0;
    if (!is_mime(silt_slice_of(ret->mime)))
        (void)snprintf(ret->mime, sizeof(ret->mime), "application/octet-stream");
    *ret_rest = (silt_slice){body.data + sizeof(*ret), body.len - sizeof(*ret)};
    return true;
}
