/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/dns/wire.h"

enum { LABEL_MAX = 63, FLAGS = 2, QUESTIONS = 4 };

uint16_t silt_dns_id(const char *message)
{
    return silt_dns_u16(message);
}

void silt_dns_set_id(char *message, uint16_t id)
{
    silt_dns_put_u16(message, id);
}

/* A byte of a label as text. Names with dots inside a label, spaces or control characters are
 * rejected: they could be misread when compared or logged. */
static int add_byte(char *name, size_t at, uint8_t byte, struct silt_error *e)
{
    if (byte <= ' ' || byte >= 0x7f || byte == '.' || byte == '"' || byte == '\\')
        return silt_fail(e, SILT_PROTOCOL, "a DNS name with byte 0x%02x", byte);
    name[at] = (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
    return 0;
}

static int add_label(struct silt_dns_question *q, size_t *len, silt_slice label,
                     struct silt_error *e)
{
    if (*len + label.len + 2 > SILT_DNS_NAME)
        return silt_fail(e, SILT_PROTOCOL, "a DNS name of more than %d bytes", SILT_DNS_NAME - 1);
    if (*len > 0)
        q->name[(*len)++] = '.';
    for (size_t i = 0; i < label.len; i++)
        if (add_byte(q->name, (*len)++, (uint8_t)label.data[i], e) < 0)
            return -1;
    return 0;
}

static int parse_name(silt_slice m, struct silt_dns_question *q, struct silt_error *e)
{
    size_t len = 0;
    for (size_t at = SILT_DNS_HEAD; at < m.len;) {
        size_t label = (uint8_t)m.data[at++];
        if (label == 0) {
            q->name[len] = 0;
            q->end = at;
            return 0;
        }
        if (label > LABEL_MAX || label > m.len - at)
            break;
        if (add_label(q, &len, (silt_slice){m.data + at, label}, e) < 0)
            return -1;
        at += label;
    }
    return silt_fail(e, SILT_PROTOCOL, "a DNS name without an end");
}

int silt_dns_parse(silt_slice m, struct silt_dns_question *ret, struct silt_error *e)
{
    struct silt_dns_question q = {0};
    if (m.len < SILT_DNS_HEAD)
        return silt_fail(e, SILT_PROTOCOL, "a DNS message of %zu bytes", m.len);
    if (silt_dns_u16(m.data + QUESTIONS) != 1)
        return silt_fail(e, SILT_PROTOCOL, "%u DNS questions", silt_dns_u16(m.data + QUESTIONS));
    q.id = silt_dns_u16(m.data);
    if (parse_name(m, &q, e) < 0)
        return -1;
    if (m.len - q.end < 4)
        return silt_fail(e, SILT_PROTOCOL, "a DNS question without an end");
    q.type = silt_dns_u16(m.data + q.end);
    q.class = silt_dns_u16(m.data + q.end + 2);
    q.end += 4;
    *ret = q;
    if ((m.data[FLAGS] & 0xf8) != 0) /* a response, or an opcode other than QUERY */
        return silt_fail(e, SILT_INVALID, "no plain DNS question");
    return 0;
}

size_t silt_dns_answer_empty(char *m, const struct silt_dns_question *q, unsigned rcode)
{
    m[FLAGS] = (char)((m[FLAGS] & 0x79) | 0x80); /* an answer, not authoritative, not cut */
    m[FLAGS + 1] = (char)(0x80 | rcode);         /* recursion available */
    silt_dns_put_u16(m + QUESTIONS, 1);
    memset(m + QUESTIONS + 2, 0, 6);
    return q->end;
}
