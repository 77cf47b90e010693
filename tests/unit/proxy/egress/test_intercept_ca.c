/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/intercept_ca.h"
#include "unit/base/unit.h"

#include <stdio.h>

static struct silt_intercept_cas all;
static struct silt_error e;

static struct silt_intercept_ca *make(uint64_t number, const struct silt_egress_authority *given)
{
    struct silt_intercept_ca *a = NULL;
    assert_int_equal(silt_intercept_cas_at(&all, number, given, &a, &e), 0);
    return a;
}

TEST(an_authority_is_made_once_and_can_be_given_back)
{
    silt_intercept_cas_init(&all);
    struct silt_egress_authority first = *silt_intercept_ca_blob(make(1, NULL));
    assert_memory_equal(silt_intercept_ca_blob(make(1, NULL)), &first, sizeof(first));
    assert_memory_not_equal(silt_intercept_ca_blob(make(2, NULL)), &first, sizeof(first));
    silt_intercept_cas_drop(&all, 1);
    assert_null(silt_intercept_cas_find(&all, 1));
    assert_memory_equal(silt_intercept_ca_blob(make(1, &first)), &first, sizeof(first));
    silt_intercept_cas_fini(&all);
}

TEST(what_is_no_authority_is_refused)
{
    struct silt_intercept_ca *a;
    struct silt_egress_authority odd = {.certificate_len = SILT_EGRESS_PEM_MAX + 1, .key_len = 1};
    silt_intercept_cas_init(&all);
    assert_int_equal(silt_intercept_cas_at(&all, 1, &odd, &a, &e), -1);
    odd = *silt_intercept_ca_blob(make(2, NULL));
    odd.key[60] ^= 1; /* the base64 of its number */
    assert_int_equal(silt_intercept_cas_at(&all, 1, &odd, &a, &e), -1);
    odd = *silt_intercept_ca_blob(make(2, NULL));
    const struct silt_egress_authority *other = silt_intercept_ca_blob(make(3, NULL));
    memcpy(odd.key, other->key, sizeof(odd.key)); /* of somebody else */
    odd.key_len = other->key_len;
    assert_int_equal(silt_intercept_cas_at(&all, 1, &odd, &a, &e), -1);
    assert_null(silt_intercept_cas_find(&all, 1));
    silt_intercept_cas_fini(&all);
}

TEST(leaves_are_for_their_name_kept_and_bounded)
{
    const struct silt_tls_identity *one, *again;
    char name[64];
    silt_intercept_cas_init(&all);
    struct silt_intercept_ca *a = make(1, NULL);
    assert_int_equal(silt_intercept_ca_leaf(a, "example.com", &one, &e), 0);
    assert_true(silt_tls_identity_is_for(one, "example.com"));
    assert_false(silt_tls_identity_is_for(one, "www.example.com"));
    assert_int_equal(silt_intercept_ca_leaf(a, "example.com", &again, &e), 0);
    assert_ptr_equal(one, again);
    for (int i = 0; i < 2 * SILT_LEAVES_EACH_MAX - 1; i++) {
        (void)snprintf(name, sizeof(name), "host-%d.test", i);
        assert_int_equal(silt_intercept_ca_leaf(a, name, &one, &e), 0);
        assert_int_equal(silt_intercept_ca_leaf(a, "example.com", &again, &e),
                         0); /* in use: it stays */
    }
    assert_int_equal(all.nleaves, SILT_LEAVES_EACH_MAX);
    silt_intercept_cas_fini(&all);
    assert_int_equal(all.nleaves, 0);
}

TEST(new_names_are_rationed_and_known_ones_are_not)
{
    const struct silt_tls_identity *one;
    char name[64];
    int done = 0;
    silt_intercept_cas_init(&all);
    struct silt_intercept_ca *a = make(1, NULL);
    for (int i = 0; i < 20 * SILT_LEAVES_EACH_MAX && done == 0; i++) {
        (void)snprintf(name, sizeof(name), "host-%d.test", i);
        done = silt_intercept_ca_leaf(a, name, &one, &e);
        assert_int_equal(silt_intercept_ca_leaf(a, "host-0.test", &one, &e), 0);
    }
    assert_int_equal(done, -1);
    assert_int_equal(silt_intercept_ca_leaf(make(2, NULL), "other.test", &one, &e), 0);
    silt_intercept_cas_fini(&all);
}

TEST(a_long_name_has_a_certificate_too)
{
    const struct silt_tls_identity *one;
    char name[SILT_EGRESS_NAME];
    silt_intercept_cas_init(&all);
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 60 == 59 ? '.' : 'a';
    name[253] = 0;
    assert_int_equal(silt_intercept_ca_leaf(make(1, NULL), name, &one, &e), 0);
    assert_true(silt_tls_identity_is_for(one, name));
    silt_intercept_cas_fini(&all);
}
