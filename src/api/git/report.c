/* SPDX-License-Identifier: Apache-2.0 */
#include "api/git/report.h"

#include <strings.h>

void silt_git_report_init(struct silt_git_report *r)
{
    *r = (struct silt_git_report){0};
    silt_buf_init(&r->lines, 2 * SILT_GIT_STDERR_MAX + SILT_GIT_LINE_MAX + 1);
}

void silt_git_report_fini(struct silt_git_report *r)
{
    silt_buf_fini(&r->lines);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* `  42% (…` after the phase; false if it is something else. */
static bool read_percent(silt_slice rest, int *ret)
{
    size_t i = 0;
    int n = 0;
    while (i < rest.len && rest.data[i] == ' ')
        i++;
    size_t begin = i;
    for (; i < rest.len && i < begin + 3 && is_digit(rest.data[i]); i++)
        n = n * 10 + (rest.data[i] - '0');
    if (i == begin || i == rest.len || rest.data[i] != '%' || n > 100)
        return false;
    *ret = n;
    return true;
}

/* `Enumerating objects: 5, done.` has a count and no percentage. */
static bool is_count(silt_slice rest)
{
    rest = silt_slice_trim(rest);
    size_t i = 0;
    while (i < rest.len && is_digit(rest.data[i]))
        i++;
    return i > 0 && (i == rest.len || rest.data[i] == ',');
}

bool silt_git_progress_read(silt_slice line, struct silt_git_progress *ret)
{
    static const silt_slice remote = {"remote: ", 8};
    *ret = (struct silt_git_progress){.percent = -1};
    if (silt_slice_starts(line, remote))
        line = (silt_slice){line.data + remote.len, line.len - remote.len};
    silt_slice rest = line, phase;
    if (!silt_slice_has_byte(line, ':') || !silt_slice_split(&rest, ':', &phase) || phase.len == 0
        || phase.len > 40)
        return false;
    for (size_t i = 0; i < phase.len; i++)
        if (phase.data[i] != ' ' && (phase.data[i] < 'A' || phase.data[i] > 'z'))
            return false;
    if (!read_percent(rest, &ret->percent) && !is_count(rest))
        return false;
    ret->phase = phase;
    ret->text = silt_slice_trim(line);
    return true;
}

static void forget_oldest(struct silt_git_report *r)
{
    if (r->lines.len > SILT_GIT_STDERR_MAX)
        silt_buf_drop(&r->lines, r->lines.len - SILT_GIT_STDERR_MAX);
}

/* Keeps the newest lines: git prints the reason last. Lets twice the limit gather, so that a flood
 * of short lines does not move everything each time. */
static void keep(struct silt_git_report *r, silt_slice line)
{
    silt_buf_add(&r->lines, line);
    silt_buf_add_byte(&r->lines, '\n');
    if (r->lines.len > 2 * SILT_GIT_STDERR_MAX)
        forget_oldest(r);
}

static void end_line(struct silt_git_report *r, bool taken_back)
{
    silt_slice line = {r->line, r->len};
    struct silt_git_progress p;
    r->len = 0;
    if (silt_git_progress_read(line, &p)) {
        if (r->progress != NULL)
            r->progress(r, &p);
    } else if (!taken_back && line.len > 0) {
        keep(r, line);
    }
}

void silt_git_report_add(struct silt_git_report *r, silt_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.data[i];
        if (c == '\n' || c == '\r')
            end_line(r, c == '\r');
        else if (r->len < sizeof(r->line))
            r->line[r->len++] = c;
    }
}

void silt_git_report_end(struct silt_git_report *r)
{
    end_line(r, false);
    forget_oldest(r);
}

/* ---- cause of the failure ---- */

static bool has(silt_slice text, const char *what)
{
    size_t len = strlen(what);
    for (size_t i = 0; i + len <= text.len; i++)
        if (strncasecmp(text.data + i, what, len) == 0)
            return true;
    return false;
}

/* Skips quoted text: names chosen by a client or a server must not decide the result. */
static void add_unquoted(struct silt_buf *b, silt_slice line)
{
    silt_slice part, quoted;
    if (silt_slice_starts(line, SILT_LIT("Cloning into")))
        return;
    while (silt_slice_split(&line, '\'', &part)) {
        silt_buf_add(b, part);
        silt_slice rest = line;
        if (silt_slice_split(&rest, '\'', &quoted) && rest.data != NULL)
            line = rest; /* otherwise it is an apostrophe */
    }
    silt_buf_add_byte(b, '\n');
}

static enum silt_api_code find_cause(silt_slice text, int exit_code)
{
    static const struct {
        const char *text;
        enum silt_api_code code;
    } rows[] = {
        {"checkout failed", SILT_API_GIT_CHECKOUT_FAILED},
        {"unable to checkout", SILT_API_GIT_CHECKOUT_FAILED},
        {"already exists", SILT_API_GIT_CLONE_FAILED},
        {"could not create", SILT_API_GIT_CLONE_FAILED},
        {"no space left", SILT_API_GIT_CLONE_FAILED},
        {"not found in upstream", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"could not find remote branch", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"did not match", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"pathspec", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"authentication", SILT_API_GIT_AUTH_FAILED},
        {"credential", SILT_API_GIT_AUTH_FAILED},
        {"could not read username", SILT_API_GIT_AUTH_FAILED},
        {"could not read password", SILT_API_GIT_AUTH_FAILED},
        {"terminal prompts disabled", SILT_API_GIT_AUTH_FAILED},
        {"permission denied", SILT_API_GIT_AUTH_FAILED},
        {"access denied", SILT_API_GIT_AUTH_FAILED},
        {"host key verification failed", SILT_API_GIT_AUTH_FAILED},
        {"returned error: 401", SILT_API_GIT_AUTH_FAILED},
        {"returned error: 403", SILT_API_GIT_AUTH_FAILED},
        {"could not resolve host", SILT_API_GIT_NETWORK_ERROR},
        {"name or service not known", SILT_API_GIT_NETWORK_ERROR},
        {"temporary failure in name resolution", SILT_API_GIT_NETWORK_ERROR},
        {"failed to connect", SILT_API_GIT_NETWORK_ERROR},
        {"could not connect", SILT_API_GIT_NETWORK_ERROR},
        {"unable to connect", SILT_API_GIT_NETWORK_ERROR},
        {"connection refused", SILT_API_GIT_NETWORK_ERROR},
        {"connection reset", SILT_API_GIT_NETWORK_ERROR},
        {"timed out", SILT_API_GIT_NETWORK_ERROR},
        {"too slow", SILT_API_GIT_NETWORK_ERROR},
        {"network is unreachable", SILT_API_GIT_NETWORK_ERROR},
        {"no route to host", SILT_API_GIT_NETWORK_ERROR},
        {"empty reply from server", SILT_API_GIT_NETWORK_ERROR},
        {"rpc failed", SILT_API_GIT_NETWORK_ERROR},
        {"early eof", SILT_API_GIT_NETWORK_ERROR},
        {"not a git repository", SILT_API_GIT_OPERATION_FAILED},
        {"not found", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"does not exist", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"does not appear to be a git repository", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"returned error: 404", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"not valid: is this a git repository", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"unable to access", SILT_API_GIT_NETWORK_ERROR},
        {"hung up", SILT_API_GIT_NETWORK_ERROR},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (has(text, rows[i].text))
            return rows[i].code;
    return exit_code == 128 ? SILT_API_GIT_OPERATION_FAILED : SILT_API_GIT_CLONE_FAILED;
}

enum silt_api_code silt_git_classify(int exit_code, silt_slice text)
{
    silt_slice line;
    if (exit_code == 124)
        return SILT_API_GIT_NETWORK_ERROR;
    if (exit_code == 127) /* git is not installed */
        return SILT_API_GIT_OPERATION_FAILED;
    silt_auto_buf b;
    silt_buf_init(&b, SILT_GIT_STDERR_MAX * 2);
    while (silt_slice_split(&text, '\n', &line))
        add_unquoted(&b, line);
    return find_cause(silt_buf_slice(&b), exit_code);
}

/* Nearly all of git's own failures exit with 128, so the rows below that are for its helpers. */
enum silt_api_code silt_git_classify_official(int exit_code, silt_slice text)
{
    static const struct {
        const char *text;
        enum silt_api_code code;
    } rows[] = {
        {"permission denied", SILT_API_GIT_AUTH_FAILED},
        {"access denied", SILT_API_GIT_AUTH_FAILED},
        {"not found", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"does not exist", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {"already exists", SILT_API_GIT_CLONE_FAILED},
        {"did not match", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"pathspec", SILT_API_GIT_BRANCH_NOT_FOUND},
        {"authentication", SILT_API_GIT_AUTH_FAILED},
        {"credentials", SILT_API_GIT_AUTH_FAILED},
    };
    if (exit_code == 124)
        return SILT_API_GIT_NETWORK_ERROR;
    if (exit_code == 128)
        return !has(text, "not a git repository") && has(text, "repository not found")
                   ? SILT_API_GIT_REPOSITORY_NOT_FOUND
                   : SILT_API_GIT_OPERATION_FAILED;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (has(text, rows[i].text))
            return rows[i].code;
    return SILT_API_GIT_CLONE_FAILED;
}
