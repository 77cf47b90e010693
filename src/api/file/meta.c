/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/file.h"

#include <stdio.h>
#include <time.h>

bool silt_mime_is_text(silt_slice mime)
{
    static const char *const words[] = {
        "ecmascript",    "javascript",   "json",
        "json-seq",      "rtf",          "sql",
        "toml",          "typescript",   "x-empty",
        "x-httpd-php",   "x-javascript", "x-sh",
        "x-shellscript", "x-typescript", "x-yaml",
        "xml",           "xml-dtd",      "xml-external-parsed-entity",
        "yaml"};
    silt_slice family, sub = mime;
    if (!silt_slice_split(&sub, '/', &family) || sub.data == NULL)
        return false;
    if (silt_slice_eq(family, SILT_LIT("text")) || silt_slice_eq(mime, SILT_LIT("inode/x-empty")))
        return true;
    if (sub.len >= 5 && memcmp(sub.data + sub.len - 5, "+json", 5) == 0)
        return true;
    if (sub.len >= 4 && memcmp(sub.data + sub.len - 4, "+xml", 4) == 0)
        return true;
    for (size_t i = 0; i < SILT_COUNT(words) && silt_slice_eq(family, SILT_LIT("application")); i++)
        if (silt_slice_eq(sub, silt_slice_of(words[i])))
            return true;
    return false;
}

bool silt_file_meta(struct silt_file *f, silt_slice body, struct silt_worker_meta *ret,
                    silt_slice *ret_rest)
{
    return silt_file_has(f, body, sizeof(*ret)) && silt_file_meta_of(body, ret, ret_rest);
}

const char *silt_file_type(uint32_t type)
{
    static const char *const names[] = {[SILT_TYPE_FILE] = "file",
                                        [SILT_TYPE_DIR] = "directory",
                                        [SILT_TYPE_LINK] = "symlink",
                                        [SILT_TYPE_OTHER] = "other"};
    return type >= SILT_TYPE_FILE && type <= SILT_TYPE_OTHER ? names[type] : "other";
}

void silt_file_mode(uint32_t mode, char out[SILT_FILE_MODE_SIZE])
{
    for (int i = 0; i < 9; i++)
        out[i] = (char)((mode >> (8 - i) & 1) != 0 ? "rwx"[i % 3] : '-');
    out[9] = 0;
}

void silt_file_time(int64_t ns, char out[SILT_FILE_TIME_SIZE])
{
    int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
    struct tm t;
    char text[96];
    if (rest < 0) {
        seconds--;
        rest += 1000000000;
    }
    time_t when = seconds;
    (void)gmtime_r(&when, &t);
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%09lld", t.tm_year + 1900,
                   t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (long long)rest);
    (void)snprintf(out, SILT_FILE_TIME_SIZE, "%.*s", SILT_FILE_TIME_SIZE - 1, text);
}
