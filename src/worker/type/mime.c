/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/type/mime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_MAX = 32 << 10 };

struct row {
    const char *extension, *type;
};

/* Sorted by extension, for bsearch. Case-sensitive. */
static const struct row rows[] = {
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/x-aac"},
    {"atom", "application/atom+xml"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bat", "application/x-msdownload"},
    {"bmp", "image/x-ms-bmp"},
    {"bz2", "application/x-bzip2"},
    {"c", "text/x-c"},
    {"cc", "text/x-c"},
    {"cjs", "text/javascript"},
    {"class", "application/java-vm"},
    {"conf", "text/plain"},
    {"cpp", "text/x-c"},
    {"crt", "application/x-x509-ca-cert"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"cts", "text/javascript"},
    {"cxx", "text/x-c"},
    {"der", "application/x-x509-ca-cert"},
    {"dll", "application/x-msdownload"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"epub", "application/epub+zip"},
    {"exe", "application/x-msdownload"},
    {"flac", "audio/x-flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"h", "text/x-c"},
    {"heic", "image/heic"},
    {"hh", "text/x-c"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/x-icon"},
    {"ics", "text/calendar"},
    {"ini", "text/plain"},
    {"jar", "application/java-archive"},
    {"java", "text/x-java-source"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"json5", "application/json5"},
    {"jsx", "text/javascript"},
    {"key", "application/x-iwork-keynote-sffkey"},
    {"latex", "application/x-latex"},
    {"less", "text/less"},
    {"log", "text/plain"},
    {"lua", "text/x-lua"},
    {"m4a", "audio/x-m4a"},
    {"map", "application/json"},
    {"markdown", "text/markdown"},
    {"md", "text/markdown"},
    {"mjs", "text/javascript"},
    {"mkv", "video/x-matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"mts", "text/javascript"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"pem", "application/x-x509-ca-cert"},
    {"php", "application/x-httpd-php"},
    {"pl", "application/x-perl"},
    {"pm", "application/x-perl"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"rar", "application/x-rar-compressed"},
    {"rs", "application/rls-services+xml"},
    {"rss", "application/rss+xml"},
    {"rtf", "text/rtf"},
    {"sass", "text/x-sass"},
    {"scss", "text/x-scss"},
    {"sh", "application/x-sh"},
    {"sql", "application/x-sql"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tex", "application/x-tex"},
    {"text", "text/plain"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ts", "text/javascript"},
    {"tsv", "text/tab-separated-values"},
    {"tsx", "text/javascript"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain"},
    {"vcf", "text/x-vcard"},
    {"war", "application/java-archive"},
    {"wasm", "application/wasm"},
    {"wav", "audio/x-wav"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xsd", "application/xml"},
    {"xsl", "application/xslt+xml"},
    {"xz", "application/x-xz"},
    {"yaml", "text/yaml"},
    {"yml", "text/yaml"},
    {"zip", "application/zip"},
};

static int compare(const void *extension, const void *row)
{
    return strcmp(extension, ((const struct row *)row)->extension);
}

/* The text after the name's last dot; a leading dot makes a hidden file, not an extension. */
static const char *by_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (dot == NULL || dot == name)
        return NULL;
    const struct row *r =
        bsearch(dot + 1, rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]), compare);
    return r != NULL ? r->type : NULL;
}

static void put(const char *type, char out[SILT_WORKER_MIME_SIZE])
{
    (void)snprintf(out, SILT_WORKER_MIME_SIZE, "%s", type);
}

void silt_mime_of(const char *path, silt_slice head, char out[SILT_WORKER_MIME_SIZE])
{
    const char *type = by_name(path);
    if (head.len > HEAD_MAX)
        head.len = HEAD_MAX;
    put(type != NULL ? type : silt_sniff(head), out);
}

int silt_mime_find(const char *path, int fd, char out[SILT_WORKER_MIME_SIZE], struct silt_error *e)
{
    static char head[HEAD_MAX];
    const char *type = by_name(path);
    ssize_t n = 0;
    if (type == NULL) {
        do
            n = pread(fd, head, sizeof(head), 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return silt_fail_errno(e, "read %s", path);
        type = silt_sniff((silt_slice){head, (size_t)n});
    }
    put(type, out);
    return 0;
}

const char *silt_mime_of_mode(mode_t mode)
{
    if (S_ISDIR(mode))
        return "inode/directory";
    if (S_ISLNK(mode))
        return "inode/symlink";
    if (S_ISFIFO(mode))
        return "inode/fifo";
    if (S_ISSOCK(mode))
        return "inode/socket";
    return S_ISCHR(mode) ? "inode/chardevice" : "inode/blockdevice";
}
