/* SPDX-License-Identifier: Apache-2.0 */
/* What the documents of image archives may say. */
#include "fetch/manifest.h"

#include "base/own.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state)
#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct silt_manifest m;
static struct silt_manifest_config config;
static struct silt_blob blob;
static struct silt_error e;

static int read_index(const char *json, const char *image)
{
    memset(&m, 0, sizeof(m));
    return silt_manifest_read_index(silt_slice_of(json), image, &m, &blob, &e);
}

TEST(an_index_gives_the_first_manifest_for_this_machine)
{
    (void)state;
    assert_int_equal(
        read_index("{\"manifests\":[{\"digest\":\"sha256:" HEX
                   "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},"
                   "{\"digest\":\"sha256:" OTHER
                   "\",\"size\":2,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
                   ""),
        0);
    assert_string_equal(blob.path, "blobs/sha256/" OTHER);
    assert_int_equal(blob.size, 2);
}

#define TWO                                                                                        \
    "{\"manifests\":[{\"digest\":\"sha256:" HEX "\",\"size\":1,\"annotations\":{"                  \
    "\"org.opencontainers.image.ref.name\":\"v1\"}},{\"digest\":\"sha256:" OTHER "\",\"size\":2,"  \
    "\"annotations\":{\"io.containerd.image.name\":\"docker.io/library/app:latest\"}}]}"

TEST(an_image_is_chosen_by_name_by_tag_or_by_digest)
{
    (void)state;
    assert_int_equal(read_index(TWO, "app"), 0);
    assert_int_equal(blob.size, 2);
    assert_int_equal(read_index(TWO, "v1"), 0);
    assert_int_equal(blob.size, 1);
    assert_int_equal(read_index(TWO, "sha256:" OTHER), 0);
    assert_int_equal(blob.size, 2);
    assert_int_equal(read_index(TWO, "other"), -1);
    assert_int_equal(e.code, SILT_NOT_FOUND);
}

TEST(only_a_whole_name_is_a_name)
{
    (void)state;
    assert_int_equal(read_index(TWO, "v1"), 0);
    assert_int_equal(m.name_count, 0);
    assert_int_equal(read_index(TWO, "app"), 0);
    assert_int_equal(m.name_count, 1);
    assert_string_equal(m.names[0], "app");
}

TEST(docker_names_files_by_path)
{
    bool index;
    (void)state;
    memset(&m, 0, sizeof(m));
    assert_int_equal(
        silt_manifest_read_docker(SILT_LIT("[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\",\"Not A "
                                           "Name\",\"b\"],\"Layers\":[\"x/layer.tar\"]}]"),
                                  "", &m, &e),
        0);
    assert_string_equal(m.config.path, "c.json");
    assert_string_equal(m.layers[0].path, "x/layer.tar");
    assert_true(m.layers[0].size == UINT64_MAX);
    assert_int_equal(m.name_count, 2);
    assert_string_equal(m.names[1], "b");
    memset(&m, 0, sizeof(m));
    assert_int_equal(silt_manifest_read_oci(SILT_LIT("{\"manifests\":[]}"), &m, &index, &e), 0);
    assert_true(index);
}

TEST(a_configuration_says_what_we_know_and_nothing_else)
{
    silt_auto_buf said;
    (void)state;
    silt_buf_init(&said, SILT_MANIFEST_SAID_MAX);
    assert_int_equal(
        silt_manifest_read_config(
            SILT_LIT(
                "{\"rootfs\":{\"diff_ids\":[\"sha256:" HEX
                "\"]},\"config\":{\"Volumes\":{},\"User\":\"a\",\"Cmd\":null,\"Env\":[\"A=1\"]}}"),
            &config, &said, &e),
        0);
    assert_int_equal(config.count, 1);
    assert_int_equal(config.diffs[0][31], 0xaa);
    silt_buf_add_byte(&said, 0);
    assert_string_equal(said.data, "{\"Env\":[\"A=1\"],\"User\":\"a\"}");
}

static void assert_config_refused(const char *json, const char *part)
{
    silt_auto_buf said;
    silt_buf_init(&said, SILT_MANIFEST_SAID_MAX);
    assert_int_equal(silt_manifest_read_config(silt_slice_of(json), &config, &said, &e), -1);
    if (!strstr(e.text, part))
        fail_msg("%s", e.text);
}

TEST(a_configuration_for_another_machine_or_without_layers_is_refused)
{
    (void)state;
    assert_config_refused("{\"architecture\":\"s390x\",\"os\":\"linux\"}", "s390x");
    assert_config_refused("{\"os\":\"windows\"}", "windows");
    assert_config_refused("{}", "diff_ids");
    assert_config_refused("{\"rootfs\":{\"diff_ids\":[\"md5:1\"]}}", "sha256");
    assert_config_refused("[]", "object");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_gives_the_first_manifest_for_this_machine),
        cmocka_unit_test(an_image_is_chosen_by_name_by_tag_or_by_digest),
        cmocka_unit_test(only_a_whole_name_is_a_name),
        cmocka_unit_test(docker_names_files_by_path),
        cmocka_unit_test(a_configuration_says_what_we_know_and_nothing_else),
        cmocka_unit_test(a_configuration_for_another_machine_or_without_layers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
