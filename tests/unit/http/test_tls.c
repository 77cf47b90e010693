/* SPDX-License-Identifier: Apache-2.0 */
/* TLS by bytes: OpenSSL's own client on the other side, and no socket between them. */
#include "unit/base/unit.h"
#include "http/dev_certificate.h"
#include "http/tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <time.h>

enum { ROUNDS = 20, ROOM = 4096 };

static struct pairs {
    struct silt_pem_pair authority, server, other;
    bool made;
} pairs;

static void make_pairs(void)
{
    struct silt_error e;
    if (pairs.made)
        return;
    silt_pem_pair_init(&pairs.authority);
    silt_pem_pair_init(&pairs.server);
    silt_pem_pair_init(&pairs.other);
    assert_int_equal(silt_dev_certificate_authority("example.com", &pairs.authority, &e), 0);
    assert_int_equal(
        silt_dev_certificate_server(&pairs.authority, "example.com", &pairs.server, &e), 0);
    assert_int_equal(silt_dev_certificate_server(&pairs.authority, "", &pairs.other, &e), 0);
    pairs.made = true;
}

static struct silt_tls_identity *make_identity(void)
{
    struct silt_error e;
    struct silt_tls_identity *i = NULL;
    make_pairs();
    assert_int_equal(silt_tls_identity_new(silt_buf_slice(&pairs.server.certificate),
                                           silt_buf_slice(&pairs.server.key), &i, &e),
                     0);
    return i;
}

/* Both ends, and what is on the way between them. */
struct talk {
    struct silt_tls *server;
    struct silt_buf out;
    SSL_CTX *context;
    SSL *client;
    BIO *to_client, *from_client;
    char heard[ROOM];
    size_t len;
    ssize_t last;
    int why;
};

static void begin(struct talk *t, const struct silt_tls_identity *i, long options)
{
    *t = (struct talk){0};
    silt_buf_init(&t->out, 1 << 20);
    t->server = silt_tls_new(i, &t->out);
    t->context = SSL_CTX_new(TLS_client_method());
    (void)SSL_CTX_set_options(t->context, (uint64_t)options);
    t->client = SSL_new(t->context);
    t->to_client = BIO_new(BIO_s_mem());
    t->from_client = BIO_new(BIO_s_mem());
    SSL_set_bio(t->client, t->to_client, t->from_client);
    SSL_set_connect_state(t->client);
}

static void finish(struct talk *t)
{
    SSL_free(t->client);
    SSL_CTX_free(t->context);
    silt_tls_free(t->server);
    silt_buf_fini(&t->out);
}

static void to_server(struct talk *t, silt_slice wire)
{
    do {
        t->last = silt_tls_read(t->server, &wire, t->heard + t->len, sizeof(t->heard) - t->len);
        t->why = errno;
        if (t->last > 0)
            t->len += (size_t)t->last;
    } while (t->last > 0 && t->len < sizeof(t->heard));
}

/* Until nobody says anything new, `piece` bytes at a time. */
static void pass(struct talk *t, size_t piece)
{
    for (int i = 0; i < ROUNDS; i++) {
        char bytes[ROOM];
        (void)SSL_do_handshake(t->client);
        int n;
        while ((n = BIO_read(t->from_client, bytes, (int)piece)) > 0)
            to_server(t, (silt_slice){bytes, (size_t)n});
        if (t->out.len > 0)
            (void)BIO_write(t->to_client, t->out.data, (int)t->out.len);
        silt_buf_clear(&t->out);
    }
}

TEST(tls_carries_what_both_sides_say_however_it_is_cut)
{
    struct silt_tls_identity *i = make_identity();
    for (size_t piece = 1; piece < ROOM; piece = piece * 7 + 1) {
        struct talk t;
        char heard[64];
        begin(&t, i, 0);
        pass(&t, piece);
        assert_true(silt_tls_is_open(t.server));
        assert_int_equal(SSL_write(t.client, "question", 8), 8);
        pass(&t, piece);
        assert_int_equal(t.len, 8);
        assert_memory_equal(t.heard, "question", 8);
        assert_int_equal(silt_tls_write(t.server, SILT_LIT("answer")), 0);
        pass(&t, piece);
        assert_int_equal(SSL_read(t.client, heard, sizeof(heard)), 6);
        assert_memory_equal(heard, "answer", 6);
        finish(&t);
    }
    silt_tls_identity_free(i);
}

TEST(tls_gives_no_more_than_there_is_room_for_and_keeps_the_rest)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    char wire[ROOM], plain[10];
    begin(&t, i, 0);
    pass(&t, ROOM);
    assert_int_equal(SSL_write(t.client, "0123456789abcdefghij+", 21), 21);
    int n = BIO_read(t.from_client, wire, sizeof(wire));
    silt_slice came = {wire, (size_t)n};
    assert_int_equal(silt_tls_read(t.server, &came, plain, 10), 10);
    assert_memory_equal(plain, "0123456789", 10);
    assert_true(silt_tls_has_more(t.server));
    assert_int_equal(silt_tls_read(t.server, &came, plain, 10), 10);
    assert_int_equal(silt_tls_read(t.server, &came, plain, 10), 1);
    assert_false(silt_tls_has_more(t.server));
    assert_int_equal(silt_tls_read(t.server, &came, plain, 10), -1);
    assert_int_equal(errno, EAGAIN);
    finish(&t);
    silt_tls_identity_free(i);
}

TEST(tls_tells_an_announced_end_and_announces_its_own)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    char heard[8];
    begin(&t, i, 0);
    pass(&t, ROOM);
    (void)SSL_shutdown(t.client);
    pass(&t, ROOM);
    assert_int_equal(t.last, 0);
    assert_int_equal(silt_tls_write(t.server, SILT_LIT("late")), 0); /* half is still open */
    silt_tls_end(t.server);
    pass(&t, ROOM);
    assert_int_equal(SSL_read(t.client, heard, sizeof(heard)), 4);
    assert_int_equal(SSL_read(t.client, heard, sizeof(heard)), 0);
    assert_int_equal(SSL_get_shutdown(t.client) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    finish(&t);
    silt_tls_identity_free(i);
}

TEST(tls_refuses_what_is_no_tls_and_says_so_once)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    begin(&t, i, 0);
    to_server(&t, SILT_LIT("\x16\x03\x01\x00\x05hello and then some garbage"));
    assert_int_equal(t.last, -1);
    assert_int_equal(t.why, EPROTO);
    assert_true(silt_tls_is_broken(t.server));
    assert_int_equal(t.out.data[0], 0x15); /* an alert */
    size_t said = t.out.len;
    to_server(&t, SILT_LIT("more"));
    assert_int_equal(t.why, EPROTO);
    assert_int_equal(silt_tls_write(t.server, SILT_LIT("x")), -1);
    silt_tls_end(t.server);
    assert_int_equal(t.out.len, said);
    finish(&t);
    silt_tls_identity_free(i);
}

TEST(tls_speaks_1_2_and_nothing_older)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    begin(&t, i, SSL_OP_NO_TLSv1_3);
    pass(&t, ROOM);
    assert_true(silt_tls_is_open(t.server));
    assert_string_equal(SSL_get_version(t.client), "TLSv1.2");
    assert_int_equal(SSL_renegotiate(t.client), 1); /* which is not granted */
    pass(&t, ROOM);
    assert_int_equal(t.len, 0);
    finish(&t);
    begin(&t, i, (long)(SSL_OP_NO_TLSv1_3 | SSL_OP_NO_TLSv1_2));
    SSL_set_security_level(t.client, 0);
    pass(&t, ROOM);
    assert_true(silt_tls_is_broken(t.server));
    finish(&t);
    silt_tls_identity_free(i);
}

static const unsigned char *offer(struct talk *t, const char *protocols, unsigned *ret_len)
{
    const unsigned char *chosen = NULL;
    assert_int_equal(SSL_set_alpn_protos(t->client, (const unsigned char *)protocols,
                                         (unsigned)strlen(protocols)),
                     0);
    pass(t, ROOM);
    SSL_get0_alpn_selected(t->client, &chosen, ret_len);
    return chosen;
}

TEST(tls_chooses_http_1_1_and_no_other_protocol)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    unsigned len = 0;
    begin(&t, i, 0);
    const unsigned char *chosen = offer(&t, "\x02h2\x08http/1.1", &len);
    assert_int_equal(len, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    finish(&t);
    begin(&t, i, 0);
    (void)offer(&t, "\x02h2", &len);
    assert_true(silt_tls_is_broken(t.server));
    finish(&t);
    silt_tls_identity_free(i);
}

TEST(tls_connections_outlive_their_identity)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    begin(&t, i, 0);
    silt_tls_identity_free(i);
    pass(&t, ROOM);
    assert_int_equal(SSL_write(t.client, "still", 5), 5);
    pass(&t, ROOM);
    assert_int_equal(t.len, 5);
    finish(&t);
}

TEST(tls_answers_nothing_beyond_the_ceiling_of_its_buffer)
{
    struct silt_tls_identity *i = make_identity();
    struct talk t;
    begin(&t, i, 0);
    silt_buf_init(&t.out, 100);
    pass(&t, ROOM);
    assert_true(silt_tls_is_broken(t.server));
    finish(&t);
    silt_tls_identity_free(i);
}

TEST(tls_identity_knows_its_names_and_its_end)
{
    struct silt_tls_identity *i = make_identity();
    char name[SILT_TLS_NAME_MAX];
    silt_tls_identity_name(i, name);
    assert_string_equal(name, "*.silt.localhost");
    assert_true(silt_tls_identity_is_for(i, "8000-a-b.silt.localhost"));
    assert_true(silt_tls_identity_is_for(i, "8000-a-b.example.com"));
    assert_false(silt_tls_identity_is_for(i, "8000-a-b.example.org"));
    int64_t days = (silt_tls_identity_until_s(i) - time(NULL)) / 86400;
    assert_in_range(days, 395, 398);
    silt_tls_identity_free(i);
}

TEST(tls_identity_needs_a_certificate_and_the_key_that_fits)
{
    struct silt_error e;
    struct silt_tls_identity *i = NULL;
    make_pairs();
    silt_slice certificate = silt_buf_slice(&pairs.server.certificate),
               key = silt_buf_slice(&pairs.server.key);
    silt_slice half = {certificate.data, certificate.len / 2};
    assert_int_equal(silt_tls_identity_new(certificate, silt_buf_slice(&pairs.other.key), &i, &e),
                     -1);
    assert_non_null(strstr(e.text, "key"));
    assert_int_equal(silt_tls_identity_new(half, key, &i, &e), -1);
    assert_non_null(strstr(e.text, "certificate"));
    assert_int_equal(silt_tls_identity_new(SILT_LIT(""), key, &i, &e), -1);
    assert_int_equal(silt_tls_identity_new(certificate, SILT_LIT("no key"), &i, &e), -1);
    assert_int_equal(silt_tls_identity_new(key, certificate, &i, &e), -1);
}

TEST(an_authority_vouches_for_its_own_domain_only)
{
    struct silt_error e;
    silt_auto_pem_pair none = {0}, ret = {0};
    silt_pem_pair_init(&none);
    silt_pem_pair_init(&ret);
    make_pairs();
    assert_int_equal(silt_dev_certificate_authority("", &none, &e), 0);
    assert_int_equal(silt_dev_certificate_server(&none, "example.com", &ret, &e), -1);
    assert_int_equal(e.code, SILT_CONFLICT);
    assert_int_equal(silt_dev_certificate_server(&pairs.authority, "example.org", &ret, &e), -1);
    assert_int_equal(e.code, SILT_CONFLICT);
    assert_int_equal(silt_dev_certificate_server(&none, "a,DNS:evil", &ret, &e), -1);
    assert_int_equal(e.code, SILT_INVALID);
}
