/* SPDX-License-Identifier: Apache-2.0 */
#include "super/handover.h"
#include "base/fd.h"

#include <assert.h>
#include <fcntl.h>

enum {
    FD_FIRST = 3,
    FD_END = 1 << 22,
    ENTRY_FDS = 4,
    SLOTS_MAX = 65280, /* of the setting ids.count */
    TEXTS_MAX = 1 << 20,
};

static const char magic[8] = "silt-ho\n";

/* The table: the head, `entries` entries, `texts` bytes of texts, each ended by NUL. Numbers are in
 * the machine's own order. */
struct head {
    char magic[8];
    uint32_t version;
    uint32_t slots;
    uint32_t entries;
    uint32_t texts;
    uint64_t sum; /* of all that follows */
};

enum kind {
    LISTEN = 1,
    PREVIEW,
    ENGINE,
    GATE,
    GATE_LOG,
    GATE_SOCKET,
    LOCK,
    SANDBOX,  /* key: its slot; channel, pidfd */
    CONTEXT,  /* after its sandbox; key, number */
    LISTENER, /* number */
    KIND_END
};

struct entry {
    uint32_t kind;
    uint32_t key;
    uint64_t number;
    int32_t fds[ENTRY_FDS]; /* -1: not used */
};

static const int fds_of[KIND_END] = {
    [LISTEN] = 1,   [PREVIEW] = 1,  [ENGINE] = 1,
    [GATE] = 1,     [GATE_LOG] = 1, [GATE_SOCKET] = 1,
    [LOCK] = 1,     [SANDBOX] = 2,  [CONTEXT] = SILT_SUPER_CONTEXT_FDS,
    [LISTENER] = 1,
};

/* FNV-1a, over the counts of the head and all that follows it. */
static uint64_t sum_of(const struct head *head, silt_slice bytes)
{
    uint64_t sum = 0xcbf29ce484222325U ^ head->slots ^ (uint64_t)head->entries << 32;
    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (uint8_t)bytes.data[i]) * 0x100000001b3U;
    return sum;
}

/* Every entry, in the order in which it is written. */

typedef void (*entry_fn)(void *context, const struct entry *entry);

static void each_one(enum kind kind, int fd, entry_fn with, void *context)
{
    struct entry one = {.kind = kind, .fds = {fd, -1, -1, -1}};
    if (fd >= 0)
        with(context, &one);
}

static void each_kept(const struct silt_fd_store *keep, uint32_t key, entry_fn with, void *context)
{
    const struct silt_kept *item = &keep->items[key];
    struct entry sandbox = {
        .kind = SANDBOX, .key = key, .fds = {item->channel, item->pidfd, -1, -1}};
    if (item->channel < 0)
        return;
    with(context, &sandbox);
    for (uint32_t i = 0; i < item->context_count; i++) {
        struct entry one = {.kind = CONTEXT, .key = key, .number = item->contexts[i].number};
        for (int n = 0; n < SILT_SUPER_CONTEXT_FDS; n++)
            one.fds[n] = item->contexts[i].fds[n];
        with(context, &one);
    }
}

static void each_entry(const struct silt_handover *h, entry_fn with, void *context)
{
    each_one(LISTEN, h->listen, with, context);
    each_one(PREVIEW, h->preview, with, context);
    each_one(ENGINE, h->engine, with, context);
    each_one(GATE, h->gate, with, context);
    each_one(GATE_LOG, h->gate_log, with, context);
    for (uint32_t i = 0; i < h->gate_socket_count; i++)
        each_one(GATE_SOCKET, h->gate_sockets[i], with, context);
    for (uint32_t i = 0; i < h->locks.count; i++)
        each_one(LOCK, h->locks.fds[i], with, context);
    for (uint32_t i = 0; i < h->keep.count; i++)
        each_kept(&h->keep, i, with, context);
    for (uint32_t i = 0; i < h->keep.listener_count; i++) {
        const struct silt_kept_listener *l = &h->keep.listeners[i];
        struct entry one = {.kind = LISTENER, .number = l->number, .fds = {l->fd, -1, -1, -1}};
        with(context, &one);
    }
}

/* Writing. */

static silt_slice bytes_of(const void *data, size_t len)
{
    return (silt_slice){data, len};
}

static void add_entry(void *out, const struct entry *entry)
{
    silt_buf_add(out, bytes_of(entry, sizeof(*entry)));
}

void silt_handover_write(const struct silt_handover *h, struct silt_buf *out)
{
    struct head head = {.version = SILT_HANDOVER_VERSION, .slots = h->keep.count};
    memcpy(head.magic, magic, sizeof(magic));
    silt_buf_add(out, bytes_of(&head, sizeof(head)));
    each_entry(h, add_entry, out);
    head.entries = (uint32_t)((out->len - sizeof(head)) / sizeof(struct entry));
    size_t before = out->len;
    for (char **s = h->settings; *s != NULL; s++)
        silt_buf_add(out, bytes_of(*s, strlen(*s) + 1));
    head.texts = (uint32_t)(out->len - before);
    if (out->broken)
        return;
    head.sum = sum_of(&head, bytes_of(out->data + sizeof(head), out->len - sizeof(head)));
    memcpy(out->data, &head, sizeof(head));
}

/* Reading. */

struct reading {
    struct silt_handover *to;
    uint8_t *seen; /* a bit per descriptor: each belongs to one entry */
};

static int fail_entry(const struct entry *n, const char *why, struct silt_error *e)
{
    return silt_fail(e, SILT_PROTOCOL, "entry of kind %u, key %u, number %llu: %s", n->kind, n->key,
                     (unsigned long long)n->number, why);
}

static int check_fds(struct reading *g, const struct entry *n, struct silt_error *e)
{
    for (int i = 0; i < ENTRY_FDS; i++) {
        int fd = n->fds[i];
        if (i >= fds_of[n->kind] && fd != -1)
            return fail_entry(n, "one descriptor too many", e);
        if (i >= fds_of[n->kind])
            continue;
        if (fd < FD_FIRST || fd >= FD_END || (g->seen[fd / 8] & 1 << fd % 8) != 0)
            return fail_entry(n, "an impossible descriptor", e);
        g->seen[fd / 8] |= (uint8_t)(1 << fd % 8);
    }
    return 0;
}

static int take_single(const struct entry *n, int *to, struct silt_error *e)
{
    if (*to >= 0)
        return fail_entry(n, "there are two", e);
    *to = n->fds[0];
    return 0;
}

static int take_next(const struct entry *n, int *list, uint32_t *count, uint32_t max,
                     struct silt_error *e)
{
    if (*count == max)
        return fail_entry(n, "too many", e);
    list[(*count)++] = n->fds[0];
    return 0;
}

static int take_kept(const struct entry *n, struct silt_fd_store *keep, struct silt_error *e)
{
    struct silt_kept_context c = {.number = n->number};
    if (n->kind == LISTENER)
        return silt_fd_store_put_listener(keep, n->number, n->fds[0])
                   ? 0
                   : fail_entry(n, "number taken, or too many", e);
    if (n->key >= keep->count)
        return fail_entry(n, "no such slot", e);
    if (n->kind == SANDBOX && keep->items[n->key].channel >= 0)
        return fail_entry(n, "there are two", e);
    if (n->kind == SANDBOX) {
        silt_fd_store_put(keep, n->key, n->fds[0], n->fds[1]);
        return 0;
    }
    for (int i = 0; i < SILT_SUPER_CONTEXT_FDS; i++)
        c.fds[i] = n->fds[i];
    return silt_fd_store_put_context(keep, n->key, &c)
               ? 0
               : fail_entry(n, "no such sandbox, number taken, or too many", e);
}

static int take_entry(struct reading *g, const struct entry *n, struct silt_error *e)
{
    struct silt_handover *h = g->to;
    if (n->kind == 0 || n->kind >= KIND_END)
        return fail_entry(n, "unknown kind", e);
    if (check_fds(g, n, e) < 0)
        return -1;
    switch ((enum kind)n->kind) {
    case LISTEN:
        return take_single(n, &h->listen, e);
    case PREVIEW:
        return take_single(n, &h->preview, e);
    case ENGINE:
        return take_single(n, &h->engine, e);
    case GATE:
        return take_single(n, &h->gate, e);
    case GATE_LOG:
        return take_single(n, &h->gate_log, e);
    case GATE_SOCKET:
        return take_next(n, h->gate_sockets, &h->gate_socket_count, SILT_GATEWAY_SOCKETS, e);
    case LOCK:
        return take_next(n, h->locks.fds, &h->locks.count, SILT_INSTANCE_LOCKS_MAX, e);
    case SANDBOX:
    case CONTEXT:
    case LISTENER:
        return take_kept(n, &h->keep, e);
    case KIND_END:
        break;
    }
    return -1;
}

static int take_entries(struct silt_handover *h, silt_slice bytes, struct silt_error *e)
{
    silt_auto_free uint8_t *seen = calloc(FD_END / 8, 1);
    struct reading g = {.to = h, .seen = seen};
    if (seen == NULL)
        abort();
    for (size_t at = 0; at < bytes.len; at += sizeof(struct entry)) {
        struct entry one;
        memcpy(&one, bytes.data + at, sizeof(one));
        if (take_entry(&g, &one, e) < 0)
            return -1;
    }
    if (h->listen < 0)
        return silt_fail(e, SILT_PROTOCOL, "no listening socket");
    if ((h->gate < 0) != (h->gate_log < 0) || (h->gate < 0 && h->gate_socket_count > 0))
        return silt_fail(e, SILT_PROTOCOL, "half a gateway");
    return 0;
}

static int take_settings(struct silt_handover *h, silt_slice texts, struct silt_error *e)
{
    size_t count = 0;
    if (texts.len > 0 && texts.data[texts.len - 1] != 0)
        return silt_fail(e, SILT_PROTOCOL, "a text without an end");
    for (; texts.len > 0; count++) {
        size_t len = strlen(texts.data) + 1;
        if (count == SILT_HANDOVER_SETTINGS_MAX)
            return silt_fail(e, SILT_PROTOCOL, "too many settings");
        h->settings[count] = strdup(texts.data);
        if (h->settings[count] == NULL)
            abort();
        texts = (silt_slice){texts.data + len, texts.len - len};
    }
    return 0;
}

static int check_head(silt_slice bytes, struct head *ret, struct silt_error *e)
{
    if (bytes.len < sizeof(*ret) || memcmp(bytes.data, magic, sizeof(magic)) != 0)
        return silt_fail(e, SILT_PROTOCOL, "not a handover");
    memcpy(ret, bytes.data, sizeof(*ret));
    if (ret->version != SILT_HANDOVER_VERSION)
        return silt_fail(e, SILT_PROTOCOL,
                         "a handover of version %u, not %d: restart the instance instead",
                         ret->version, SILT_HANDOVER_VERSION);
    silt_slice rest = {bytes.data + sizeof(*ret), bytes.len - sizeof(*ret)};
    if (ret->slots > SLOTS_MAX || ret->texts > TEXTS_MAX
        || (uint64_t)ret->entries * sizeof(struct entry) + ret->texts != rest.len
        || ret->sum != sum_of(ret, rest))
        return silt_fail(e, SILT_PROTOCOL, "a damaged handover");
    return 0;
}

int silt_handover_read(silt_slice bytes, struct silt_handover *ret, struct silt_error *e)
{
    struct head head;
    struct silt_handover h = {
        .listen = -1, .preview = -1, .engine = -1, .gate = -1, .gate_log = -1};
    if (check_head(bytes, &head, e) < 0)
        return -1;
    size_t len = head.entries * sizeof(struct entry);
    silt_slice entries = {bytes.data + sizeof(head), len};
    silt_slice texts = {entries.data + len, head.texts};
    silt_fd_store_init(&h.keep, head.slots);
    h.settings = calloc(SILT_HANDOVER_SETTINGS_MAX + 1, sizeof(char *));
    if (h.settings == NULL)
        abort();
    if (take_entries(&h, entries, e) < 0 || take_settings(&h, texts, e) < 0) {
        silt_handover_forget(&h);
        return silt_because(e, "handover");
    }
    *ret = h;
    return 0;
}

void silt_handover_forget(struct silt_handover *h)
{
    silt_fd_store_forget(&h->keep);
    silt_config_args_free(h->settings);
    h->settings = NULL;
}

/* Descriptors. */

struct marking {
    int flags;
    bool failed;
    struct silt_error *e;
};

static void mark(void *context, const struct entry *n)
{
    struct marking *m = context;
    for (int i = 0; i < fds_of[n->kind] && !m->failed; i++)
        if (fcntl(n->fds[i], F_SETFD, m->flags) < 0)
            m->failed = silt_fail_errno(m->e, "descriptor %d of kind %u", n->fds[i], n->kind) < 0;
}

int silt_handover_mark(const struct silt_handover *h, int flags, struct silt_error *e)
{
    struct marking m = {.flags = flags, .e = e};
    each_entry(h, mark, &m);
    return m.failed ? -1 : 0;
}

int silt_handover_load(int fd, struct silt_handover *ret, struct silt_error *e)
{
    silt_slice bytes;
    if (silt_fd_map_sealed(fd, SILT_HANDOVER_MAX, &bytes, e) < 0)
        return silt_because(e, "handover");
    int got = silt_handover_read(bytes, ret, e);
    silt_fd_unmap(bytes);
    return got;
}
