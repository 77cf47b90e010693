/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/unit.h"
#include "worker/type/mime.h"

static const char *type_of(const char *path, silt_slice head)
{
    static char type[SILT_WORKER_MIME_SIZE];
    silt_mime_of(path, head, type);
    return type;
}

TEST(types_follow_the_extension_before_the_content)
{
    static const struct {
        const char *path, *type;
    } rows[] = {
        {"a.txt", "text/plain"},
        {"/x/y.json", "application/json"},
        {"b.ts", "text/javascript"},
        {"c.tar.gz", "application/gzip"},
        {"d.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
        {"e.7z", "application/x-7z-compressed"},
        {"f.yml", "text/yaml"},
        {"g.rs", "application/rls-services+xml"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(type_of(rows[i].path, SILT_LIT("\0\1")), rows[i].type);
}

TEST(names_without_a_known_extension_are_sniffed)
{
    static const char *const names[] = {"a",         ".txt",      "a.TXT",       "a.",
                                        "dir.txt/a", "b.unknown", "/a.png/.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(type_of(names[i], SILT_LIT("plain words\n")), "text/plain");
}

/* What file(1) 5.44 says. */
TEST(content_is_known_as_file_knows_it)
{
    static const struct {
        silt_slice head;
        const char *type;
    } rows[] = {
        {SILT_LIT(""), "inode/x-empty"},
        {SILT_LIT("hello\n"), "text/plain"},
        {SILT_LIT("h\xc3\xa9llo\n"), "text/plain"},
        {SILT_LIT("h\xe9llo\n"), "text/plain"},
        {SILT_LIT("\xef\xbb\xbfhello\n"), "text/plain"},
        {SILT_LIT("\xff\xfeh\0i\0"), "text/plain"},
        {SILT_LIT("\x1b[31mred\x1b[0m\n"), "text/plain"},
        {SILT_LIT("abc\0def"), "application/octet-stream"},
        {SILT_LIT("hello\x01world\n"), "application/octet-stream"},
        {SILT_LIT("\0\1\2\3"), "application/octet-stream"},
        {SILT_LIT("#!/bin/sh\necho\n"), "text/x-shellscript"},
        {SILT_LIT("#!/usr/bin/env bash\n"), "text/x-shellscript"},
        {SILT_LIT("#! /bin/zsh\n"), "text/x-shellscript"},
        {SILT_LIT("#!/usr/bin/env python3\nprint(1)\n"), "text/x-script.python"},
        {SILT_LIT("#!/usr/bin/python\n"), "text/x-script.python"},
        {SILT_LIT("#!/usr/bin/env node\n"), "application/javascript"},
        {SILT_LIT("#!/usr/bin/perl\n"), "text/x-perl"},
        {SILT_LIT("#!/opt/x/y\n"), "text/plain"},
        {SILT_LIT("import os\nprint(1)\n"), "text/plain"},
        {SILT_LIT("def f(x):\n    return x\n"), "text/x-script.python"},
        {SILT_LIT("from os import path\nprint(path)\n"), "text/x-script.python"},
        {SILT_LIT("#include <stdio.h>\nint x;\n"), "text/x-c"},
        {SILT_LIT("{\"a\":1}\n"), "application/json"},
        {SILT_LIT("[1,2,3]\n"), "application/json"},
        {SILT_LIT("{\n  \"a\": [true, null, -1.5e3, {\"b\": \"\\\"\"}]\n}"), "application/json"},
        {SILT_LIT("{\"a\":1}\n{\"a\":2}\n"), "application/x-ndjson"},
        {SILT_LIT("{a: 1}\n"), "text/plain"},
        {SILT_LIT("[section]\nkey=val\n"), "text/plain"},
        {SILT_LIT("\"x\"\n"), "text/plain"},
        {SILT_LIT("true\n"), "text/plain"},
        {SILT_LIT("a,b,c\n1,2,3\n4,5,6\n"), "text/csv"},
        {SILT_LIT("a,b\n1,2\n"), "text/plain"},
        {SILT_LIT("hello, world, x\nfoo\n"), "text/plain"},
        {SILT_LIT("<?xml version=\"1.0\"?>\n<a/>\n"), "text/xml"},
        {SILT_LIT("<!DOCTYPE html>\n<html></html>\n"), "text/html"},
        {SILT_LIT("<html><body></body></html>"), "text/html"},
        {SILT_LIT("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"), "image/svg+xml"},
        {SILT_LIT("diff --git a/x b/x\n"), "text/x-diff"},
        {SILT_LIT("<?php echo 1;"), "text/x-php"},
        {SILT_LIT("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png"},
        {SILT_LIT("\xff\xd8\xff\xe0\0\x10JFIF"), "image/jpeg"},
        {SILT_LIT("GIF89a\1\0\1\0"), "image/gif"},
        {SILT_LIT("RIFF\x10\0\0\0WEBPVP8 "), "image/webp"},
        {SILT_LIT("%PDF-1.4\n"), "application/pdf"},
        {SILT_LIT("PK\3\4\x14\0\0\0\x08\0"), "application/zip"},
        {SILT_LIT("\x1f\x8b\x08\0"), "application/gzip"},
        {SILT_LIT("\xfd"
                  "7zXZ\0"),
         "application/x-xz"},
        {SILT_LIT("\x28\xb5\x2f\xfd"), "application/zstd"},
        {SILT_LIT("BZh91AY"), "application/x-bzip2"},
        {SILT_LIT("SQLite format 3\0"), "application/vnd.sqlite3"},
        {SILT_LIT("\0asm\1\0\0\0"), "application/wasm"},
        {SILT_LIT("\0\0\0\x18"
                  "ftypmp42"),
         "video/mp4"},
        {SILT_LIT("\x7f"
                  "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0>\0"),
         "application/x-executable"},
        {SILT_LIT("\x7f"
                  "ELF\2\1\1\0"),
         "application/octet-stream"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(silt_sniff(rows[i].head), rows[i].type) != 0)
            fail_msg("row %zu: %s, want %s", i, silt_sniff(rows[i].head), rows[i].type);
}

TEST(sniffing_any_beginning_of_anything_stays_inside_of_it)
{
    static const char *const texts[] = {
        "{\"a\":[1,{\"b\":\"\\\\\\\"\"}],\"c\":null}",
        "#!/usr/bin/env python3 -u\n",
        "<?xml version='1.0'?><svg/>",
        "a,\"b,\n\",c\n1,2,3\n",
        "from a import b\n",
        "\xff\xfe"
        "a\0",
        "\x7f"
        "ELF\2\1\1",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t len = 0; len <= strlen(texts[i]); len++) {
            char *exact = malloc(len + (len == 0)); /* a sanitizer sees a read beyond it */
            assert_non_null(exact);
            memcpy(exact, texts[i], len);
            assert_non_null(silt_sniff((silt_slice){exact, len}));
            free(exact);
        }
}
