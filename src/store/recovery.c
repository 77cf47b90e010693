/* SPDX-License-Identifier: Apache-2.0 */
#include "store/recovery.h"
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD "silt recovery 1 "

enum { CHECKSUM_DIGITS = 16 };

/* FNV-1a: protects against a faulty disk, not against attackers. */
static uint64_t checksum(silt_slice bytes)
{
    uint64_t sum = 0xcbf29ce484222325U;
    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.data[i]) * 0x100000001b3U;
    return sum;
}

/* ---- writing ---- */

static void begin(struct silt_buf *b, const char *kind)
{
    silt_buf_clear(b);
    silt_buf_addf(b, HEAD "%s %0*d\n", kind, CHECKSUM_DIGITS, 0);
}

static int end(struct silt_buf *b, const char *kind, struct silt_error *e)
{
    size_t head = strlen(HEAD) + strlen(kind) + 1;
    char digits[CHECKSUM_DIGITS + 1];
    if (b->broken)
        return silt_fail(e, SILT_LIMIT, "recovery record of more than %zu bytes", b->max);
    silt_slice body = {b->data + head + CHECKSUM_DIGITS + 1, b->len - head - CHECKSUM_DIGITS - 1};
    (void)snprintf(digits, sizeof(digits), "%016" PRIx64, checksum(body));
    memcpy(b->data + head, digits, CHECKSUM_DIGITS);
    return 0;
}

static void put(struct silt_buf *b, const char *name, silt_slice value)
{
    if (value.len == 0)
        return;
    silt_buf_addf(b, "%s %zu\n", name, value.len);
    silt_buf_add(b, value);
    silt_buf_add_byte(b, '\n');
}

static void put_text(struct silt_buf *b, const char *name, const char *text)
{
    put(b, name, silt_slice_of(text != NULL ? text : ""));
}

static void put_number(struct silt_buf *b, const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    if (number != 0)
        put_text(b, name, text);
}

static void put_digest(struct silt_buf *b, const char *name, const uint8_t digest[SILT_DIGEST_SIZE])
{
    static const uint8_t none[SILT_DIGEST_SIZE];
    char text[2 * SILT_DIGEST_SIZE + 1];
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    if (memcmp(digest, none, sizeof(none)) != 0)
        put_text(b, name, text);
}

static void put_port(struct silt_buf *b, const struct silt_port_row *p)
{
    char text[128 + SILT_PORT_NAME_MAX + SILT_PORT_TOKEN_MAX];
    (void)snprintf(text, sizeof(text), "%u %" PRIu64 " %d %" PRId64 " %s %s", p->port, p->route,
                   p->locked, p->exposed_ms, p->token, p->name);
    put_text(b, "port", text);
}

static int write_sandbox(struct silt_buf *b, const struct silt_recovery_sandbox *s,
                         struct silt_error *e)
{
    const struct silt_sandbox_row *r = &s->row;
    begin(b, "sandbox");
    put_text(b, "id", r->id);
    put_text(b, "image", r->image);
    put_digest(b, "digest", r->digest);
    put_number(b, "host_usr", r->host_usr);
    put_number(b, "ephemeral", r->ephemeral);
    put_number(b, "network", (uint64_t)r->network);
    put_text(b, "alias", r->alias);
    put_text(b, "type", r->type);
    put_number(b, "memory", r->limits.memory_bytes);
    put_number(b, "disk", r->limits.disk_bytes);
    put_number(b, "cpu", r->limits.cpu_milli);
    put_number(b, "pids", r->limits.pids);
    put_number(b, "sleep", (uint64_t)r->sleep_after_s);
    put_number(b, "stop", (uint64_t)r->stop_after_s);
    put_number(b, "keep_alive", r->keep_alive);
    put_number(b, "let_sleep", r->let_sleep);
    put_number(b, "remove_after_stop", r->remove_after_stop);
    put_number(b, "auto_snapshot", r->auto_snapshot);
    put_number(b, "expires", (uint64_t)r->expires_ms);
    put_number(b, "created", (uint64_t)r->created_ms);
    for (size_t i = 0; i < s->port_count; i++)
        put_port(b, &s->ports[i]);
    put_text(b, "labels", r->labels);
    put_number(b, "allow_left_out", s->allow_left_out);
    put_number(b, "env_left_out", s->env_left_out);
    if (!s->allow_left_out)
        put_text(b, "allow", r->allow);
    if (!s->env_left_out)
        put(b, "env", (silt_slice){r->env, r->env != NULL ? r->env_len : 0});
    return end(b, "sandbox", e);
}

int silt_recovery_write_sandbox(struct silt_buf *b, const struct silt_recovery_sandbox *s,
                                struct silt_error *e)
{
    struct silt_recovery_sandbox less = *s;
    if (write_sandbox(b, &less, e) == 0)
        return 0;
    less.env_left_out = true;
    if (write_sandbox(b, &less, e) == 0)
        return 0;
    less.allow_left_out = true;
    return write_sandbox(b, &less, e);
}

static void put_snapshot(struct silt_buf *b, const struct silt_snapshot_row *r)
{
    put_text(b, "snapshot", r->id);
    put_text(b, "snapshot_sandbox", r->sandbox);
    put_text(b, "snapshot_name", r->name);
    put_number(b, "snapshot_bytes", r->bytes);
    put_number(b, "snapshot_created", (uint64_t)r->created_ms);
    put_number(b, "snapshot_expires", (uint64_t)r->expires_ms);
    put(b, "snapshot_record", (silt_slice){r->record, r->record_len});
}

int silt_recovery_write_image(struct silt_buf *b, const struct silt_recovery_image *i,
                              struct silt_error *e)
{
    const struct silt_image_row *r = &i->row;
    begin(b, "image");
    put_digest(b, "digest", r->digest);
    put_digest(b, "parent", r->parent);
    put_number(b, "layered", r->layered);
    put_number(b, "host_usr", r->host_usr);
    put_number(b, "bytes", r->bytes);
    put_number(b, "created", (uint64_t)r->created_ms);
    for (size_t k = 0; k < i->name_count; k++)
        put_text(b, "name", i->names[k]);
    if (i->snapshot.id[0] != 0)
        put_snapshot(b, &i->snapshot);
    put_text(b, "config", r->config);
    return end(b, "image", e);
}

/* ---- reading ---- */

static int refuse(struct silt_error *e, const char *what)
{
    return silt_fail(e, SILT_PROTOCOL, "damaged recovery record: %s", what);
}

static int read_head(silt_slice *rest, const char *kind, struct silt_error *e)
{
    char wanted[64], sum[CHECKSUM_DIGITS + 1];
    silt_slice line;
    if (!silt_slice_split(rest, '\n', &line) || !silt_slice_starts(line, SILT_LIT(HEAD)))
        return refuse(e, "no head");
    (void)snprintf(sum, sizeof(sum), "%016" PRIx64, checksum(*rest));
    (void)snprintf(wanted, sizeof(wanted), HEAD "%s %s", kind, sum);
    return silt_slice_eq(line, silt_slice_of(wanted))
               ? 0
               : refuse(e, "another kind, or a wrong checksum");
}

/* 1: there is one; 0: end. */
static int next_field(silt_slice *rest, silt_slice *ret_name, silt_slice *ret_value,
                      struct silt_error *e)
{
    silt_slice line;
    uint64_t len;
    if (rest->len == 0)
        return 0;
    if (!silt_slice_split(rest, '\n', &line) || !silt_slice_split(&line, ' ', ret_name)
        || silt_slice_to_u64(line, 1, SILT_RECOVERY_IMAGE_MAX, &len, e) < 0)
        return refuse(e, "no field where one should be");
    if (len >= rest->len || rest->data[len] != '\n')
        return refuse(e, "a field of another length");
    *ret_value = (silt_slice){rest->data, len};
    rest->data += len + 1;
    rest->len -= len + 1;
    return 1;
}

static int read_text(silt_slice value, char *out, size_t size, struct silt_error *e)
{
    if (out[0] != 0)
        return refuse(e, "a field that comes twice");
    return silt_slice_to_cstr(value, out, size, e);
}

/* A NUL-terminated copy; `text`: rejects NUL bytes inside. */
static int read_copy(silt_slice value, bool text, char **ret, struct silt_error *e)
{
    if (*ret != NULL || (text && silt_slice_has_byte(value, 0)))
        return refuse(e, "a field that comes twice, or with a NUL");
    char *copy = malloc(value.len + 1);
    if (copy == NULL)
        abort();
    memcpy(copy, value.data, value.len);
    copy[value.len] = 0;
    *ret = copy;
    return 0;
}

static int read_digest(silt_slice value, uint8_t out[SILT_DIGEST_SIZE], struct silt_error *e)
{
    return silt_digest_parse(value, out) ? 0 : refuse(e, "digest");
}

static int read_flag(silt_slice value, bool *ret, struct silt_error *e)
{
    uint64_t number = 0;
    if (silt_slice_to_u64(value, 1, 1, &number, e) < 0)
        return -1;
    *ret = true;
    return 0;
}

static int read_u32(silt_slice value, uint64_t max, uint32_t *ret, struct silt_error *e)
{
    uint64_t number = 0;
    if (silt_slice_to_u64(value, 1, max, &number, e) < 0)
        return -1;
    *ret = (uint32_t)number;
    return 0;
}

static int read_time(silt_slice value, int64_t *ret, struct silt_error *e)
{
    uint64_t number = 0;
    if (silt_slice_to_u64(value, 1, INT64_MAX, &number, e) < 0)
        return -1;
    *ret = (int64_t)number;
    return 0;
}

static int read_port(silt_slice value, struct silt_recovery_sandbox *s, struct silt_error *e)
{
    silt_slice port, route, locked, exposed, token;
    uint64_t number, open;
    if (s->port_count == SILT_RECOVERY_PORTS_MAX || !silt_slice_split(&value, ' ', &port)
        || !silt_slice_split(&value, ' ', &route) || !silt_slice_split(&value, ' ', &locked)
        || !silt_slice_split(&value, ' ', &exposed) || !silt_slice_split(&value, ' ', &token))
        return refuse(e, "port");
    struct silt_port_row *ports = realloc(s->ports, (s->port_count + 1) * sizeof(*ports));
    if (ports == NULL)
        abort();
    s->ports = ports;
    struct silt_port_row row = {0};
    if (silt_slice_to_u64(port, 1, UINT16_MAX, &number, e) < 0
        || silt_slice_to_u64(route, 0, INT64_MAX, &row.route, e) < 0
        || silt_slice_to_u64(locked, 0, 1, &open, e) < 0
        || read_time(exposed, &row.exposed_ms, e) < 0
        || silt_slice_to_cstr(token, row.token, sizeof(row.token), e) < 0
        || silt_slice_to_cstr(value, row.name, sizeof(row.name), e) < 0)
        return -1;
    row.port = (uint16_t)number;
    row.locked = open != 0;
    ports[s->port_count++] = row;
    return 0;
}

static int read_env(silt_slice value, struct silt_sandbox_row *r, struct silt_error *e)
{
    if (value.data[value.len - 1] != 0)
        return refuse(e, "variables without an end");
    r->env_len = value.len;
    return read_copy(value, false, &r->env, e);
}

static int read_network(silt_slice value, struct silt_sandbox_row *r, struct silt_error *e)
{
    uint64_t number = 0;
    if (silt_slice_to_u64(value, 1, SILT_NET_MODE_MAX - 1, &number, e) < 0)
        return -1;
    r->network = (enum silt_net_mode)number;
    return 0;
}

static bool is(silt_slice name, const char *wanted)
{
    return silt_slice_eq(name, silt_slice_of(wanted));
}

static int read_limit(silt_slice name, silt_slice value, struct silt_priv_limits *l,
                      struct silt_error *e)
{
    if (is(name, "memory"))
        return silt_slice_to_u64(value, 1, INT64_MAX, &l->memory_bytes, e);
    if (is(name, "disk"))
        return silt_slice_to_u64(value, 1, INT64_MAX, &l->disk_bytes, e);
    if (is(name, "cpu"))
        return read_u32(value, UINT32_MAX, &l->cpu_milli, e);
    if (is(name, "pids"))
        return read_u32(value, UINT32_MAX, &l->pids, e);
    return 0; /* a field of a later version */
}

static int read_lifetime(silt_slice name, silt_slice value, struct silt_sandbox_row *r,
                         struct silt_error *e)
{
    if (is(name, "sleep"))
        return read_time(value, &r->sleep_after_s, e);
    if (is(name, "stop"))
        return read_time(value, &r->stop_after_s, e);
    if (is(name, "keep_alive"))
        return read_flag(value, &r->keep_alive, e);
    if (is(name, "let_sleep"))
        return read_flag(value, &r->let_sleep, e);
    if (is(name, "remove_after_stop"))
        return read_flag(value, &r->remove_after_stop, e);
    if (is(name, "auto_snapshot"))
        return read_flag(value, &r->auto_snapshot, e);
    if (is(name, "expires"))
        return read_time(value, &r->expires_ms, e);
    return read_limit(name, value, &r->limits, e);
}

static int read_sandbox_field(silt_slice name, silt_slice value, struct silt_recovery_sandbox *s,
                              struct silt_error *e)
{
    struct silt_sandbox_row *r = &s->row;
    if (is(name, "id"))
        return silt_id_check(value, e) < 0 ? -1 : read_text(value, r->id, sizeof(r->id), e);
    if (is(name, "image"))
        return read_text(value, r->image, sizeof(r->image), e);
    if (is(name, "digest"))
        return read_digest(value, r->digest, e);
    if (is(name, "host_usr"))
        return read_flag(value, &r->host_usr, e);
    if (is(name, "ephemeral"))
        return read_flag(value, &r->ephemeral, e);
    if (is(name, "network"))
        return read_network(value, r, e);
    if (is(name, "alias"))
        return read_text(value, r->alias, sizeof(r->alias), e);
    if (is(name, "type"))
        return read_text(value, r->type, sizeof(r->type), e);
    if (is(name, "created"))
        return read_time(value, &r->created_ms, e);
    if (is(name, "port"))
        return read_port(value, s, e);
    if (is(name, "labels"))
        return read_copy(value, true, &r->labels, e);
    if (is(name, "allow"))
        return read_copy(value, true, &r->allow, e);
    if (is(name, "env"))
        return read_env(value, r, e);
    if (is(name, "allow_left_out"))
        return read_flag(value, &s->allow_left_out, e);
    if (is(name, "env_left_out"))
        return read_flag(value, &s->env_left_out, e);
    return read_lifetime(name, value, r, e);
}

int silt_recovery_read_sandbox(silt_slice bytes, struct silt_recovery_sandbox *ret,
                               struct silt_error *e)
{
    silt_slice name, value;
    int more;
    *ret = (struct silt_recovery_sandbox){.row = {.death = {.exit_code = -1}}};
    if (read_head(&bytes, "sandbox", e) < 0)
        return -1;
    while ((more = next_field(&bytes, &name, &value, e)) > 0)
        if (read_sandbox_field(name, value, ret, e) < 0)
            return -1;
    return more;
}

static int read_name(silt_slice value, struct silt_recovery_image *i, struct silt_error *e)
{
    if (i->name_count == SILT_RECOVERY_NAMES_MAX)
        return refuse(e, "too many names");
    char(*names)[SILT_IMAGE_NAME_SIZE] = realloc(i->names, (i->name_count + 1) * sizeof(*names));
    if (names == NULL)
        abort();
    i->names = names;
    if (silt_slice_to_cstr(value, names[i->name_count], sizeof(*names), e) < 0)
        return -1;
    i->name_count++;
    return 0;
}

static int read_snapshot_field(silt_slice name, silt_slice value, struct silt_snapshot_row *r,
                               struct silt_error *e)
{
    if (is(name, "snapshot"))
        return read_text(value, r->id, sizeof(r->id), e);
    if (is(name, "snapshot_sandbox"))
        return silt_id_check(value, e) < 0 ? -1
                                           : read_text(value, r->sandbox, sizeof(r->sandbox), e);
    if (is(name, "snapshot_name"))
        return read_copy(value, true, &r->name, e);
    if (is(name, "snapshot_bytes"))
        return silt_slice_to_u64(value, 1, INT64_MAX, &r->bytes, e);
    if (is(name, "snapshot_created"))
        return read_time(value, &r->created_ms, e);
    if (is(name, "snapshot_expires"))
        return read_time(value, &r->expires_ms, e);
    if (!is(name, "snapshot_record"))
        return 0; /* a field of a later version */
    r->record_len = value.len;
    return read_copy(value, false, &r->record, e);
}

static int read_image_field(silt_slice name, silt_slice value, struct silt_recovery_image *i,
                            struct silt_error *e)
{
    struct silt_image_row *r = &i->row;
    if (is(name, "digest"))
        return read_digest(value, r->digest, e);
    if (is(name, "parent"))
        return read_digest(value, r->parent, e);
    if (is(name, "layered"))
        return read_flag(value, &r->layered, e);
    if (is(name, "host_usr"))
        return read_flag(value, &r->host_usr, e);
    if (is(name, "bytes"))
        return silt_slice_to_u64(value, 1, INT64_MAX, &r->bytes, e);
    if (is(name, "created"))
        return read_time(value, &r->created_ms, e);
    if (is(name, "name"))
        return read_name(value, i, e);
    return is(name, "config") ? read_copy(value, true, &r->config, e)
                              : read_snapshot_field(name, value, &i->snapshot, e);
}

int silt_recovery_read_image(silt_slice bytes, struct silt_recovery_image *ret,
                             struct silt_error *e)
{
    silt_slice name, value;
    int more;
    *ret = (struct silt_recovery_image){0};
    if (read_head(&bytes, "image", e) < 0)
        return -1;
    while ((more = next_field(&bytes, &name, &value, e)) > 0)
        if (read_image_field(name, value, ret, e) < 0)
            return -1;
    if (more == 0 && ret->row.config == NULL)
        return refuse(e, "an image without a configuration");
    const struct silt_snapshot_row *s = &ret->snapshot;
    if (more == 0 && s->id[0] != 0 && (s->sandbox[0] == 0 || s->record == NULL))
        return refuse(e, "a snapshot without its sandbox");
    return more;
}

void silt_recovery_sandbox_fini(struct silt_recovery_sandbox *s)
{
    silt_sandbox_row_fini(&s->row);
    free(s->ports);
    s->ports = NULL;
}

void silt_recovery_image_fini(struct silt_recovery_image *i)
{
    free(i->row.config);
    free(i->names);
    silt_snapshot_row_fini(&i->snapshot);
    i->row.config = NULL;
    i->names = NULL;
}
