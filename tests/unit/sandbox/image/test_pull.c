/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/pull.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_pull_source parse(const char *text)
{
    struct silt_pull_source s;
    struct silt_error e;
    if (silt_pull_read(silt_slice_of(text), &s, &e) < 0)
        fail_msg("%s %s", text, e.text);
    return s;
}

static void assert_refused(const char *text, const char *why)
{
    struct silt_pull_source s;
    struct silt_error e;
    if (silt_pull_read(silt_slice_of(text), &s, &e) == 0)
        fail_msg("%s was taken", text);
    assert_int_equal(e.code, SILT_INVALID);
    if (strstr(e.text, why) == NULL)
        fail_msg("%s: got \"%s\", want \"%s\"", text, e.text, why);
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(a_reference_tells_registry_address_and_name)
{
    static const struct {
        const char *text, *registry, *address, *name;
    } rows[] = {
        {"alpine", "docker.io", "alpine", "alpine"},
        {"docker.io/library/alpine:3", "docker.io", "alpine:3", "alpine:3"},
        {"team/app", "docker.io", "team/app", "team/app"},
        {"ghcr.io/a/b:1", "ghcr.io", "ghcr.io/a/b:1", "ghcr.io/a/b:1"},
        {"registry:5000/a", "registry:5000", "registry:5000/a", "registry:5000/a"},
        {"alpine@" DIGEST, "docker.io", "alpine@" DIGEST, "alpine"},
        {"h.io:443/a/b:2@" DIGEST, "h.io:443", "h.io:443/a/b@" DIGEST, "h.io:443/a/b:2"},
    };
    for (size_t i = 0; i < SILT_COUNT(rows); i++) {
        struct silt_pull_source s = parse(rows[i].text);
        assert_string_equal(s.registry, rows[i].registry);
        assert_string_equal(s.address, rows[i].address);
        assert_string_equal(s.name, rows[i].name);
        assert_int_equal(silt_pull_names_registry(&s), strcmp(rows[i].registry, "docker.io") != 0);
    }
}

TEST(what_is_no_reference_is_refused)
{
    struct silt_pull_source none;
    struct silt_error e;
    assert_int_equal(silt_pull_read((silt_slice){NULL, 0}, &none, &e), -1);
    assert_refused("", "0 bytes");
    assert_refused("@" DIGEST, "image name");
    assert_refused("a@", "64 digits");
    assert_refused("a@sha256:12", "64 digits");
    assert_refused("a@sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                   "64 digits");
    assert_refused("a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
                   "64 digits");
    assert_refused("a@" DIGEST "@" DIGEST, "64 digits");
    assert_refused("--authfile=/etc/shadow", "image name");
    assert_refused("docker://a", "image name");
    assert_refused("oci:/etc", "image name");
    assert_refused("a b", "image name");
    assert_refused("docker.io/other.example/a", "two registries");
    assert_refused("docker.io/docker.io/a", "two registries");
    assert_refused("$(id)", "image name");
}

TEST(this_machine_is_not_asked)
{
    assert_refused("localhost/a", "this machine");
    assert_refused("localhost:5000/a:1", "this machine");
    assert_refused("127.0.0.1:5000/a", "this machine");
    assert_refused("127.1/a", "this machine");
    assert_refused("0.0.0.0:1/a", "this machine");
}

TEST(credentials_are_one_line_for_one_registry)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_pull_credentials(&b, "ghcr.io", SILT_LIT("me"), SILT_LIT("a\nb"));
    silt_buf_add_byte(&b, 0);
    assert_string_equal(b.data, "{\"auths\":{\"ghcr.io\":{\"auth\":\"bWU6YQpi\"}}}\n");
    silt_buf_clear(&b);
    silt_pull_credentials(&b, "ghcr.io", (silt_slice){NULL, 0}, (silt_slice){NULL, 0});
    silt_buf_add_byte(&b, 0);
    assert_string_equal(b.data, "{\"auths\":{}}\n");
}

TEST(the_cage_is_the_same_every_time_and_a_whole_tar)
{
    silt_auto_buf one, two;
    silt_buf_init(&one, 64 << 10);
    silt_buf_init(&two, 64 << 10);
    silt_pull_cage(&one);
    silt_pull_cage(&two);
    assert_false(one.broken);
    assert_int_equal(one.len % 512, 0);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
    for (size_t i = one.len - 1024; i < one.len; i++)
        assert_int_equal(one.data[i], 0);
}
