/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/native.h"

#include <stdio.h>

bool silt_native_path(struct silt_file *f)
{
    silt_slice raw = silt_query(f->request, SILT_LIT("path"));
    const char *wrong = NULL;
    if (raw.data != NULL && !silt_query_decode(f->request, raw, &f->path))
        wrong = "is badly escaped";
    if (wrong == NULL)
        wrong = silt_file_check_path(f->path);
    if (wrong != NULL)
        silt_api_refuse_value(f->request, "path", wrong, "INVALID_PATH");
    return wrong == NULL;
}

bool silt_native_mode(silt_slice text, uint32_t *ret)
{
    uint32_t mode = 0;
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '7')
            return false;
        mode = mode * 8 + (uint32_t)(text.data[i] - '0');
    }
    *ret = mode;
    return mode <= 07777;
}

void silt_native_etag(const struct silt_worker_meta *m, char out[SILT_ETAG_SIZE])
{
    (void)snprintf(out, SILT_ETAG_SIZE, "\"%llx-%llx-%llx-%llx\"", (unsigned long long)m->ino,
                   (unsigned long long)m->size, (unsigned long long)m->mtime_ns,
                   (unsigned long long)m->ctime_ns);
}

void silt_native_octal(struct silt_buf *b, uint32_t mode)
{
    char text[8];
    (void)snprintf(text, sizeof(text), "%04o", mode & 07777);
    silt_json_key(b, SILT_LIT("mode"));
    silt_json_string(b, silt_slice_of(text));
}

void silt_native_time(struct silt_buf *b, const char *key, int64_t ns)
{
    char text[SILT_FILE_TIME_SIZE + 1];
    silt_file_time(ns, text);
    size_t len = strlen(text);
    text[len] = 'Z';
    silt_json_key(b, silt_slice_of(key));
    silt_json_string(b, (silt_slice){text, len + 1});
}

void silt_native_meta(struct silt_buf *b, const struct silt_worker_meta *m)
{
    char etag[SILT_ETAG_SIZE];
    silt_native_etag(m, etag);
    silt_json_key(b, SILT_LIT("type"));
    silt_json_string(b, silt_slice_of(silt_file_type(m->type)));
    silt_json_add_u64(b, "size", m->size);
    silt_native_octal(b, m->mode);
    silt_json_add_u64(b, "uid", m->uid);
    silt_json_add_u64(b, "gid", m->gid);
    silt_json_add_u64(b, "inode", m->ino);
    silt_json_add_u64(b, "links", m->nlink);
    silt_native_time(b, "modifiedAt", m->mtime_ns);
    silt_native_time(b, "changedAt", m->ctime_ns);
    silt_json_key(b, SILT_LIT("etag"));
    silt_json_string(b, silt_slice_of(etag));
}

bool silt_native_again(struct silt_file *f, uint32_t op)
{
    struct silt_error e;
    f->ask.op = op;
    if (silt_work_start(f->call->sandbox, &f->ask, &f->sink, &f->work, &e) == 0)
        return true;
    if (f->kind->failed != NULL)
        f->kind->failed(f, &e);
    else
        silt_file_refuse(f, &e);
    return false;
}
