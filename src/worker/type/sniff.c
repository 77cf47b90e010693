/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/type/mime.h"

struct mark {
    size_t at;
    silt_slice bytes;
    const char *type;
};

/* Strings are split after an \x where the next letter would count as hex. */
static const struct mark marks[] = {
    {0, SILT_LIT("\x89PNG\r\n\x1a\n"), "image/png"},
    {0, SILT_LIT("\xff\xd8\xff"), "image/jpeg"},
    {0, SILT_LIT("GIF8"), "image/gif"},
    {8, SILT_LIT("WEBP"), "image/webp"},
    {8, SILT_LIT("WAVE"), "audio/x-wav"},
    {8, SILT_LIT("AVI "), "video/x-msvideo"},
    {0, SILT_LIT("II*\0"), "image/tiff"},
    {0, SILT_LIT("MM\0*"), "image/tiff"},
    {0, SILT_LIT("\0\0\1\0"), "image/vnd.microsoft.icon"},
    {0, SILT_LIT("%PDF-"), "application/pdf"},
    {0, SILT_LIT("%!PS"), "application/postscript"},
    {0, SILT_LIT("PK\3\4"), "application/zip"},
    {0, SILT_LIT("PK\5\6"), "application/zip"},
    {0, SILT_LIT("\x1f\x8b"), "application/gzip"},
    {0,
     SILT_LIT("\xfd"
              "7zXZ\0"),
     "application/x-xz"},
    {0, SILT_LIT("\x28\xb5\x2f\xfd"), "application/zstd"},
    {0, SILT_LIT("BZh"), "application/x-bzip2"},
    {0, SILT_LIT("\x04\x22\x4d\x18"), "application/x-lz4"},
    {0, SILT_LIT("7z\xbc\xaf\x27\x1c"), "application/x-7z-compressed"},
    {0, SILT_LIT("Rar!\x1a\x07"), "application/x-rar"},
    {257, SILT_LIT("ustar"), "application/x-tar"},
    {0, SILT_LIT("SQLite format 3\0"), "application/vnd.sqlite3"},
    {0, SILT_LIT("\0asm"), "application/wasm"},
    {0, SILT_LIT("!<arch>\ndebian"), "application/vnd.debian.binary-package"},
    {0, SILT_LIT("!<arch>\n"), "application/x-archive"},
    {0, SILT_LIT("\xca\xfe\xba\xbe\0\0\0"), "application/x-java-applet"},
    {0, SILT_LIT("fLaC"), "audio/flac"},
    {0, SILT_LIT("OggS\0"), "audio/ogg"},
    {0, SILT_LIT("ID3\2"), "audio/mpeg"},
    {0, SILT_LIT("ID3\3"), "audio/mpeg"},
    {0, SILT_LIT("ID3\4"), "audio/mpeg"},
    {4, SILT_LIT("ftypqt"), "video/quicktime"},
    {4, SILT_LIT("ftypM4A"), "audio/x-m4a"},
    {4, SILT_LIT("ftypavif"), "image/avif"},
    {4, SILT_LIT("ftypheic"), "image/heic"},
    {4, SILT_LIT("ftyp"), "video/mp4"},
    {0, SILT_LIT("\x1a\x45\xdf\xa3"), "video/x-matroska"},
    {0, SILT_LIT("wOFF"), "font/woff"},
    {0, SILT_LIT("wOF2"), "font/woff2"},
    {0, SILT_LIT("OTTO\0"), "application/vnd.ms-opentype"},
    {0, SILT_LIT("\0\1\0\0\0"), "font/sfnt"},
    {0, SILT_LIT("{\\rtf"), "text/rtf"},
    {0, SILT_LIT("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "application/x-ole-storage"},
};

static bool has(silt_slice s, size_t at, silt_slice bytes)
{
    return s.len >= at + bytes.len && memcmp(s.data + at, bytes.data, bytes.len) == 0;
}

static uint64_t number(silt_slice s, size_t at, size_t size, bool big)
{
    uint64_t n = 0;
    for (size_t i = 0; i < size && at + size <= s.len; i++)
        n = n << 8 | (uint8_t)s.data[at + (big ? i : size - 1 - i)];
    return n;
}

/* Whether an ELF file names a loader: then it is a program, not a library. */
static bool has_interpreter(silt_slice s, bool wide, bool big)
{
    uint64_t at = wide ? number(s, 32, 8, big) : number(s, 28, 4, big);
    uint64_t size = number(s, wide ? 54 : 42, 2, big), count = number(s, wide ? 56 : 44, 2, big);
    for (; count > 0 && at < s.len; count--, at += size)
        if (number(s, (size_t)at, 4, big) == 3) /* PT_INTERP */
            return true;
    return false;
}

static const char *sniff_elf(silt_slice s)
{
    bool wide = s.len > 5 && s.data[4] == 2, big = s.len > 5 && s.data[5] == 2;
    switch (number(s, 16, 2, big)) {
    case 1:
        return "application/x-object";
    case 2:
        return "application/x-executable";
    case 3:
        return has_interpreter(s, wide, big) ? "application/x-pie-executable"
                                             : "application/x-sharedlib";
    case 4:
        return "application/x-coredump";
    default:
        return "application/octet-stream";
    }
}

/* A Windows program points to a second header. */
static const char *sniff_mz(silt_slice s)
{
    uint64_t at = number(s, 60, 4, false);
    bool is_pe = at < s.len && has(s, (size_t)at, SILT_LIT("PE\0\0"));
    return is_pe ? "application/vnd.microsoft.portable-executable" : "application/x-dosexec";
}

const char *silt_sniff(silt_slice s)
{
    if (s.len == 0)
        return "inode/x-empty";
    if (has(s, 0,
            SILT_LIT("\x7f"
                     "ELF")))
        return sniff_elf(s);
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (has(s, marks[i].at, marks[i].bytes))
            return marks[i].type;
    const char *text = silt_sniff_text(s);
    if (text != NULL)
        return text;
    return has(s, 0, SILT_LIT("MZ")) ? sniff_mz(s) : "application/octet-stream";
}
