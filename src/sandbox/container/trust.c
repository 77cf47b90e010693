/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "sandbox/container/internal.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/start_frame.h"

#define SYSTEM_BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define DEFAULT_CA "/etc/cloudflare/certs/cloudflare-containers-ca.crt"

#define BEGIN "# silt: what the engine's client added"
#define END "# silt: end"

enum { TRUST_MS = 10000, ENV_MAX = 128 << 10, NO_CERTIFICATE = 3 /* the script's exit code */ };

/* Files outlive a container, and each sidecar has its own authority: removes an earlier one's
 * certificate. */
static const char script[] =
    "[ -s \"$SANDBOX_CA_CERT\" ] || exit 3\n"
    "set -e\n"
    "mkdir -p \"${0%/*}\"\n"
    "touch \"$0\"\n"
    "all=$(readlink -f \"$0\")\n"
    "{ sed -e \"/^" BEGIN "\\$/,/^" END "\\$/d\" -e '$a\\' \"$all\"\n"
    "echo \"" BEGIN "\"; cat \"$SANDBOX_CA_CERT\"; echo; echo \"" END "\"; } >\"$all.silt\"\n"
    "cmp -s \"$all.silt\" \"$all\" && { rm \"$all.silt\"; exit; }\n"
    "chmod 644 \"$all.silt\"\n"
    "mv \"$all.silt\" \"$all\"\n";

static silt_slice value_of(silt_slice env, silt_slice name)
{
    silt_slice one, given;
    while (silt_slice_split(&env, 0, &one))
        if (silt_slice_split(&one, '=', &given) && silt_slice_eq(given, name))
            return one;
    return (silt_slice){NULL, 0};
}

static bool wants(const struct silt_container *c)
{
    return c->builtin
           && silt_slice_eq(value_of(c->spec.env, SILT_LIT("SANDBOX_INTERCEPT_HTTPS")),
                            SILT_LIT("1"));
}

static silt_slice ca_of(silt_slice env)
{
    silt_slice value = value_of(env, SILT_LIT("SANDBOX_CA_CERT"));
    return value.len > 0 ? value : SILT_LIT(DEFAULT_CA);
}

static void add_variable(struct silt_buf *b, const char *name, silt_slice value)
{
    silt_buf_addf(b, "%s=%.*s", name, (int)value.len, value.data);
    silt_buf_add_byte(b, 0);
}

/* Node adds the certificate to its own; all others read one file instead of theirs. */
void silt_container_name_trust(struct silt_container *c)
{
    static const char *const bundles[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                                          "GIT_SSL_CAINFO"};
    silt_auto_buf b;
    silt_buf_init(&b, ENV_MAX);
    if (!wants(c))
        return;
    silt_slice ca = ca_of(c->spec.env);
    add_variable(&b, "SANDBOX_CA_CERT", ca);
    add_variable(&b, "NODE_EXTRA_CA_CERTS", ca);
    for (size_t i = 0; i < SILT_COUNT(bundles); i++)
        add_variable(&b, bundles[i], SILT_LIT(SYSTEM_BUNDLE));
    silt_env_merge(&b, c->spec.env);
    char *copy = b.broken ? NULL : silt_arena_dup(&c->arena, silt_buf_slice(&b));
    if (copy != NULL)
        c->spec.env = (silt_slice){copy, b.len};
}

static void explain(const struct silt_container *c, const struct silt_process *p,
                    struct silt_error *e)
{
    silt_slice ca = ca_of(c->spec.env);
    int32_t code = p != NULL ? p->row.exit_code : -1;
    if (code == NO_CERTIFICATE)
        (void)silt_fail(e, SILT_INVALID,
                        "SANDBOX_INTERCEPT_HTTPS is set, but there is no certificate in %.*s",
                        (int)ca.len, ca.data);
    else
        (void)silt_fail(e, SILT_INTERNAL,
                        "the certificate in %.*s could not be added to %s (code %d)", (int)ca.len,
                        ca.data, SYSTEM_BUNDLE, code);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct silt_container *c = silt_outer(w, struct silt_container, watch);
    struct silt_error own;
    if (what == SILT_PROCESS_STARTED) {
        silt_process_watch(c->process, w);
        return;
    }
    bool failed = what != SILT_PROCESS_ENDED || p->row.exit_code != 0;
    c->process = NULL;
    if (failed && what != SILT_PROCESS_NOT_STARTED) {
        explain(c, what == SILT_PROCESS_ENDED ? p : NULL, &own);
        e = &own;
    }
    c->on_trusted(c, failed ? e : NULL);
}

int silt_container_trust(struct silt_container *c, struct silt_sandbox *s,
                         void (*on_trusted)(struct silt_container *c, const struct silt_error *e),
                         struct silt_error *e)
{
    silt_auto_buf argv;
    silt_buf_init(&argv, 4096);
    if (!wants(c)) {
        on_trusted(c, NULL);
        return 0;
    }
    silt_buf_add(&argv, SILT_LIT("/bin/sh\0-c\0"));
    silt_buf_add(&argv, (silt_slice){script, sizeof(script)});
    silt_buf_add(&argv, SILT_LIT(SYSTEM_BUNDLE "\0"));
    struct silt_process_request q = {
        .exec = {.mode = SILT_EXEC_PLAIN,
                 .command = silt_buf_slice(&argv),
                 .user = SILT_LIT("0"), /* the image's user may not write there */
                 .timeout_ms = TRUST_MS,
                 .flags = SILT_START_ARGV},
        .id = SILT_LIT("/trust")};
    c->on_trusted = on_trusted;
    c->watch.on_event = on_event;
    return silt_process_start(s, NULL, &q, &c->watch, &c->process, e);
}
