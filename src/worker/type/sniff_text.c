/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/type/mime.h"

enum { LINES_MAX = 200, CSV_LINES = 10 };

/* ---- what counts as text ---- */

/* Like file(1): BEL to CR, ESC and printable characters; bytes above 127 are letters of some
 * encoding. */
static bool is_text_byte(uint8_t c)
{
    return (c >= 7 && c <= 13) || c == 27 || (c >= 32 && c != 127);
}

static bool is_text(silt_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_text_byte((uint8_t)s.data[i]))
            return false;
    return true;
}

/* UTF-16 is recognized by its byte order mark. */
static bool is_utf16(silt_slice s)
{
    bool little = s.len >= 2 && memcmp(s.data, "\xff\xfe", 2) == 0;
    bool big = s.len >= 2 && memcmp(s.data, "\xfe\xff", 2) == 0;
    for (size_t i = 2; (little || big) && i + 1 < s.len; i += 2) {
        uint8_t high = (uint8_t)s.data[i + little], low = (uint8_t)s.data[i + big];
        if (high == 0 && !is_text_byte(low))
            return false;
    }
    return little || big;
}

/* ---- helpers ---- */

static silt_slice skip_space(silt_slice s)
{
    while (s.len > 0 && silt_is_any(s.data[0], " \t\r\n\f")) {
        s.data++;
        s.len--;
    }
    return s;
}

static bool starts(silt_slice s, const char *word)
{
    return silt_slice_starts(s, silt_slice_of(word));
}

static bool istarts(silt_slice s, const char *word)
{
    size_t len = strlen(word);
    return s.len >= len && silt_slice_ieq((silt_slice){s.data, len}, (silt_slice){word, len});
}

static bool contains(silt_slice s, const char *word)
{
    return memmem(s.data, s.len, word, strlen(word)) != NULL;
}

/* ---- scripts ---- */

static const struct {
    const char *name, *type;
} shells[] = {
    {"python", "text/x-script.python"},
    {"node", "application/javascript"},
    {"perl", "text/x-perl"},
    {"ruby", "text/x-ruby"},
    {"awk", "text/x-awk"},
    {"gawk", "text/x-gawk"},
    {"lua", "text/x-lua"},
    {"php", "text/x-php"},
    {"tclsh", "text/x-tcl"},
    {"wish", "text/x-tcl"},
    {"bash", "text/x-shellscript"},
    {"sh", "text/x-shellscript"},
    {"dash", "text/x-shellscript"},
    {"ash", "text/x-shellscript"},
    {"ksh", "text/x-shellscript"},
    {"zsh", "text/x-shellscript"},
    {"csh", "text/x-shellscript"},
    {"tcsh", "text/x-shellscript"},
    {"fish", "text/x-shellscript"},
};

/* The next word of the first line, without its directories. */
static silt_slice next_program(silt_slice *line)
{
    silt_slice word;
    *line = silt_slice_trim(*line);
    if (!silt_slice_split(line, ' ', &word))
        return (silt_slice){"", 0};
    for (size_t i = word.len; i > 0; i--)
        if (word.data[i - 1] == '/')
            return (silt_slice){word.data + i, word.len - i};
    return word;
}

/* "python3.12" is python. */
static bool is_program(silt_slice word, const char *name)
{
    size_t len = strlen(name);
    if (!starts(word, name))
        return false;
    for (size_t i = len; i < word.len; i++)
        if (!silt_is_any(word.data[i], "0123456789.\r\t"))
            return false;
    return true;
}

static const char *sniff_script(silt_slice s)
{
    silt_slice line;
    if (!starts(s, "#!") || !silt_slice_split(&s, '\n', &line))
        return NULL;
    line.data += 2;
    line.len -= 2;
    silt_slice program = next_program(&line);
    if (silt_slice_eq(program, SILT_LIT("env")))
        program = next_program(&line);
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (is_program(program, shells[i].name))
            return shells[i].type;
    return "text/plain";
}

/* ---- languages ---- */

static bool is_python_line(silt_slice line)
{
    silt_slice l = skip_space(line);
    while (l.len > 0 && (l.data[l.len - 1] == '\r' || l.data[l.len - 1] == ' '))
        l.len--;
    if (starts(l, "from "))
        return contains(l, " import ");
    bool colon = l.len > 0 && l.data[l.len - 1] == ':';
    return starts(l, "def ") && colon && silt_slice_has_byte(l, '(');
}

static const char *sniff_lines(silt_slice s)
{
    silt_slice line;
    for (int i = 0; i < LINES_MAX && silt_slice_split(&s, '\n', &line); i++) {
        if (is_python_line(line))
            return "text/x-script.python";
        if (starts(line, "#include ") || starts(line, "#include<"))
            return "text/x-c";
    }
    return NULL;
}

static const char *sniff_markup(silt_slice s)
{
    s = skip_space(s);
    if (starts(s, "<?xml"))
        return contains(s, "<svg") ? "image/svg+xml" : "text/xml";
    if (starts(s, "<svg"))
        return "image/svg+xml";
    if (starts(s, "<?php"))
        return "text/x-php";
    static const char *const html[] = {"<!doctype html", "<html",   "<head", "<title",
                                       "<body",          "<script", "<!-- "};
    for (size_t i = 0; i < sizeof(html) / sizeof(html[0]); i++)
        if (istarts(s, html[i]))
            return html[i][1] != '!' || html[i][2] != '-' || contains(s, "<html") ? "text/html"
                                                                                  : NULL;
    return NULL;
}

/* ---- tables ---- */

static size_t count_commas(silt_slice line)
{
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < line.len; i++) {
        quoted = quoted != (line.data[i] == '"');
        n += !quoted && line.data[i] == ',';
    }
    return n;
}

/* At least three lines, the first ten with the same number of commas. */
static bool is_csv(silt_slice s)
{
    silt_slice line;
    size_t commas = 0, lines = 0;
    while (lines < CSV_LINES && silt_slice_split(&s, '\n', &line)) {
        if (line.len == 0 && s.len == 0)
            break;
        size_t n = count_commas(line);
        if (n == 0 || (lines > 0 && n != commas))
            return false;
        commas = n;
        lines++;
    }
    return lines > 2;
}

static const char *sniff_prose(silt_slice s)
{
    if (starts(s, "diff --git ") || (starts(s, "--- ") && contains(s, "\n+++ ")))
        return "text/x-diff";
    if (starts(s, "BEGIN:VCALENDAR"))
        return "text/calendar";
    return is_csv(s) ? "text/csv" : "text/plain";
}

const char *silt_sniff_text(silt_slice s)
{
    const char *type;
    if (is_utf16(s))
        return "text/plain";
    if (!is_text(s))
        return NULL;
    if (starts(s, "\xef\xbb\xbf")) {
        s.data += 3;
        s.len -= 3;
    }
    if ((type = sniff_script(s)) != NULL || (type = sniff_markup(s)) != NULL
        || (type = silt_sniff_json(s)) != NULL || (type = sniff_lines(s)) != NULL)
        return type;
    return sniff_prose(s);
}
