/* SPDX-License-Identifier: Apache-2.0 */
#include "api/git/report.h"
#include "api/git/url.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_error e;

struct url_case {
    const char *text, *plain, *shown, *user, *password, *name;
};

static void check(const struct url_case *c)
{
    struct silt_git_url u;
    silt_git_url_init(&u);
    if (silt_git_url_read(&u, silt_slice_of(c->text), false, &e) < 0)
        fail_msg("%s: %s", c->text, e.text);
    assert_text(silt_buf_slice(&u.plain), c->plain != NULL ? c->plain : c->text);
    assert_text(silt_buf_slice(&u.shown), c->shown != NULL ? c->shown : c->text);
    assert_text(silt_buf_slice(&u.user), c->user != NULL ? c->user : "");
    assert_text(silt_buf_slice(&u.password), c->password != NULL ? c->password : "");
    assert_int_equal(u.has_secret, c->user != NULL || c->password != NULL);
    assert_string_equal(u.name, c->name);
    silt_git_url_fini(&u);
}

TEST(credentials_are_taken_out_and_decoded)
{
    static const struct url_case cases[] = {
        {"https://host/a/b.git", NULL, NULL, NULL, NULL, "b"},
        {"https://u:p@host/b", "https://host/b", "https://******@host/b", "u", "p", "b"},
        {"HTTP://u:p@host/b", "http://host/b", "http://******@host/b", "u", "p", "b"},
        {"https://token@host:8443/x/y.git/", "https://host:8443/x/y.git/",
         "https://******@host:8443/x/y.git/", "token", NULL, "y"},
        {"https://:p@host/b", "https://host/b", "https://******@host/b", NULL, "p", "b"},
        {"http://a%40b:c%3a%2F%25%20@[::1]:80/b", "http://[::1]:80/b", "http://******@[::1]:80/b",
         "a@b", "c:/% ", "b"},
        {"http://u:p@x@host/b", "http://host/b", "http://******@host/b", "u", "p@x", "b"},
        {"http://u:p:q@host/b", "http://host/b", "http://******@host/b", "u", "p:q", "b"},
        {"https://host/p@th/b", NULL, NULL, NULL, NULL, "b"},
        {"https://host:/b", NULL, NULL, NULL, NULL, "b"},
        {"https://host?x=/y/z", NULL, NULL, NULL, NULL, "repository"},
    };
    for (size_t i = 0; i < SILT_COUNT(cases); i++)
        check(&cases[i]);
}

TEST(the_directory_is_named_after_the_last_part)
{
    static const struct url_case cases[] = {
        {"https://host/a.b.git", NULL, NULL, NULL, NULL, "a.b"},
        {"https://host", NULL, NULL, NULL, NULL, "repository"},
        {"https://host/", NULL, NULL, NULL, NULL, "repository"},
        {"https://host/..", NULL, NULL, NULL, NULL, "repository"},
        {"https://host/.git", NULL, NULL, NULL, NULL, "repository"},
        {"https://host/x.git?y#z", NULL, NULL, NULL, NULL, "x"},
        {"ssh://git@host:22/a/b.git", NULL, NULL, NULL, NULL, "b"},
        {"git://host/a/b", NULL, NULL, NULL, NULL, "b"},
        {"git@github.com:org/repo.git", NULL, NULL, NULL, NULL, "repo"},
        {"git@host:repo", NULL, NULL, NULL, NULL, "repo"},
    };
    for (size_t i = 0; i < SILT_COUNT(cases); i++)
        check(&cases[i]);
}

TEST(what_could_run_something_is_refused)
{
    static const char *const bad[] = {
        "",
        "-",
        "--upload-pack=x",
        "-c",
        "ext::sh -c id",
        "ext::x",
        "fd::17",
        "file:///etc",
        "/etc",
        "./x",
        "../x",
        "x",
        "transport::https://host/x",
        "ftp://host/x",
        "ssh://-oProxyCommand=x/y",
        "ssh://u:p@host/x",
        "ssh:///x",
        "git://u@host/x",
        "git@-oProxyCommand=x:y",
        "-x@host:y",
        "@host:x",
        "u@:x",
        "u@host:",
        "u@host::x",
        "host:x",
        "https://",
        "https:///x",
        "https://-x/y",
        "https://ho st/x",
        "https://u:%zz@host/x",
        "https://u:%0a@host/x",
        "https://u%00:p@host/x",
        "https://ho=st/x",
        "https://host/x\n",
        "https://host/\x1b[0m",
        "https://u:p/w@host/x",
        "https://u:p#w@host/x",
        "https://u:p?w@host/x",
        "https://host:123456/x",
        "https://[::1]x/y",
        "https://a:1:2/x",
        "a\tb@host:x",
        "ssh://a@b@c/d",
    };
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        struct silt_git_url u;
        silt_git_url_init(&u);
        if (silt_git_url_read(&u, silt_slice_of(bad[i]), false, &e) == 0)
            fail_msg("%s was let through", bad[i]);
        assert_int_equal(e.code, SILT_INVALID);
        silt_git_url_fini(&u);
    }
}

TEST(local_paths_need_the_setting)
{
    struct silt_git_url u;
    silt_git_url_init(&u);
    assert_int_equal(silt_git_url_read(&u, SILT_LIT("file:///srv/x.git"), true, &e), 0);
    assert_true(u.local);
    assert_string_equal(u.name, "x");
    silt_git_url_fini(&u);
    silt_git_url_init(&u);
    assert_int_equal(silt_git_url_read(&u, SILT_LIT("file://host/x"), true, &e), -1);
    silt_git_url_fini(&u);
}

TEST(secrets_are_redacted_wherever_they_stand)
{
    struct silt_git_url u;
    silt_auto_buf b;
    silt_git_url_init(&u);
    silt_buf_init(&b, 4096);
    assert_int_equal(silt_git_url_read(&u, SILT_LIT("https://bob:s%20cret@host/x"), false, &e), 0);
    silt_git_redact(
        &b, &u,
        SILT_LIT(
            "fatal: 'https://bob:s%20cret@host/x' said s cret, http://a:b@c/d and https://e/f@g"));
    assert_text(silt_buf_slice(&b),
                "fatal: 'https://******@host/x' said ******, http://******@c/d and https://e/f@g");
    silt_git_url_fini(&u);
}

static struct {
    int count, percent;
    char phase[64];
} last;

static void on_progress(struct silt_git_report *r, const struct silt_git_progress *p)
{
    (void)r;
    last.count++;
    last.percent = p->percent;
    (void)snprintf(last.phase, sizeof(last.phase), "%.*s", (int)p->phase.len, p->phase.data);
}

TEST(progress_is_told_and_the_rest_is_kept)
{
    static const char text[] =
        "Cloning into 'x'...\nremote: Counting objects:  50% (1/2)\rremote: Counting objects: 100% "
        "(2/2), "
        "done.\nReceiving objects:   7% (1/14)\rfatal: oh: 5\r\nremote: hello: world\nend";
    struct silt_git_report r;
    silt_git_report_init(&r);
    r.progress = on_progress;
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        silt_git_report_add(&r, (silt_slice){text + i, 1});
    silt_git_report_end(&r);
    assert_int_equal(last.count, 3);
    assert_int_equal(last.percent, 7);
    assert_string_equal(last.phase, "Receiving objects");
    assert_text(silt_buf_slice(&r.lines), "Cloning into 'x'...\nremote: hello: world\nend\n");
    silt_git_report_fini(&r);
}

TEST(only_the_end_of_a_flood_is_kept)
{
    struct silt_git_report r;
    silt_git_report_init(&r);
    for (int i = 0; i < 100000; i++)
        silt_git_report_add(&r, SILT_LIT("noise noise noise\n"));
    silt_git_report_add(&r, SILT_LIT("fatal: the end\n"));
    silt_git_report_end(&r);
    assert_int_equal(r.lines.len, SILT_GIT_STDERR_MAX);
    assert_memory_equal(r.lines.data + r.lines.len - 15, "fatal: the end\n", 15);
    silt_git_report_fini(&r);
}

TEST(failures_have_a_cause)
{
    static const struct {
        int code;
        const char *text;
        enum silt_api_code want;
    } cases[] = {
        {124, "whatever", SILT_API_GIT_NETWORK_ERROR},
        {127, "bash: git: command not found", SILT_API_GIT_OPERATION_FAILED},
        {128, "fatal: destination path 'x' already exists and is not an empty directory.",
         SILT_API_GIT_CLONE_FAILED},
        {128, "fatal: Remote branch x not found in upstream origin", SILT_API_GIT_BRANCH_NOT_FOUND},
        {128, "fatal: Authentication failed for 'http://h/'", SILT_API_GIT_AUTH_FAILED},
        {128, "fatal: could not read Username for 'https://h': terminal prompts disabled",
         SILT_API_GIT_AUTH_FAILED},
        {128,
         "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
         SILT_API_GIT_AUTH_FAILED},
        {128, "fatal: could not create work tree dir 'x': Permission denied",
         SILT_API_GIT_CLONE_FAILED},
        {128, "fatal: repository 'http://h/x/' not found", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {128, "ERROR: Repository not found.", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {128, "fatal: unable to access 'x': Could not resolve host: x", SILT_API_GIT_NETWORK_ERROR},
        {128, "fatal: unable to access 'x': The requested URL returned error: 503",
         SILT_API_GIT_NETWORK_ERROR},
        {128, "fatal: unable to access 'x': Operation too slow.", SILT_API_GIT_NETWORK_ERROR},
        {128, "warning: Clone succeeded, but checkout failed.", SILT_API_GIT_CHECKOUT_FAILED},
        {128,
         "Cloning into 'authentication failed'...\nfatal: repository 'permission denied' does not "
         "exist",
         SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {128, "fatal: Remote branch ' not found in upstream origin", SILT_API_GIT_BRANCH_NOT_FOUND},
        {128, "fatal: something else", SILT_API_GIT_OPERATION_FAILED},
        {1, "", SILT_API_GIT_CLONE_FAILED},
    };
    for (size_t i = 0; i < SILT_COUNT(cases); i++)
        if (silt_git_classify(cases[i].code, silt_slice_of(cases[i].text)) != cases[i].want)
            fail_msg("%s", cases[i].text);
}

TEST(the_official_server_has_fewer_causes)
{
    static const struct {
        int code;
        const char *text;
        enum silt_api_code want;
    } cases[] = {
        {124, "fatal: repository not found", SILT_API_GIT_NETWORK_ERROR},
        {128, "fatal: Remote branch x not found in upstream origin", SILT_API_GIT_OPERATION_FAILED},
        {128, "fatal: Authentication failed for 'http://h/'", SILT_API_GIT_OPERATION_FAILED},
        {128, "fatal: repository 'http://h/x/' not found", SILT_API_GIT_OPERATION_FAILED},
        {128, "remote: Repository not found.\nfatal: repository 'x' not found",
         SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {128, "not a git repository, repository not found", SILT_API_GIT_OPERATION_FAILED},
        {1, "ssh: Permission denied, not found", SILT_API_GIT_AUTH_FAILED},
        {127, "bash: git: command not found", SILT_API_GIT_REPOSITORY_NOT_FOUND},
        {1, "it already exists", SILT_API_GIT_CLONE_FAILED},
        {1, "pathspec 'x' did not match", SILT_API_GIT_BRANCH_NOT_FOUND},
        {1, "bad credentials", SILT_API_GIT_AUTH_FAILED},
        {1, "", SILT_API_GIT_CLONE_FAILED},
    };
    for (size_t i = 0; i < SILT_COUNT(cases); i++)
        if (silt_git_classify_official(cases[i].code, silt_slice_of(cases[i].text))
            != cases[i].want)
            fail_msg("%s", cases[i].text);
}
