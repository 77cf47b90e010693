/* SPDX-License-Identifier: Apache-2.0 */
#include "api/git/request.h"
#include "api/core/quote.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 600000, BRANCH_MAX = 1024, DEPTH_MAX = 2147483647 };

static const struct number {
    const char *name, *code;
    const char *called, *like; /* field name and examples in the official client's message */
} depth = {"depth", "INVALID_DEPTH", "depth", "(e.g., 1, 5, 10)"},
  timeout = {"timeoutMs", "INVALID_TIMEOUT", "timeout", "number of milliseconds"};

static bool refuse(struct silt_call *c, const char *field, const char *why, const char *code)
{
    silt_api_refuse_value(c->request, field, why, code);
    return false;
}

/* The official client's message; the client accepts such a number over RPC only. /v1 has its own
 * message. */
static bool refuse_number(struct silt_call *c, const struct number *n, const struct silt_json *v)
{
    char why[256];
    silt_auto_buf b = {0};
    if (c->kind->native)
        return refuse(c, n->name, "must be a positive whole number", n->code);
    silt_buf_init(&b, 64);
    silt_json_value(&b, v);
    (void)snprintf(why, sizeof(why), "Invalid %s value: %.*s. Must be a positive integer %s.",
                   n->called, b.broken ? 0 : (int)b.len, b.broken ? "" : b.data, n->like);
    silt_api_refuse_value_saying(c->request, n->name, why, n->code);
    return false;
}

/* A positive integer; false: already answered with an error. */
static bool read_positive(struct silt_call *c, const struct number *what, uint32_t *ret)
{
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(what->name));
    if (v == NULL)
        return true;
    double n = v->type == SILT_JSON_INT      ? (double)v->integer
               : v->type == SILT_JSON_DOUBLE ? v->number
                                             : 0;
    if (!(n >= 1) || n > DEPTH_MAX || n != (double)(uint32_t)n)
        return refuse_number(c, what, v);
    *ret = (uint32_t)n;
    return true;
}

static bool read_url(struct silt_call *c, struct silt_git_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("repoUrl"));
    struct silt_error e;
    (void)silt_fail(&e, SILT_INVALID, "must be a string that is not empty");
    if (v != NULL && v->type == SILT_JSON_STRING && v->string.len > 0) {
        q->repo = v->string;
        if (silt_git_url_read(&q->url, silt_trim_blank(v->string), c->api->git_local_remotes, &e)
            == 0)
            return true;
    }
    silt_api_refuse_value_as(c->request, SILT_API_INVALID_GIT_URL, "repoUrl", e.text,
                             "INVALID_GIT_URL");
    return false;
}

static bool read_branch(struct silt_call *c, struct silt_git_request *q)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("branch"));
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (v->type != SILT_JSON_STRING || v->string.len > BRANCH_MAX)
        return refuse(c, "branch", "must be a string of at most 1024 characters", "INVALID_BRANCH");
    q->branch = v->string;
    for (size_t i = 0; i < q->branch.len; i++)
        if ((unsigned char)q->branch.data[i] < ' ' || q->branch.data[i] == 0x7f)
            return refuse(c, "branch", "must not hold a control character", "INVALID_BRANCH");
    if (q->branch.len > 0 && q->branch.data[0] == '-')
        return refuse(c, "branch", "must not begin with a dash", "INVALID_BRANCH");
    return true;
}

static bool read_target(struct silt_call *c, struct silt_git_request *q)
{
    static const char where[] = "/workspace/";
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("targetDir"));
    if (v == NULL || v->type == SILT_JSON_NULL) {
        char *path = silt_arena_alloc(c->request->arena, sizeof(where) + sizeof(q->url.name));
        if (path == NULL)
            abort();
        int n = snprintf(path, sizeof(where) + sizeof(q->url.name), "%s%s", where, q->url.name);
        q->target = (silt_slice){path, (size_t)n};
        return true;
    }
    const char *wrong = v->type != SILT_JSON_STRING || v->string.len == 0
                            ? "must be a string that is not empty"
                        : silt_slice_has_byte(v->string, 0) ? "must not hold a NUL character"
                        : v->string.len >= PATH_MAX         ? "is longer than 4095 bytes"
                                                            : NULL;
    if (wrong != NULL)
        return refuse(c, "targetDirectory", wrong, "INVALID_PATH");
    q->target = v->string;
    return true;
}

bool silt_git_request_read(struct silt_call *c, struct silt_git_request *q)
{
    *q = (struct silt_git_request){.timeout_ms = TIMEOUT_MS};
    silt_git_url_init(&q->url);
    if (read_url(c, q) && read_branch(c, q) && read_target(c, q)
        && read_positive(c, &depth, &q->depth) && read_positive(c, &timeout, &q->timeout_ms)
        && silt_session_choice_read(c, &q->choice))
        return true;
    silt_git_url_fini(&q->url);
    return false;
}

/* Only the server named by the client gets the credentials: git asks again for every host it is
 * redirected to. Reopening the memory file reads it from the start, as often as git asks. */
static void add_helper(const struct silt_git_request *q, struct silt_buf *b)
{
    silt_buf_add(b, SILT_LIT(" -c credential.helper="));
    if (!q->url.has_secret)
        return;
    silt_auto_buf option;
    silt_buf_init(&option, SILT_GIT_URL_MAX + 256);
    silt_buf_add(&option, SILT_LIT("credential."));
    silt_buf_add(&option, silt_buf_slice(&q->url.origin));
    silt_buf_add(
        &option,
        SILT_LIT(".helper=!f() { if test \"$1\" = get; then cat /proc/self/fd/3; fi; }; f"));
    silt_buf_add(b, SILT_LIT(" -c "));
    silt_shell_quote(b, silt_buf_slice(&option));
}

static void add_clone(const struct silt_git_request *q, bool progress, struct silt_buf *b)
{
    silt_buf_add(
        b,
        SILT_LIT(
            "\\command git -c http.lowSpeedLimit=1024 -c http.lowSpeedTime=30"
            " -c core.hooksPath=/dev/null -c protocol.ext.allow=never -c submodule.recurse=false"));
    add_helper(q, b);
    silt_buf_add(b, SILT_LIT(" clone --no-hardlinks"));
    if (progress)
        silt_buf_add(b, SILT_LIT(" --progress"));
    if (!q->url.has_secret) /* a partial clone could not fetch the rest later without credentials */
        silt_buf_add(b, SILT_LIT(" --filter=blob:none"));
    if (q->branch.len > 0) {
        silt_buf_add(b, SILT_LIT(" --branch "));
        silt_shell_quote(b, q->branch);
    }
    if (q->depth > 0)
        silt_buf_addf(b, " --depth %u", q->depth);
    silt_buf_add(b, SILT_LIT(" -- "));
    silt_shell_quote(b, silt_buf_slice(&q->url.plain));
    silt_buf_add(b, SILT_LIT(" \"$__silt_dir\" >&2 || __silt_end=$?\n"));
}

/* A shell with a trap outlives the signal that ends git, so it can still clean up. The session may
 * have changed any shell option, so the script relies on none, and tracing, which would show
 * credentials, is off. */
void silt_git_request_script(const struct silt_git_request *q, bool progress, struct silt_buf *b)
{
    silt_buf_add(b,
                 SILT_LIT("\\command set +eu\n\\command trap : TERM\n"
                          "\\command unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE "
                          "GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_CURL_VERBOSE \"${!GIT_TRACE@}\"\n"
                          "__silt_end=0 __silt_old=1\n__silt_dir="));
    silt_shell_quote(b, q->target);
    silt_buf_add(b, SILT_LIT("\n[[ -e $__silt_dir || -L $__silt_dir ]] || __silt_old=0\n"));
    add_clone(q, progress, b);
    silt_buf_add(
        b,
        SILT_LIT(
            "if (( __silt_end != 0 )); then\n"
            "(( __silt_old )) || \\command rm -rf -- \"$__silt_dir\"\n"
            "\\command exit $__silt_end\nfi\n"
            "\\command echo \"$(\\command git -C \"$__silt_dir\" symbolic-ref -q --short HEAD)\"\n"
            "\\command echo \"$(\\command git -C \"$__silt_dir\" rev-parse -q --verify HEAD)\"\n"
            "\\command exit 0\n"));
}

#define ENV                                                                                        \
    "GIT_TERMINAL_PROMPT=0\0GIT_ASKPASS=\0SSH_ASKPASS=\0LC_ALL=C\0GIT_ALLOW_PROTOCOL=http:https:"  \
    "ssh:git"

silt_slice silt_git_request_env(const struct silt_git_request *q)
{
    return q->url.local ? SILT_LIT(ENV ":file\0") : SILT_LIT(ENV "\0");
}
