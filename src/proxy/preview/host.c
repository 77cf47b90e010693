/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/host.h"
#include "base/own.h"

enum { LABEL_MAX = 63, PARTS = 3 };

static const bool is_label[256] = {['a' ... 'z'] = 1, ['0' ... '9'] = 1, ['-'] = 1};
static const bool is_proof[256] = {
    ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['0' ... '9'] = 1, ['.'] = 1,
    ['_'] = 1,         ['~'] = 1,         ['-'] = 1,
};

static bool all_of(silt_slice s, const bool allowed[256])
{
    for (size_t i = 0; i < s.len; i++)
        if (!allowed[(unsigned char)s.data[i]])
            return false;
    return true;
}

static void copy(char *out, silt_slice s)
{
    memcpy(out, s.data, s.len);
    out[s.len] = 0;
}

/* "label.domain:port" */
static bool read_label(silt_slice domain, silt_slice host, struct silt_host *ret)
{
    if (host.len < domain.len + 2)
        return false;
    silt_slice label = {host.data, host.len - domain.len - 1};
    if (host.data[label.len] != '.'
        || !silt_slice_eq((silt_slice){label.data + label.len + 1, domain.len}, domain))
        return false;
    if (label.len > LABEL_MAX || !all_of(label, is_label))
        return false;
    ret->form = SILT_PREVIEW_HOST;
    copy(ret->name, label);
    return true;
}

/* Undoes escapes behind `*len` bytes of out. What would be a slash or a NUL then is nobody's name.
 */
static bool add_part(char out[SILT_PREVIEW_NAME], size_t *len, silt_slice part)
{
    bool empty = part.len == 0;
    while (part.len > 0) {
        int c = silt_slice_unescape(&part);
        if (c <= 0 || c == '/' || *len + 2 > SILT_PREVIEW_NAME)
            return false;
        out[(*len)++] = (char)c;
    }
    return !empty;
}

/* "/preview/id/port/token/rest" */
static bool read_path(silt_slice path, struct silt_host *ret)
{
    silt_slice prefix = SILT_LIT("/preview/"), rest = path, part;
    size_t len = 0;
    if (!silt_slice_starts(path, prefix))
        return false;
    rest = (silt_slice){path.data + prefix.len, path.len - prefix.len};
    for (int i = 0; i < PARTS; i++) {
        if (!silt_slice_split(&rest, '/', &part))
            return false;
        if (i > 0)
            ret->name[len++] = '/';
        if (!add_part(ret->name, &len, part))
            return false;
    }
    ret->name[len] = 0;
    ret->form = SILT_PREVIEW_PATH;
    const char *end = part.data + part.len;
    ret->prefix = (silt_slice){path.data, (size_t)(end - path.data)};
    ret->path = (silt_slice){end, path.len - ret->prefix.len};
    ret->unfinished = ret->path.len == 0;
    return true;
}

static bool take_proof(silt_slice pair, char out[SILT_PREVIEW_PROOF])
{
    size_t skip = sizeof(SILT_PREVIEW_PROOF_NAME);
    silt_slice value = {pair.data + skip, pair.len - skip};
    if (value.len == 0 || value.len >= SILT_PREVIEW_PROOF || !all_of(value, is_proof))
        return false;
    copy(out, value);
    return true;
}

bool silt_host_is_proof(silt_slice pair)
{
    return silt_slice_starts(pair, SILT_LIT(SILT_PREVIEW_PROOF_NAME "="));
}

/* The first one wins. */
static bool find_proof(silt_slice list, char between, char out[SILT_PREVIEW_PROOF])
{
    silt_slice pair;
    while (silt_slice_split(&list, between, &pair)) {
        pair = silt_slice_trim(pair);
        if (silt_host_is_proof(pair))
            return take_proof(pair, out);
    }
    return false;
}

static void read_proof(const struct silt_http_head *h, struct silt_host *ret)
{
    if (find_proof(h->query, '&', ret->proof)) {
        ret->signed_url = true;
        return;
    }
    for (size_t i = 0; i < h->count; i++)
        if (silt_slice_ieq(h->fields[i].name, SILT_LIT("cookie"))
            && find_proof(h->fields[i].value, ';', ret->proof))
            return;
}

int silt_host_read(const struct silt_host_rule *rule, const struct silt_http_head *h,
                   struct silt_host *ret)
{
    bool star = silt_slice_eq(h->target, SILT_LIT("*"));
    *ret = (struct silt_host){.path = h->path};
    if (h->host.data == NULL || (h->target.data[0] != '/' && !star))
        return 400; /* only a forward proxy gets the absolute form */
    read_proof(h, ret);
    if (read_label(rule->domain, h->host, ret))
        return 0;
    if (rule->paths && !star)
        return read_path(h->path, ret) ? 0 : 404;
    return silt_slice_eq(h->host, rule->domain) ? 404 : 400;
}
