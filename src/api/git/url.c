/* SPDX-License-Identifier: Apache-2.0 */
#include "api/git/url.h"

#include <stdio.h>

#define STARS SILT_LIT("******")

enum { SHOWN_MAX = SILT_GIT_URL_MAX + 16 };

void silt_git_url_init(struct silt_git_url *u)
{
    *u = (struct silt_git_url){0};
    silt_buf_init(&u->plain, SHOWN_MAX);
    silt_buf_init(&u->shown, SHOWN_MAX);
    silt_buf_init(&u->origin, SHOWN_MAX);
    silt_buf_init(&u->user, SHOWN_MAX);
    silt_buf_init(&u->password, SHOWN_MAX);
}

static void wipe(struct silt_buf *b)
{
    if (b->data != NULL)
        explicit_bzero(b->data, b->cap);
    silt_buf_fini(b);
}

void silt_git_url_fini(struct silt_git_url *u)
{
    wipe(&u->user);
    wipe(&u->password);
    silt_buf_fini(&u->plain);
    silt_buf_fini(&u->shown);
    silt_buf_fini(&u->origin);
}

static int fail(struct silt_error *e, const char *why)
{
    return silt_fail(e, SILT_INVALID, "%s", why);
}

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* Decodes %XX; rejects control characters, which would end the line in which git reads it. */
static bool decode(struct silt_buf *b, silt_slice raw)
{
    while (raw.len > 0) {
        int c = silt_slice_unescape(&raw);
        if (c < 0 || is_control((char)c))
            return false;
        silt_buf_add_byte(b, (char)c);
    }
    return true;
}

static bool is_host(silt_slice host)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
    for (size_t i = 0; i < host.len; i++)
        if (memchr(good, host.data[i], sizeof(good) - 1) == NULL)
            return false;
    return host.len > 0 && host.data[0] != '-' && host.data[0] != '.' && host.data[0] != ':';
}

/* host, host:port, [address] or [address]:port. A port that is not a number was meant as a
 * password. */
static bool is_place(silt_slice place)
{
    silt_slice rest = place, host;
    if (!is_host(place))
        return false;
    if (place.data[0] == '[') {
        (void)silt_slice_split(&rest, ']', &host);
        if (rest.data == NULL || (rest.len > 0 && rest.data[0] != ':'))
            return false;
    } else {
        (void)silt_slice_split(&rest, ':', &host);
        if (rest.data != NULL)
            rest = (silt_slice){rest.data - 1, rest.len + 1};
    }
    for (size_t i = 1; i < rest.len; i++)
        if (rest.data[i] < '0' || rest.data[i] > '9')
            return false;
    return rest.len <= 6;
}

/* The last component of the path, without .git. */
static void name_directory(struct silt_git_url *u, silt_slice path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.data[i] == '?' || path.data[i] == '#')
            path.len = i;
    while (path.len > 0 && path.data[path.len - 1] == '/')
        path.len--;
    size_t at = path.len;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    silt_slice name = path.len > 0 ? (silt_slice){path.data + at, path.len - at} : path;
    if (name.len > 4 && memcmp(name.data + name.len - 4, ".git", 4) == 0)
        name.len -= 4;
    bool good = name.len > 0 && name.len <= SILT_GIT_NAME_MAX && !silt_slice_eq(name, SILT_LIT("."))
                && !silt_slice_eq(name, SILT_LIT("..")) && !silt_slice_eq(name, SILT_LIT(".git"));
    if (!good)
        name = SILT_LIT("repository");
    memcpy(u->name, name.data, name.len);
    u->name[name.len] = 0;
}

static void take_all(struct silt_git_url *u, silt_slice text)
{
    silt_buf_add(&u->plain, text);
    silt_buf_add(&u->shown, text);
}

static int take_secret(struct silt_git_url *u, silt_slice info, struct silt_error *e)
{
    silt_slice user;
    (void)silt_slice_split(&info, ':', &user);
    u->has_secret = user.len > 0 || info.len > 0;
    return decode(&u->user, user) && decode(&u->password, info)
               ? 0
               : fail(e, "its credentials are badly escaped or hold a control character");
}

static int read_http(struct silt_git_url *u, silt_slice scheme, silt_slice rest,
                     struct silt_error *e)
{
    size_t end = 0, at = 0;
    while (end < rest.len && !silt_is_any(rest.data[end], "/?#"))
        end++;
    for (size_t i = 0; i < end; i++)
        at = rest.data[i] == '@' ? i + 1 : at;
    silt_slice host = {rest.data + at, end - at}, tail = {rest.data + end, rest.len - end};
    if (!is_place(host))
        return fail(e, "it has no valid host; credentials in it must be percent-encoded");
    if (at > 0 && take_secret(u, (silt_slice){rest.data, at - 1}, e) < 0)
        return -1;
    take_all(u, scheme);
    silt_buf_add(&u->origin, scheme);
    if (at > 0) {
        silt_buf_add(&u->shown, STARS);
        silt_buf_add_byte(&u->shown, '@');
    }
    take_all(u, host);
    silt_buf_add(&u->origin, host);
    take_all(u, tail);
    name_directory(u, tail);
    return 0;
}

/* ssh://[user@]host[:port]/path, git://host[:port]/path */
static int read_plain(struct silt_git_url *u, silt_slice whole, silt_slice scheme,
                      bool may_have_user, struct silt_error *e)
{
    silt_slice rest = {whole.data + scheme.len, whole.len - scheme.len}, place, user = {NULL, 0};
    (void)silt_slice_split(&rest, '/', &place);
    if (silt_slice_has_byte(place, '@')) {
        (void)silt_slice_split(&place, '@', &user);
        if (!may_have_user || silt_slice_has_byte(user, ':') || !is_host(user))
            return fail(e, "credentials can be given to http and https only");
    }
    if (!is_place(place))
        return fail(e, "it has no valid host");
    take_all(u, whole);
    name_directory(u, rest);
    return 0;
}

/* user@host:path. Without a user it could be read as a path or as a helper's name. */
static int read_scp(struct silt_git_url *u, silt_slice whole, struct silt_error *e)
{
    silt_slice rest = whole, user, host;
    if (!silt_slice_has_byte(whole, '@') || !silt_slice_has_byte(whole, ':'))
        return fail(e, "it is none of http://, https://, ssh://, git:// and user@host:path");
    (void)silt_slice_split(&rest, '@', &user);
    (void)silt_slice_split(&rest, ':', &host);
    if (!is_host(user) || silt_slice_has_byte(user, ':') || !is_host(host) || rest.len == 0
        || rest.data[0] == ':')
        return fail(e, "it is none of http://, https://, ssh://, git:// and user@host:path");
    take_all(u, whole);
    name_directory(u, rest);
    return 0;
}

static int read_local(struct silt_git_url *u, silt_slice whole, bool allowed, struct silt_error *e)
{
    silt_slice path = whole;
    if (!allowed)
        return fail(e, "paths and file:// are not allowed here");
    if (silt_slice_starts(whole, SILT_LIT("file://")))
        path = (silt_slice){whole.data + 7, whole.len - 7};
    if (path.len == 0 || path.data[0] != '/')
        return fail(e, "a local path must be absolute");
    u->local = true;
    take_all(u, whole);
    name_directory(u, path);
    return 0;
}

int silt_git_url_read(struct silt_git_url *u, silt_slice text, bool local, struct silt_error *e)
{
    static const struct {
        silt_slice scheme;
        bool http, user;
    } rows[] = {
        {{"http://", 7}, true, true},
        {{"https://", 8}, true, true},
        {{"ssh://", 6}, false, true},
        {{"git://", 6}, false, false},
    };
    for (size_t i = 0; i < text.len; i++)
        if (is_control(text.data[i]))
            return fail(e, "it holds a control character");
    if (text.len == 0 || text.len > SILT_GIT_URL_MAX)
        return fail(e, text.len == 0 ? "it is empty" : "it is longer than 2048 characters");
    if (text.data[0] == '-')
        return fail(e, "it begins with a dash");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        silt_slice s = rows[i].scheme;
        if (text.len < s.len || !silt_slice_ieq((silt_slice){text.data, s.len}, s))
            continue;
        return rows[i].http ? read_http(u, s, (silt_slice){text.data + s.len, text.len - s.len}, e)
                            : read_plain(u, text, s, rows[i].user, e);
    }
    if (text.data[0] == '/' || silt_slice_starts(text, SILT_LIT("file://")))
        return read_local(u, text, local, e);
    return read_scp(u, text, e);
}

/* ---- redaction ---- */

static bool begins(silt_slice text, silt_slice what)
{
    return what.len > 0 && silt_slice_starts(text, what);
}

/* Length of a leading `http://user:pass@`, up to the at sign; 0 if there is none. */
static size_t info_len(silt_slice text, size_t *ret_scheme)
{
    size_t at = 0;
    *ret_scheme = begins(text, SILT_LIT("http://"))    ? 7
                  : begins(text, SILT_LIT("https://")) ? 8
                                                       : 0;
    for (size_t i = *ret_scheme;
         *ret_scheme > 0 && i < text.len && !silt_is_any(text.data[i], "/?# \t\r\n'\""); i++)
        at = text.data[i] == '@' ? i : at;
    return at;
}

/* Redacting short secrets would mangle the whole text. */
static size_t secret_len(const struct silt_git_url *u, silt_slice text)
{
    enum { SHORTEST = 4 };
    silt_slice password = silt_buf_slice(&u->password), user = silt_buf_slice(&u->user);
    if (!u->has_secret)
        return 0;
    if (password.len >= SHORTEST && begins(text, password))
        return password.len;
    return password.len == 0 && user.len >= SHORTEST && begins(text, user) ? user.len : 0;
}

void silt_git_redact(struct silt_buf *b, const struct silt_git_url *u, silt_slice text)
{
    while (text.len > 0) {
        size_t scheme, info = info_len(text, &scheme), secret = secret_len(u, text), used = 1;
        if (info > 0) {
            silt_buf_add(b, (silt_slice){text.data, scheme});
            silt_buf_add(b, STARS);
            used = info;
        } else if (secret > 0) {
            silt_buf_add(b, STARS);
            used = secret;
        } else {
            silt_buf_add_byte(b, text.data[0]);
        }
        text.data += used;
        text.len -= used;
    }
}
