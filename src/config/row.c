/* SPDX-License-Identifier: Apache-2.0 */
#include "config/row.h"

#include <stddef.h>

const struct silt_row silt_rows[SILT_ROW_COUNT] = {
#define FIELD(field) offsetof(struct silt_config, field), sizeof(((struct silt_config *)0)->field)
    {"instance", SILT_ROW_TEXT, "silt", 1, 6, NULL, FIELD(instance),
     "Name of this instance, a-z and 0-9. It prefixes control groups and locks, so that several "
     "instances live on one machine."},
    {"listen", SILT_ROW_TEXT, "127.0.0.1:7458", 1, 63, NULL, FIELD(listen),
     "Address and port of the HTTP API. Port 0 takes a free one; `<run>/address` tells which."},
    {"state", SILT_ROW_PATH, "/var/lib/silt", 0, 0, NULL, FIELD(state),
     "Directory of everything that must survive a restart: database, images, files of sandboxes."},
    {"run", SILT_ROW_PATH, "/run/silt", 0, 0, NULL, FIELD(run),
     "Directory of the files `address` and `pid` of a running instance."},
    {"images", SILT_ROW_PATH, "", 0, 0, NULL, FIELD(images),
     "Directory of the images; `<state>/images` when not set."},
    {"token_file", SILT_ROW_PATH, "/etc/silt/token", 0, 0, NULL, FIELD(token_file),
     "File with the API token, at least 16 characters. Made with a random token when missing."},
    {"user", SILT_ROW_TEXT, "silt", 1, 63, NULL, FIELD(user),
     "User, by name or number, that the daemon facing the network runs as. When a user named silt "
     "does not exist, number 64998 is taken."},
    {"ids.base", SILT_ROW_NUMBER, "268435456", SILT_CONFIG_BLOCK_IDS, 0xff000000, NULL,
     FIELD(ids_base),
     "First uid and gid of the sandboxes, a multiple of 16777216. No other user or container tool "
     "may use the range."},
    {"ids.count", SILT_ROW_NUMBER, "16384", 256, 65280, NULL, FIELD(ids_count),
     "Largest number of sandboxes, a multiple of 256; each owns 65536 ids."},
    {"ids.images", SILT_ROW_NUMBER, "267386880", SILT_CONFIG_SLOT_IDS, 0xffff0000, NULL,
     FIELD(ids_images), "First of the 65536 ids that images are stored with, a multiple of 65536."},
    {"image", SILT_ROW_TEXT, "base", 1, 255, NULL, FIELD(image),
     "Image of a sandbox that does not ask for another one."},
    {"image.apt_source", SILT_ROW_TEXT, "", 0, 255, NULL, FIELD(image_apt_source),
     "What apt inside a built image uses: an http address or a whole `deb` line, without "
     "credentials. When not set, this machine's entries that anybody may see."},
    {"build.cache", SILT_ROW_NUMBER, "1000", 0, 100000, NULL, FIELD(build_cache),
     "How many steps of Dockerfiles are remembered, with the files they led to; the one not used "
     "for longest goes first. "
     "`silt image prune` forgets all."},
    {"build.context_max", SILT_ROW_BYTES, "4G", 1 << 20, 1ULL << 40, NULL, FIELD(build_context_max),
     "Largest build context, as a tar."},
    {"build.step_timeout", SILT_ROW_NUMBER, "3600", 1, 86400, NULL, FIELD(build_step_timeout),
     "Seconds after which a step of a build is ended."},
    {"images.map", SILT_ROW_TEXT, "cloudflare/sandbox*=base ghostwriternr/cloudflare-sandbox*=base",
     0, 1023, NULL, FIELD(images_map),
     "Which image stands in for names that do not exist here, as `repository=name`, separated by "
     "spaces. A repository "
     "may end in `*`; its tag does not matter."},
    {"images.insecure", SILT_ROW_TEXT, "", 0, 1023, NULL, FIELD(images_insecure),
     "Registries, as host or host:port with commas, that `silt image pull` may talk to without "
     "TLS, or with a certificate that nobody vouches for."},
    {"images.authorities", SILT_ROW_PATH, "", 0, 0, NULL, FIELD(images_authorities),
     "File (PEM) of further certificate authorities that registries may have, beside those of this "
     "machine in /usr/share/ca-certificates and "
     "/usr/local/share/ca-certificates. The daemon's user reads it at its start."},
    {"images.pull_timeout", SILT_ROW_NUMBER, "1800", 1, 86400, NULL, FIELD(images_pull_timeout),
     "How many seconds fetching an image from a registry may take."},
    {"images.pull_silence", SILT_ROW_NUMBER, "60", 1, 86400, NULL, FIELD(images_pull_silence),
     "How many seconds a registry may say nothing meanwhile."},
    {"images.pull_max", SILT_ROW_BYTES, "16G", 64 << 20, 1ULL << 40, NULL, FIELD(images_pull_max),
     "How much of an image, as its registry has packed it, is fetched at most."},
    {"type", SILT_ROW_CHOICE, "standard-1", 0, 0,
     "lite|basic|standard-1|standard-2|standard-3|standard-4", FIELD(type),
     "Instance type of a sandbox that does not ask for another one."},
    {"sleep_after_s", SILT_ROW_NUMBER, "600", 0, 31536000, NULL, FIELD(sleep_after_s),
     "Idle seconds after which a sandbox is paused, if it does not ask for another time. Its next "
     "use resumes it in a millisecond. 0: never."},
    {"stop_after_s", SILT_ROW_NUMBER, "86400", 0, 31536000, NULL, FIELD(stop_after_s),
     "Seconds after which a paused sandbox is stopped, if it does not ask for another time: its "
     "processes end, its files stay. 0: never."},
    {"pool.sandboxes", SILT_ROW_NUMBER, "8", 0, 4096, NULL, FIELD(pool_sandboxes),
     "How many sandboxes of the default image are kept ready. With 0 none of the images of "
     "containers are, either."},
    {"pool.namespaces", SILT_ROW_NUMBER, "2", 0, 64, NULL, FIELD(pool_namespaces),
     "How many network namespaces each worker keeps ready."},
    {"agent.deadline_ms", SILT_ROW_NUMBER, "30000", 1000, 3600000, NULL, FIELD(agent_deadline_ms),
     "How long the first process of a sandbox with requests may give no sign of life; then the "
     "sandbox is "
     "stopped, and the next use starts it again."},
    {"interpreter.output_max", SILT_ROW_BYTES, "32M", 1ULL << 16, 1ULL << 30, NULL,
     FIELD(interpreter_output_max),
     "What one run of code in an interpreter context may print; then it is interrupted and told "
     "so."},
    {"interpreter.spares", SILT_ROW_NUMBER, "1", 0, 8, NULL, FIELD(interpreter_spares),
     "How many started Nodes wait in a sandbox for its next JavaScript or TypeScript context, once "
     "it has had "
     "one; with 1 or more, also one warm Python for the next Python contexts, where the image has "
     "packages of its "
     "own. Their memory counts as the sandbox's. They end when memory gets short. 0: every context "
     "starts its own."},
    {"interpreter.spare_idle", SILT_ROW_NUMBER, "300", 1, 86400, NULL,
     FIELD(interpreter_spare_idle),
     "Seconds without a new context that could have used them after which they end, too."},
    {"interpreter.zygotes", SILT_ROW_NUMBER, "2", 0, 16, NULL, FIELD(interpreter_zygotes),
     "How many warm Pythons are kept, about 120 MB each: contexts of an image that root has built "
     "or vouched "
     "for, and of images built on it, are forked from its own. 0: every context starts its own "
     "Python."},
    {"interpreter.renew", SILT_ROW_NUMBER, "2000", 1, 1000000, NULL, FIELD(interpreter_renew),
     "After how many contexts, or six hours, a warm Python is replaced by a new one, in the "
     "background: its "
     "contexts have the same places in memory."},
    {"workers", SILT_ROW_NUMBER, "2", 1, 64, NULL, FIELD(workers),
     "How many privileged workers create and end sandboxes side by side."},
    {"disk.pool", SILT_ROW_BYTES, "64G", 1ULL << 28, 1ULL << 50, NULL, FIELD(disk_pool),
     "Largest size of the pool file that holds the files of all sandboxes. It grows with use, a "
     "step ahead of it, and keeps "
     "what it has. Not used where the state directory itself is on btrfs."},
    {"disk.reserve", SILT_ROW_BYTES, "2G", 16 << 20, 1ULL << 50, NULL, FIELD(disk_reserve),
     "What stays free on the disk of the state directory for the database, images and other "
     "programs: the pool does not grow "
     "into it. Where the state directory itself is on btrfs, writes of sandboxes fail (EDQUOT) "
     "when no more than this is left."},
    {"cgroup", SILT_ROW_PATH, "/sys/fs/cgroup", 0, 0, NULL, FIELD(cgroup),
     "Where the control groups are mounted."},
    {"log.level", SILT_ROW_LEVEL, "info", 0, 0, "debug|info|warn|error", FIELD(log_level),
     "The least important events that are logged."},
    {"network", SILT_ROW_CHOICE, "auto", 0, 0, "auto|off", FIELD(network),
     "Whether sandboxes get a way out. `auto`: where nftables is there. It needs a link "
     "`<instance>-up`, a table `silt_<instance>` and forwarding on the interfaces with a default "
     "route; all of it goes when the instance ends."},
    {"network.ipv4", SILT_ROW_TEXT, "10.210.0.0/16", 9, 31, NULL, FIELD(network_ipv4),
     "Addresses of the sandboxes, seen by them only: /8 to /24. Choose others when sandboxes shall "
     "reach a network that overlaps."},
    {"network.ipv6", SILT_ROW_TEXT, "fd73:696c:7400::/64", 4, 63, NULL, FIELD(network_ipv6),
     "The same for IPv6, at most /96."},
    {"network.open", SILT_ROW_TEXT, "", 0, 1023, NULL, FIELD(network_open),
     "Private networks that sandboxes may reach all the same, like 10.1.2.0/24, with commas."},
    {"network.connections", SILT_ROW_NUMBER, "2500", 16, 60000, NULL, FIELD(network_connections),
     "Connections that one sandbox may have open to the world."},
    {"network.connections_all", SILT_ROW_NUMBER, "0", 0, 100000000, NULL,
     FIELD(network_connections_all),
     "Connections of all sandboxes together beyond which each may begin only 16 more; twice as "
     "many "
     "there never are. 0: a quarter of this machine's nf_conntrack_max."},
    {"network.mode", SILT_ROW_CHOICE, "public", 0, 0, "public|none|allow", FIELD(network_mode),
     "The network of sandboxes that are created without one."},
    {"network.allow", SILT_ROW_TEXT, "", 0, 4095, NULL, FIELD(network_allow),
     "What those sandboxes may reach with `network.mode` = `allow`: rules like example.com, "
     "*.example.com:443 or 10.1.2.0/24:5432, with commas."},
    {"network.resolvers", SILT_ROW_TEXT, "", 0, 255, NULL, FIELD(network_resolvers),
     "Addresses of the DNS servers that sandboxes' questions go to, with commas; those of this "
     "machine's /etc/resolv.conf when not set."},
    {"cors.origins", SILT_ROW_TEXT, "", 0, 1023, NULL, FIELD(cors_origins),
     "Origins of pages that may call the API below /v1 from a browser, with commas, as "
     "`https://app.example.com`; `*`: all. They need the token as any client does."},
    {"http.connections", SILT_ROW_NUMBER, "10000", 16, 1000000, NULL, FIELD(http_connections),
     "Open connections of the API; more are closed at once."},
    {"http.head_timeout_ms", SILT_ROW_NUMBER, "10000", 100, 3600000, NULL,
     FIELD(http_head_timeout_ms), "How long the head of a request may take."},
    {"http.body_timeout_ms", SILT_ROW_NUMBER, "30000", 100, 3600000, NULL,
     FIELD(http_body_timeout_ms), "How long a sender may be silent inside a body."},
    {"http.idle_timeout_ms", SILT_ROW_NUMBER, "255000", 100, 86400000, NULL,
     FIELD(http_idle_timeout_ms), "How long a connection may be idle between requests."},
    {"fronts", SILT_ROW_TEXT, "", 0, 1023, NULL, FIELD(fronts),
     "Addresses or networks of servers that stand in front of previews, like 127.0.0.1, ::1, with "
     "commas. They alone are believed who a "
     "visitor is (`X-Forwarded-For`) and how it came (`X-Forwarded-Proto`); of everybody else both "
     "are ignored."},
    {"git.local_remotes", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(git_local_remotes),
     "Whether a checkout takes `file://` and absolute paths of the sandbox as repositories, as "
     "tests do."},
    {"metrics.sandboxes", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(metrics_sandboxes),
     "Whether `GET /metrics` also has numbers of each sandbox, with its id as a label; of the "
     "first "
     "1,000."},
    {"preview.listen", SILT_ROW_TEXT, "127.0.0.1:7459", 1, 63, NULL, FIELD(preview_listen),
     "Address and port of preview URLs. Port 0 takes a free one; `<run>/preview-address` tells "
     "which. `off`: "
     "there are none."},
    {"preview.domain", SILT_ROW_TEXT, "", 0, 127, NULL, FIELD(preview_domain),
     "What preview hosts end in, with its port unless that is the usual one; `localhost:PORT` when "
     "not "
     "set, which browsers open without DNS; with a certificate `silt.localhost:PORT`, because no "
     "browser takes one for all of `localhost`."},
    {"preview.certificate", SILT_ROW_PATH, "", 0, 0, NULL, FIELD(preview_certificate),
     "File (PEM) with the certificate of previews, and behind it those that vouch for it: a "
     "wildcard for `preview.domain`. When set, "
     "`preview.listen` speaks TLS, and sends plain requests there. Read again when it changes; "
     "`silt tls dev` makes one for this machine."},
    {"preview.key", SILT_ROW_PATH, "", 0, 0, NULL, FIELD(preview_key),
     "File (PEM) with its private key. Root reads it; nobody else should be able to."},
    {"preview.paths", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(preview_paths),
     "Whether previews are also found by path, for places without wildcard DNS: "
     "/preview/ID/PORT/TOKEN/ on any host. All of them share one origin, so they get no cookies."},
    {"preview.scheme", SILT_ROW_CHOICE, "auto", 0, 0, "auto|http|https", FIELD(preview_scheme),
     "How preview URLs begin. `auto`: https with a certificate of ours; without one http for "
     "localhost and addresses of loopback, else https, "
     "by a server with a certificate that stands in front of silt-proxy."},
    {"preview.short_tokens", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(preview_short_tokens),
     "Whether callers may choose tokens of less than 8 characters, which can be guessed."},
    {"preview.old_form", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(preview_old_form),
     "Whether the host ID-PORT.DOMAIN leads to an exposed port, too. It has no secret part."},
    {"preview.localhost_host", SILT_ROW_CHOICE, "off", 0, 0, "off|on",
     FIELD(preview_localhost_host),
     "Whether services are told `Host: localhost:PORT`, for development servers that refuse other "
     "names."},
    {"preview.wait_ms", SILT_ROW_NUMBER, "30000", 0, 3600000, NULL, FIELD(preview_wait_ms),
     "How long a request to a preview waits for the service to listen."},
    {"preview.connections", SILT_ROW_NUMBER, "1024", 1, 100000, NULL, FIELD(preview_connections),
     "Requests and upgraded connections that the previews of one sandbox serve at once."},
    {"preview.connections_all", SILT_ROW_NUMBER, "16000", 16, 1000000, NULL,
     FIELD(preview_connections_all),
     "Open connections of all visitors; fewer where the limit of open files is low. More are "
     "closed at once."},
    {"preview.idle_timeout_ms", SILT_ROW_NUMBER, "255000", 100, 86400000, NULL,
     FIELD(preview_idle_timeout_ms),
     "How long a visitor's connection may be idle between requests."},
    {"preview.silence_timeout_ms", SILT_ROW_NUMBER, "3600000", 1000, 86400000, NULL,
     FIELD(preview_silence_timeout_ms),
     "How long a request or an upgraded connection of a preview may be silent in both directions."},
    {"preview.total_timeout_s", SILT_ROW_NUMBER, "0", 0, 31536000, NULL,
     FIELD(preview_total_timeout_s),
     "How long one request or upgraded connection of a preview may last in all; 0: as long as it "
     "likes."},
    {"preview.bandwidth", SILT_ROW_BYTES, "0", 0, 1ULL << 40, NULL, FIELD(preview_bandwidth),
     "Bytes a second that the previews of one sandbox pass in each direction; 0: as many as they "
     "can."},
    {"engine.socket", SILT_ROW_TEXT, "", 0, 107, NULL, FIELD(engine_socket),
     "Unix socket of the Docker-compatible API for workerd and wrangler; `<run>/engine.sock` when "
     "not set. `off`: "
     "there is none. Whoever may open it may do everything that the API's token allows."},
    {"engine.mode", SILT_ROW_CHOICE, "0600", 0, 0, "0600|0660", FIELD(engine_mode),
     "Mode of the engine socket. `0660` lets its group in."},
    {"engine.group", SILT_ROW_TEXT, "", 0, 63, NULL, FIELD(engine_group),
     "Group of the engine socket, by name or number; root's when not set."},
    {"engine.exit_delay_ms", SILT_ROW_NUMBER, "0", 0, 60000, NULL, FIELD(engine_exit_delay_ms),
     "How long after a container's connections were cut its end is told to who waits for it."},
    {"engine.stop_after_ms", SILT_ROW_NUMBER, "1200", 0, 60000, NULL, FIELD(engine_stop_after_ms),
     "A signal ends a container that Silt's control server runs in no sooner than so long after "
     "its client began to wait "
     "for its end; until then it serves. Over rpc the npm client fails the first call after an end "
     "that came within its "
     "first second."},
    {"engine.keep_s", SILT_ROW_NUMBER, "604800", 0, 31536000, NULL, FIELD(engine_keep_s),
     "How many seconds the files of a container that had ended before it was removed wait for the "
     "next one of "
     "the same name and image. 0: they go with it."},
    {"engine.hold_ms", SILT_ROW_NUMBER, "1500", 0, 60000, NULL, FIELD(engine_hold_ms),
     "How long a connection to a port of a container that was started less than that ago waits for "
     "the port to open."},
    {"engine.max_instances", SILT_ROW_CHOICE, "off", 0, 0, "off|on", FIELD(engine_max_instances),
     "Whether no more containers of one class run at once than its image says (label "
     "`silt.max_instances`). Those that sleep do not count."},
#undef FIELD
};

const struct silt_row *silt_row_find(silt_slice name)
{
    for (size_t i = 0; i < SILT_ROW_COUNT; i++)
        if (silt_slice_eq(silt_slice_of(silt_rows[i].name), name))
            return &silt_rows[i];
    return NULL;
}

/* The index of the text in "a|b|c", or -1. */
static int choice_of(const char *choices, silt_slice text)
{
    silt_slice rest = silt_slice_of(choices), one;
    for (int i = 0; silt_slice_split(&rest, '|', &one); i++)
        if (silt_slice_eq(one, text))
            return i;
    return -1;
}

/* "64G": the factor (a power of 1024); *text keeps only the digits. */
static uint64_t unit_of(silt_slice *text)
{
    static const char units[] = "KMGT";
    const char *unit = text->len > 0 ? strchr(units, text->data[text->len - 1]) : NULL;
    if (unit == NULL || *unit == 0)
        return 1;
    text->len--;
    return 1ULL << (10 * (unit - units + 1));
}

static int number_of(const struct silt_row *r, silt_slice text, uint64_t *ret, struct silt_error *e)
{
    uint64_t unit = r->kind == SILT_ROW_BYTES ? unit_of(&text) : 1, value;
    if (silt_slice_to_u64(text, 0, UINT64_MAX, &value, e) < 0)
        return -1;
    if (__builtin_mul_overflow(value, unit, &value) || value < r->min || value > r->max)
        return silt_fail(e, SILT_INVALID, "not between %llu and %llu", (unsigned long long)r->min,
                         (unsigned long long)r->max);
    *ret = value;
    return 0;
}

static int set_text(const struct silt_row *r, struct silt_config *c, silt_slice text,
                    struct silt_error *e)
{
    bool unset = text.len == 0 && r->preset[0] == 0;
    if (r->kind == SILT_ROW_PATH && !unset && (text.len == 0 || text.data[0] != '/'))
        return silt_fail(e, SILT_INVALID, "not an absolute path");
    if (r->kind == SILT_ROW_TEXT && (text.len < r->min || text.len > r->max))
        return silt_fail(e, SILT_INVALID, "has %zu bytes, not %d to %d", text.len, (int)r->min,
                         (int)r->max);
    if (r->kind == SILT_ROW_CHOICE && choice_of(r->choices, text) < 0)
        return silt_fail(e, SILT_INVALID, "not one of %s", r->choices);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ')
            return silt_fail(e, SILT_INVALID, "holds a control character");
    return silt_slice_to_cstr(text, (char *)c + r->at, r->size, e);
}

static int set_number(const struct silt_row *r, struct silt_config *c, silt_slice text,
                      struct silt_error *e)
{
    uint64_t wide;
    if (number_of(r, text, &wide, e) < 0)
        return -1;
    uint32_t narrow = (uint32_t)wide;
    if (r->size == sizeof(wide))
        memcpy((char *)c + r->at, &wide, sizeof(wide));
    else
        memcpy((char *)c + r->at, &narrow, sizeof(narrow));
    return 0;
}

int silt_row_set(const struct silt_row *r, struct silt_config *c, const char *value,
                 struct silt_error *e)
{
    silt_slice text = silt_slice_of(value);
    int level;
    switch (r->kind) {
    case SILT_ROW_TEXT:
    case SILT_ROW_PATH:
    case SILT_ROW_CHOICE:
        return set_text(r, c, text, e);
    case SILT_ROW_NUMBER:
    case SILT_ROW_BYTES:
        return set_number(r, c, text, e);
    case SILT_ROW_LEVEL:
        level = choice_of(r->choices, text);
        if (level < 0)
            return silt_fail(e, SILT_INVALID, "not one of %s", r->choices);
        c->log_level = (enum silt_log_level)level;
        return 0;
    }
    return silt_fail(e, SILT_INTERNAL, "setting of unknown kind");
}
