/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/answer.h"

#include "base/own.h"
#include "base/test_switch.h"

enum {
    FLAGS = 2,
    QUESTIONS = 4,
    ANSWERS = 6,
    ADDITIONAL = 10,
    JUMPS_MAX = 32,
    LABEL_MAX = 63,
    ALIASES_MAX = 16,
    CLASS_IN = 1,
    RECORD_FIXED = 10, /* type, class, time to live, size */
    UDP_SIZE = 1232,
};

static uint32_t u32(const char *at)
{
    return (uint32_t)silt_dns_u16(at) << 16 | silt_dns_u16(at + 2);
}

static void put_u32(char *at, uint32_t value)
{
    silt_dns_put_u16(at, (uint16_t)(value >> 16));
    silt_dns_put_u16(at + 2, (uint16_t)(value & 0xffff));
}

struct reader {
    char *data;
    size_t len;
    size_t at;
};

struct record {
    char owner[SILT_DNS_NAME];
    uint16_t type, class;
    char *ttl;
    size_t data, size; /* offset in the message */
};

static bool add_label(char *out, size_t *len, const char *label, size_t size)
{
    if (*len + size + 2 > SILT_DNS_NAME)
        return false;
    if (*len > 0)
        out[(*len)++] = '.';
    for (size_t i = 0; i < size; i++) {
        char c = label[i];
        /* No queried name contains such a byte, so it matches none. */
        bool odd = c <= ' ' || c == 0x7f || c == '.' || c == '"' || c == '\\';
        out[(*len)++] = (char)(odd ? 1 : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return true;
}

/* Reads a name with compression; pointers may only point backwards. */
static int read_name(const struct reader *r, size_t at, char out[SILT_DNS_NAME], size_t *ret_end)
{
    size_t len = 0, end = 0, before = at;
    for (int jumps = 0; at < r->len;) {
        size_t n = (uint8_t)r->data[at++];
        if (n == 0) {
            out[len] = 0;
            *ret_end = end != 0 ? end : at;
            return 0;
        }
        if (n >= 0xc0) {
            if (at >= r->len || ++jumps > JUMPS_MAX)
                return -1;
            size_t to = (n & 0x3f) << 8 | (uint8_t)r->data[at++];
            end = end != 0 ? end : at;
            if (to >= before)
                return -1;
            at = before = to;
            continue;
        }
        if (n > LABEL_MAX || n > r->len - at || !add_label(out, &len, r->data + at, n))
            return -1;
        at += n;
    }
    return -1;
}

static int read_record(struct reader *r, struct record *ret)
{
    size_t end;
    if (read_name(r, r->at, ret->owner, &end) < 0 || r->len - end < RECORD_FIXED)
        return -1;
    char *at = r->data + end;
    ret->type = silt_dns_u16(at);
    ret->class = silt_dns_u16(at + 2);
    ret->ttl = at + 4;
    ret->size = silt_dns_u16(at + 8);
    ret->data = end + RECORD_FIXED;
    if (ret->size > r->len - ret->data)
        return -1;
    r->at = ret->data + ret->size;
    return 0;
}

static bool is_address(const struct reader *r, const struct record *rec, silt_ip_prefix *ret)
{
    if (rec->class != CLASS_IN
        || !((rec->type == SILT_DNS_A && rec->size == 4)
             || (rec->type == SILT_DNS_AAAA && rec->size == 16)))
        return false;
    *ret = (silt_ip_prefix){.family = rec->type == SILT_DNS_A ? 4 : 6};
    ret->bits = (uint8_t)silt_ip_prefix_size(ret);
    memcpy(ret->bytes, r->data + rec->data, rec->size);
    return true;
}

struct reading {
    struct reader r;
    const struct silt_dns_question *q;
    const struct silt_ip_prefix_list *open;
    uint32_t most_ttl_s;
    char name[SILT_DNS_NAME]; /* the question's, or what it is an alias for */
    bool moved;               /* an alias was found in this round */
};

static uint32_t clamp_ttl(const struct reading *x, const struct record *rec)
{
    uint32_t ttl = u32(rec->ttl);
    if (x->most_ttl_s != 0 && ttl > x->most_ttl_s && rec->type != SILT_DNS_OPT) {
        ttl = x->most_ttl_s;
        put_u32(rec->ttl, ttl);
    }
    return ttl;
}

static void take_address(const struct reading *x, const struct record *rec, uint32_t ttl,
                         struct silt_dns_answer *a)
{
    silt_ip_prefix address;
    if (!is_address(&x->r, rec, &address))
        return;
    if (silt_ip_prefix_is_closed(&address, x->open) && !silt_without("net_answers")) {
        if (a->closed++ == 0)
            a->first = address;
        return;
    }
    if (strcmp(rec->owner, x->name) != 0 || a->count == SILT_DNS_ADDRESSES_MAX)
        return;
    a->list[a->count++] = address;
    a->ttl_s = ttl < a->ttl_s ? ttl : a->ttl_s;
}

/* One pass over all records, for the current name. */
static int walk(struct reading *x, size_t from, size_t count, struct silt_dns_answer *a)
{
    x->r.at = from;
    x->moved = false;
    a->count = a->closed = 0;
    for (size_t i = 0; i < count; i++) {
        struct record rec;
        size_t ignored;
        if (read_record(&x->r, &rec) < 0)
            return -1;
        uint32_t ttl = clamp_ttl(x, &rec);
        take_address(x, &rec, ttl, a);
        if (rec.type != SILT_DNS_CNAME || x->moved || x->q->type == SILT_DNS_CNAME
            || strcmp(rec.owner, x->name) != 0)
            continue;
        if (read_name(&x->r, rec.data, x->name, &ignored) < 0)
            return -1;
        a->ttl_s = ttl < a->ttl_s ? ttl : a->ttl_s;
        x->moved = true;
    }
    return 0;
}

static bool is_of(const struct reader *r, const struct silt_dns_question *q)
{
    char name[SILT_DNS_NAME];
    size_t end;
    return r->len >= SILT_DNS_HEAD && (r->data[FLAGS] & 0x80) != 0
           && silt_dns_u16(r->data + QUESTIONS) == 1 && read_name(r, SILT_DNS_HEAD, name, &end) == 0
           && r->len - end >= 4 && strcmp(name, q->name) == 0
           && silt_dns_u16(r->data + end) == q->type
           && silt_dns_u16(r->data + end + 2) == q->class && end + 4 == q->end;
}

int silt_dns_answer_read(char *message, size_t len, const struct silt_dns_question *q,
                         const struct silt_ip_prefix_list *open, uint32_t most_ttl_s,
                         struct silt_dns_answer *ret, struct silt_error *e)
{
    struct reading x = {
        .r = {.data = message, .len = len}, .q = q, .open = open, .most_ttl_s = most_ttl_s};
    size_t rounds = 0;
    *ret = (struct silt_dns_answer){.ttl_s = UINT32_MAX};
    if (!is_of(&x.r, q))
        return silt_fail(e, SILT_PROTOCOL, "an answer to another question");
    size_t count = silt_dns_u16(message + ANSWERS);
    if (count > SILT_DNS_RECORDS_MAX)
        return silt_fail(e, SILT_PROTOCOL, "%zu DNS records in an answer", count);
    memcpy(x.name, q->name, sizeof(x.name));
    do {
        if (walk(&x, q->end, count, ret) < 0)
            return silt_fail(e, SILT_PROTOCOL, "a broken DNS answer");
    } while (x.moved && ++rounds < ALIASES_MAX);
    return 0;
}

size_t silt_dns_answer_write(char *m, size_t size, const struct silt_dns_question *q,
                             const struct silt_dns_answer *a)
{
    size_t at = silt_dns_answer_empty(m, q, 0), written = 0;
    size_t bytes = q->type == SILT_DNS_A ? 4 : 16;
    if (q->type != SILT_DNS_A && q->type != SILT_DNS_AAAA)
        return at;
    for (size_t i = 0; i < a->count && at + 2 + RECORD_FIXED + bytes <= size; i++) {
        if (a->list[i].family != (q->type == SILT_DNS_A ? 4 : 6))
            continue;
        silt_dns_put_u16(m + at, 0xc000 | SILT_DNS_HEAD); /* the name of the question */
        silt_dns_put_u16(m + at + 2, q->type);
        silt_dns_put_u16(m + at + 4, CLASS_IN);
        put_u32(m + at + 6, a->ttl_s);
        silt_dns_put_u16(m + at + 10, (uint16_t)bytes);
        memcpy(m + at + 2 + RECORD_FIXED, a->list[i].bytes, bytes);
        at += 2 + RECORD_FIXED + bytes;
        written++;
    }
    silt_dns_put_u16(m + ANSWERS, (uint16_t)written);
    return at;
}

size_t silt_dns_question_strip(char *m, size_t len, const struct silt_dns_question *q)
{
    char plain[11] = {[2] = SILT_DNS_OPT}; /* the root's name, no flags, no options */
    bool extended = silt_dns_u16(m + ADDITIONAL) > 0;
    memset(m + ANSWERS, 0, 6);
    m[FLAGS] = 1; /* recursion desired */
    m[FLAGS + 1] = 0;
    if (!extended || len < q->end + sizeof(plain))
        return q->end;
    silt_dns_put_u16(plain + 3, UDP_SIZE);
    memcpy(m + q->end, plain, sizeof(plain));
    silt_dns_put_u16(m + ADDITIONAL, 1);
    return q->end + sizeof(plain);
}
