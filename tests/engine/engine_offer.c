/* SPDX-License-Identifier: Apache-2.0 */
/* Mode captive from end to end: a sandbox, silt-proxy, and a program that decides, played by the
 * test. Connections are the test's own, with sockets that were opened in the sandbox's network. */
#include "engine_tests.h"
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    SLOT = 1,
    NUMBER = 77, /* of the authority */
    PATIENCE_MS = 15000,
    A = 1,
    AAAA = 28,
    NXDOMAIN = 3,
    SMTP_PORT = 25,
    PLAIN_PORT = 2020,
    REFUSED_PORT = 4000,
    FAILING_PORT = 5000,
    NONSENSE_PORT = 7000,
    SILENT_PORT = 7001,
    FLAT_KB = 24 << 10, /* sanitizers keep what was freed for a while */
};

static struct proxy proxy;
static const uint32_t link_number = SILT_EGRESS_CAPTIVE | SLOT;

static const char *no_gate(struct world *w)
{
    return w->gate.ns < 0 ? "there is no nftables on this machine" : NULL;
}

/* The program that decides. It answers by the port that is wanted, tells what it was told, and
 * sends back what it gets. */

struct decider {
    pid_t pid;
    uint16_t port;
};

static void say(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void echo(int fd)
{
    static char bytes[64 << 10];
    for (;;) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n <= 0)
            break;
        if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_WAITALL) != n)
            return;
    }
    say(fd, "<end>");
    (void)shutdown(fd, SHUT_WR);
}

static void copy_field(const char *head, const char *name, char *out, size_t size)
{
    const char *at = strstr(head, name);
    size_t len = at == NULL ? 0 : strcspn(at + strlen(name), "\r");
    (void)snprintf(out, size, "%.*s", (int)len, at == NULL ? "" : at + strlen(name));
}

static void decide(int fd)
{
    char head[4096] = "", to[80], sni[300], host[300], told[1024];
    size_t len = 0;
    while (strstr(head, "\r\n\r\n") == NULL && len < sizeof(head) - 1) {
        ssize_t n = recv(fd, head + len, 1, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        head[len] = 0;
    }
    copy_field(head, "CONNECT ", to, sizeof(to));
    copy_field(head, "X-Tls-Sni: ", sni, sizeof(sni));
    copy_field(head, "X-Hostname: ", host, sizeof(host));
    int port = (int)strtol(strrchr(to, ':') + 1, NULL, 10);
    (void)snprintf(told, sizeof(told), "<%.*s|%s|%s>", (int)strcspn(to, " "), to, sni, host);
    if (port == REFUSED_PORT)
        say(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
    if (port == FAILING_PORT)
        say(fd, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
    if (port == NONSENSE_PORT)
        say(fd, "220 mail.test ESMTP\r\n\r\n");
    if (port == REFUSED_PORT || port == FAILING_PORT || port == NONSENSE_PORT)
        return;
    if (port == SILENT_PORT)
        (void)pause();
    say(fd, port == PLAIN_PORT ? "HTTP/1.1 202 Accepted\r\n\r\n" : "HTTP/1.1 200 OK\r\n\r\n");
    say(fd, told);
    echo(fd);
}

static _Noreturn void be_decider(int listener)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        pid_t pid = fd >= 0 ? fork() : -1;
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            decide(fd);
            _exit(0);
        }
        (void)close(fd);
    }
}

static bool start_decider(struct decider *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    silt_auto_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 512) < 0
        || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return false;
    d->port = ntohs(at.sin_port);
    d->pid = fork();
    if (d->pid == 0)
        be_decider(fd);
    return d->pid > 0;
}

static void stop_decider(struct decider *d)
{
    if (d->pid > 0) {
        (void)kill(d->pid, SIGKILL);
        (void)waitpid(d->pid, NULL, 0);
    }
    d->pid = 0;
}

/* What siltd says */

static bool make_sockets(struct world *w, struct silt_parcel *ret)
{
    struct silt_priv_request q = {.op = SILT_PRIV_CAPTURE, .slot = SLOT};
    struct silt_priv_answer a;
    ask(w, &q, NULL, 0, &a, ret);
    return a.ok != 0;
}

struct way {
    uint16_t port;
    bool internet;
    const char *globs;
};

/* The type of the answer; 0: none came. */
static uint32_t set_way(const struct way *way, const struct silt_parcel *sockets)
{
    struct silt_error e;
    struct silt_egress_note n;
    struct silt_egress_request q = {.type = SILT_EGRESS_CAPTURE,
                                    .link = link_number,
                                    .generation = ++proxy.generation,
                                    .authority = NUMBER,
                                    .capture = {.port = way->port,
                                                .internet = way->internet,
                                                .globs_len = (uint32_t)strlen(way->globs)}};
    struct silt_parcel out = {.data = &q, .len = sizeof(q)};
    silt_auto_fd globs = memfd_create("globs", MFD_CLOEXEC);
    if (silt_fd_write_all(globs, silt_slice_of(way->globs), &e) < 0)
        return 0;
    out.fds[out.nfds++] = globs;
    for (int i = 0; sockets != NULL && i < sockets->nfds; i++)
        out.fds[out.nfds++] = sockets->fds[i];
    if (silt_fd_send(proxy.siltd, &out, &e) < 0)
        return 0;
    struct pollfd ready = {.fd = proxy.siltd, .events = POLLIN};
    while (poll(&ready, 1, PATIENCE_MS) > 0) {
        struct silt_parcel in = {.data = &n, .len = sizeof(n)};
        if (silt_fd_recv(proxy.siltd, &in, &e) <= 0)
            return 0;
        if (n.generation == q.generation && n.type != SILT_EGRESS_REFUSED)
            return n.type;
    }
    return 0;
}

static bool capture(struct world *w, const struct way *way)
{
    struct silt_parcel sockets = {0};
    if (!make_sockets(w, &sockets))
        return false;
    uint32_t said = set_way(way, &sockets);
    silt_parcel_close(&sockets);
    return said == SILT_EGRESS_APPLIED;
}

/* With `given`: a silt-proxy that is new gets it back. */
static bool get_authority(const struct silt_egress_authority *given,
                          struct silt_egress_authority *ret)
{
    struct silt_error e;
    struct silt_egress_note n;
    struct silt_egress_request q = {
        .type = SILT_EGRESS_AUTHORITY, .generation = NUMBER, .authority = NUMBER};
    struct silt_parcel out = {.data = &q, .len = sizeof(q)};
    silt_auto_fd file = -1;
    if (given != NULL) {
        file = memfd_create("authority", MFD_CLOEXEC);
        if (silt_fd_write_all(file, (silt_slice){(const char *)given, sizeof(*given)}, &e) < 0)
            return false;
        out.fds[out.nfds++] = file;
    }
    if (silt_fd_send(proxy.siltd, &out, &e) < 0
        || !proxy_hear(&proxy, SILT_EGRESS_IS_AUTHORITY, &n))
        return false;
    *ret = n.body.authority;
    return n.generation == NUMBER;
}

static bool is_told(enum silt_egress_reason reason, int port)
{
    struct silt_egress_note n;
    do {
        if (!proxy_hear(&proxy, SILT_EGRESS_REFUSED, &n))
            return false;
    } while (n.link != link_number);
    return n.body.refusal.reason == reason && n.body.refusal.port == port;
}

static bool begin(struct world *w, struct box *b, struct decider *d)
{
    struct silt_priv_request q = create_request(SLOT, IMAGE_PLAIN, SILT_CREATE_FRESH);
    q.body.create.network = SILT_NET_CAPTIVE;
    stop_decider(d);
    if (!proxy_open(&proxy, w) || !box_create_by(w, &q, b) || !start_decider(d))
        return false;
    struct way way = {.port = d->port, .internet = true, .globs = "*\n"};
    return capture(w, &way);
}

static bool finish(struct world *w, struct box *b, struct decider *d)
{
    bool good = tell(w, SILT_PRIV_DESTROY, b->slot);
    box_close(b);
    proxy_close(&proxy);
    stop_decider(d);
    return good;
}

/* Connections */

static socklen_t to_address(const char *text, int port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (void *)out;
    struct sockaddr_in6 *six = (void *)out;
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    (void)inet_pton(AF_INET6, text, &six->sin6_addr);
    return sizeof(*six);
}

static int open_inside(const struct box *b, int family, int type)
{
    silt_auto_fd home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (setns(b->pidfd, CLONE_NEWNET) < 0)
        return -1;
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (setns(home, CLONE_NEWNET) < 0)
        abort();
    return fd;
}

/* Blocking, with patience. */
static int dial(const struct box *b, const char *text, int port)
{
    struct sockaddr_storage to;
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    socklen_t len = to_address(text, port, &to);
    silt_auto_fd fd = open_inside(b, to.ss_family, SOCK_STREAM);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0
        || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0
        || connect(fd, (struct sockaddr *)&to, len) < 0)
        return -1;
    return silt_take_fd(&fd);
}

/* Up to the end, or until it is the text that is wanted. Static. */
static const char *hear(int fd, const char *wanted)
{
    static char text[4096];
    size_t len = 0;
    text[0] = 0;
    while (len < sizeof(text) - 1 && (wanted == NULL || strcmp(text, wanted) != 0)) {
        ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        if (n < 0)
            (void)snprintf(text + len, sizeof(text) - len, "[errno %d]", errno);
        if (n <= 0)
            break;
        len += (size_t)n;
        text[len] = 0;
    }
    return text;
}

#define CHECK_HEARS(fd, wanted)                                                                    \
    do {                                                                                           \
        const char *heard = hear(fd, wanted);                                                      \
        if (strcmp(heard, wanted) != 0) {                                                          \
            complain_said(__FILE__, __LINE__, "hear", heard, wanted);                              \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool talks(const struct box *b, const char *address, int port, const char *words,
                  const char *told)
{
    silt_auto_fd fd = dial(b, address, port);
    char wanted[2048];
    CHECK(fd >= 0);
    say(fd, words);
    (void)snprintf(wanted, sizeof(wanted), "%s%s", told, words);
    CHECK_HEARS(fd, wanted);
    return true;
}

static bool offers_with_hints(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(talks(&b, PUBLIC4, 80, "GET / HTTP/1.1\r\nHost: Example.COM:80\r\n\r\n",
                "<93.184.215.14:80||example.com>"));
    CHECK(talks(&b, PUBLIC4, 8080, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
                "<93.184.215.14:8080||>"));
    CHECK(talks(&b, PUBLIC4, 80, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "<93.184.215.14:80||>"));
    CHECK(talks(&b, "11.0.0.1", 80, "POST /x HTTP/1.1\r\nHost: made.up\r\n\r\n",
                "<11.0.0.1:80||made.up>"));
    if (w->gate.plan.ipv6) {
        CHECK(talks(&b, PUBLIC6, 80, "GET / HTTP/1.1\r\nHost: six.test\r\n\r\n",
                    "<[2606:4700::1111]:80||six.test>"));
        CHECK(talks(&b, "fd00::1", 443, "hello\n", "<[fd00::1]:443||>"));
    }
    return finish(w, &b, &d);
}

/* Nothing is said, or too little: it is offered all the same. */
static bool lets_servers_speak_first(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    silt_auto_fd mail = dial(&b, PUBLIC4, SMTP_PORT), half = dial(&b, PUBLIC4, 443);
    say(half, "\x16\x03\x01\x02");
    CHECK_HEARS(mail, "<93.184.215.14:25||>");
    say(mail, "EHLO x\r\n");
    CHECK_HEARS(mail, "EHLO x\r\n");
    CHECK_HEARS(half, "<93.184.215.14:443||>\x16\x03\x01\x02");
    return finish(w, &b, &d);
}

static bool is_reset(const struct box *b, const char *address, int port)
{
    silt_auto_fd fd = dial(b, address, port);
    if (fd < 0)
        return errno == ECONNRESET || errno == ECONNREFUSED;
    if (send(fd, "x", 1, MSG_NOSIGNAL) < 0) /* it is told once, to whoever comes first */
        return errno == ECONNRESET || errno == EPIPE;
    return strcmp(hear(fd, NULL), "[errno 104]") == 0;
}

static bool breaks_off_when_refused(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(is_reset(&b, PUBLIC4, REFUSED_PORT) && is_told(SILT_REFUSED_BY_OTHER, REFUSED_PORT));
    CHECK(is_reset(&b, PUBLIC4, FAILING_PORT) && is_told(SILT_REFUSED_NOBODY, FAILING_PORT));
    CHECK(is_reset(&b, PUBLIC4, NONSENSE_PORT) && is_told(SILT_REFUSED_NOBODY, NONSENSE_PORT));
    stop_decider(&d);
    CHECK(is_reset(&b, PUBLIC4, 443) && is_told(SILT_REFUSED_NOBODY, 443));
    struct way nowhere = {.port = 0, .internet = true, .globs = ""};
    CHECK(set_way(&nowhere, NULL) == SILT_EGRESS_APPLIED);
    CHECK(is_reset(&b, PUBLIC4, 443) && is_told(SILT_REFUSED_NOBODY, 443));
    return finish(w, &b, &d);
}

/* The program that decides is not even asked. */
static bool keeps_closed_networks_closed(struct world *w)
{
    static const char *const closed[] = {"10.1.2.3", "192.168.1.1", "169.254.169.254", "100.64.0.1",
                                         "198.18.0.1"};
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    for (size_t i = 0; i < SILT_COUNT(closed); i++)
        CHECK(is_reset(&b, closed[i], 80) && is_told(SILT_REFUSED_CLOSED, 80));
    CHECK(is_reset(&b, "127.0.0.1", 61209)
          && is_told(SILT_REFUSED_CLOSED, 61209)); /* our own socket */
    if (w->gate.plan.ipv6)
        CHECK(is_reset(&b, "fd00:ec2::254", 80) && is_told(SILT_REFUSED_CLOSED, 80));
    CHECK(talks(&b, "10.77.0.1", 80, "hello\n", "<10.77.0.1:80||>")); /* opened by the operator */
    return finish(w, &b, &d);
}

static bool passes_ends_on(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    silt_auto_fd fd = dial(&b, PUBLIC4, PLAIN_PORT), silent = dial(&b, PUBLIC4, PLAIN_PORT);
    say(fd, "last");
    CHECK(shutdown(fd, SHUT_WR) == 0 && shutdown(silent, SHUT_WR) == 0);
    CHECK(strcmp(hear(fd, NULL), "<93.184.215.14:2020||>last<end>") == 0);
    CHECK(strcmp(hear(silent, NULL), "<93.184.215.14:2020||><end>") == 0);
    return finish(w, &b, &d);
}

static long memory_kb(pid_t pid)
{
    char path[64], *text = NULL;
    size_t len;
    struct silt_error e;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (silt_fd_read_file(AT_FDCWD, path, 8192, &text, &len, &e) < 0)
        return -1;
    const char *at = strstr(text, "VmRSS:");
    long kb = at != NULL ? strtol(at + 6, NULL, 10) : -1;
    free(text);
    return kb;
}

static bool carries_much(struct world *w)
{
    enum { PIECE = 256 << 10, ALL = 100 << 20 };
    static char bytes[PIECE];
    struct box b;
    static struct decider d;
    size_t back = 0;
    CHECK(begin(w, &b, &d));
    silt_auto_fd fd = dial(&b, PUBLIC4, PLAIN_PORT);
    CHECK_HEARS(fd, "<93.184.215.14:2020||>");
    long before = memory_kb(proxy.egress);
    pid_t writer = fork();
    if (writer == 0) {
        for (size_t n = 0; n < ALL; n += PIECE)
            if (send(fd, bytes, PIECE, MSG_NOSIGNAL) != PIECE)
                _exit(1);
        (void)shutdown(fd, SHUT_WR);
        _exit(0);
    }
    for (ssize_t n; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0;)
        back += (size_t)n;
    int status = 0;
    CHECK(waitpid(writer, &status, 0) == writer && status == 0);
    CHECK(back == ALL + strlen("<end>"));
    CHECK(memory_kb(proxy.egress) < before + FLAT_KB);
    return finish(w, &b, &d);
}

/* TLS */

struct talk {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

static bool shake(struct talk *t, const struct box *b, int port, const char *name,
                  const struct silt_egress_authority *ca)
{
    BIO *pem = BIO_new_mem_buf(ca->certificate, (int)ca->certificate_len);
    X509 *x = PEM_read_bio_X509(pem, NULL, NULL, NULL);
    *t = (struct talk){.context = SSL_CTX_new(TLS_client_method()), .fd = dial(b, PUBLIC4, port)};
    BIO_free(pem);
    (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(t->context), x);
    X509_free(x);
    SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    t->ssl = SSL_new(t->context);
    static const unsigned char protocols[] = "\x02h2\x08http/1.1";
    (void)SSL_set_alpn_protos(t->ssl, protocols, sizeof(protocols) - 1);
    (void)SSL_set_fd(t->ssl, t->fd);
    char wanted[64]; /* the macro wants it without const */
    (void)snprintf(wanted, sizeof(wanted), "%s", name);
    (void)SSL_set_tlsext_host_name(t->ssl, wanted);
    (void)SSL_set1_host(t->ssl, name);
    return t->fd >= 0 && SSL_connect(t->ssl) == 1;
}

static void hang_up(struct talk *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
    silt_close_fd(&t->fd);
}

/* Until it has come. */
static bool hears_secretly(struct talk *t, const char *wanted)
{
    char text[4096] = "";
    size_t len = 0;
    while (len < strlen(wanted)) {
        int n = SSL_read(t->ssl, text + len, (int)(sizeof(text) - 1 - len));
        if (n <= 0)
            break;
        len += (size_t)n;
        text[len] = 0;
    }
    if (strcmp(text, wanted) != 0)
        printf("# heard %s\n", text);
    return strcmp(text, wanted) == 0;
}

static bool speaks_tls_itself(struct world *w)
{
    struct box b;
    struct talk t;
    struct silt_egress_authority ca, other;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(get_authority(NULL, &ca));
    for (int i = 0; i < 3; i++) { /* the second time its certificate is there already */
        CHECK(shake(&t, &b, 443, i < 2 ? "secret.test" : "other.example.com", &ca));
        CHECK(hears_secretly(&t, i < 2 ? "<93.184.215.14:443|secret.test|>"
                                       : "<93.184.215.14:443|other.example.com|>"));
        CHECK(SSL_write(t.ssl, "GET /\n", 6) == 6 && hears_secretly(&t, "GET /\n"));
        (void)SSL_shutdown(t.ssl);
        CHECK(hears_secretly(&t, "<end>"));
        CHECK(SSL_read(t.ssl, &(char){0}, 1) <= 0
              && (SSL_get_shutdown(t.ssl) & SSL_RECEIVED_SHUTDOWN) != 0);
        hang_up(&t);
    }
    /* Nobody else's name, and nobody who does not trust the authority. */
    CHECK(get_authority(NULL, &other) && other.certificate_len == ca.certificate_len
          && memcmp(other.certificate, ca.certificate, ca.certificate_len) == 0);
    return finish(w, &b, &d);
}

/* Its sidecar is gone: nobody is answered for, and no connection brings its authority back. */
static bool speaks_for_nobody(struct world *w)
{
    struct box b;
    struct talk t;
    struct silt_egress_authority ca;
    struct silt_error e;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(get_authority(NULL, &ca));
    struct silt_egress_request q = {.type = SILT_EGRESS_UNTRUST, .authority = NUMBER};
    struct silt_parcel out = {.data = &q, .len = sizeof(q)};
    struct way way = {.port = d.port, .internet = true, .globs = "*\n"};
    CHECK(silt_fd_send(proxy.siltd, &out, &e) >= 0);
    CHECK(set_way(&way, NULL) == SILT_EGRESS_APPLIED); /* so it has heard the one before, too */
    CHECK(!shake(&t, &b, 443, "secret.test", &ca)
          && SSL_get_verify_result(t.ssl) == X509_V_OK); /* none was shown */
    hang_up(&t);
    return finish(w, &b, &d);
}

/* 202: not ours to read. */
static bool leaves_tls_alone(struct world *w)
{
    struct box b;
    struct silt_egress_authority ca;
    struct talk t;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(get_authority(NULL, &ca));
    CHECK(!shake(&t, &b, PLAIN_PORT, "secret.test", &ca)); /* an echo is no server */
    hang_up(&t);
    return finish(w, &b, &d);
}

static bool carries_much_in_tls(struct world *w)
{
    enum { PIECE = 64 << 10, ALL = 64 << 20 };
    static char bytes[PIECE];
    struct box b;
    struct talk t;
    struct silt_egress_authority ca;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(get_authority(NULL, &ca));
    CHECK(shake(&t, &b, 443, "secret.test", &ca)
          && hears_secretly(&t, "<93.184.215.14:443|secret.test|>"));
    long before = memory_kb(proxy.egress);
    for (size_t sent = 0; sent < ALL; sent += PIECE) {
        CHECK(SSL_write(t.ssl, bytes, PIECE) == PIECE);
        for (size_t back = 0; back < PIECE;) {
            int n = SSL_read(t.ssl, bytes, PIECE);
            CHECK(n > 0);
            back += (size_t)n;
        }
    }
    CHECK(memory_kb(proxy.egress) < before + FLAT_KB);
    hang_up(&t);
    return finish(w, &b, &d);
}

/* Names */

static size_t put_question(const char *name, int type, char *out)
{
    static const char head[12] = {0x12, 0x34, 1, 0, 0, 1};
    size_t n = sizeof(head);
    silt_slice rest = silt_slice_of(name), label;
    memcpy(out, head, sizeof(head));
    while (silt_slice_split(&rest, '.', &label)) {
        out[n++] = (char)label.len;
        memcpy(out + n, label.data, label.len);
        n += label.len;
    }
    memcpy(out + n, (char[]){0, 0, (char)type, 0, 1}, 5);
    return n + 5;
}

/* "code address"; static. */
static const char *asks(const struct box *b, const char *resolver, const char *name, int type)
{
    static char said[80];
    char m[1024], address[INET6_ADDRSTRLEN] = "-";
    struct sockaddr_storage to;
    socklen_t len = to_address(resolver, 53, &to);
    size_t asked = put_question(name, type, m), data = type == A ? 4 : 16;
    silt_auto_fd fd = open_inside(b, to.ss_family, SOCK_DGRAM);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0 || send(fd, m, asked, 0) < 0
        || poll(&p, 1, PATIENCE_MS) <= 0)
        return "silence";
    ssize_t n = recv(fd, m, sizeof(m), 0);
    if (n < 12 || m[0] != 0x12 || m[1] != 0x34)
        return "nonsense";
    if (m[7] > 0)
        (void)inet_ntop(type == A ? AF_INET : AF_INET6, m + (size_t)n - data, address,
                        sizeof(address));
    (void)snprintf(said, sizeof(said), "%d %s", m[3] & 0xf, address);
    return said;
}

#define CHECK_ASKS(box, name, type, wanted)                                                        \
    do {                                                                                           \
        const char *answered = asks(box, "8.8.8.8", name, type);                                   \
        if (strcmp(answered, wanted) != 0) {                                                       \
            complain_said(__FILE__, __LINE__, name, answered, wanted);                             \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool answers_names(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    struct way on = {.port = d.port, .internet = true, .globs = "*.made.nowhere\nplain.nowhere\n"};
    struct way off = {.port = d.port, .globs = "*.made.nowhere\ngood.test\n"};
    CHECK_ASKS(&b, "good.test", A, "0 93.184.215.14");
    CHECK_ASKS(&b, "any.nowhere", A, "0 11.0.0.1"); /* * */
    CHECK(set_way(&on, NULL) == SILT_EGRESS_APPLIED);
    CHECK_ASKS(&b, "good.test", A, "0 93.184.215.14");
    CHECK_ASKS(&b, "private.test", A, "0 -");
    CHECK_ASKS(&b, "A.Made.Nowhere", A, "0 11.0.0.1");
    CHECK_ASKS(&b, "plain.nowhere", A, "0 11.0.0.1");
    CHECK_ASKS(&b, "any.nowhere", A, "3 -");
    unsigned asked = *proxy.asked;
    CHECK(set_way(&off, NULL) == SILT_EGRESS_APPLIED);
    CHECK_ASKS(&b, "good.test", A, "0 11.0.0.1");
    CHECK_ASKS(&b, "a.made.nowhere", A, "0 11.0.0.1");
    CHECK_ASKS(&b, "twin.test", A, "3 -");
    CHECK(*proxy.asked == asked); /* nothing has left */
    if (w->gate.plan.ipv6) {
        CHECK_ASKS(&b, "good.test", AAAA, "0 fd00::1");
        CHECK(strcmp(asks(&b, "2001:4860:4860::8888", "good.test", A), "0 11.0.0.1") == 0);
    }
    return finish(w, &b, &d);
}

/* Restarts */

static bool starts_again(struct world *w)
{
    struct box b;
    struct talk t;
    struct silt_egress_authority ca, again;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    CHECK(get_authority(NULL, &ca));
    struct way way = {.port = d.port, .internet = true, .globs = "*\n"};
    proxy_crash(&proxy, w);
    CHECK(get_authority(&ca, &again) && memcmp(&ca, &again, sizeof(ca)) == 0);
    CHECK(set_way(&way, NULL) == SILT_EGRESS_LISTENLESS);
    CHECK(capture(w, &way));
    CHECK(shake(&t, &b, 443, "secret.test", &ca)
          && hears_secretly(&t, "<93.184.215.14:443|secret.test|>"));
    hang_up(&t);
    return finish(w, &b, &d);
}

static bool outlives_siltd(struct world *w)
{
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    struct way way = {.port = d.port, .internet = true, .globs = "*\n"};
    struct silt_egress_request sync = {.type = SILT_EGRESS_SYNC};
    silt_auto_fd fd = dial(&b, PUBLIC4, PLAIN_PORT);
    CHECK_HEARS(fd, "<93.184.215.14:2020||>");
    proxy_new_siltd(&proxy);
    CHECK(set_way(&way, NULL) == SILT_EGRESS_APPLIED && proxy_tell(&proxy, sync, NULL));
    say(fd, "still here");
    CHECK_HEARS(fd, "still here");
    proxy_new_siltd(&proxy);
    CHECK(proxy_tell(&proxy, sync, NULL)); /* which does not know it */
    CHECK(strcmp(hear(fd, NULL), "[errno 104]") == 0);
    CHECK(set_way(&way, NULL) == SILT_EGRESS_LISTENLESS);
    return finish(w, &b, &d);
}

/* Liars */

static bool bears_nonsense(struct world *w)
{
    static char garbage[8000];
    struct box b;
    static struct decider d;
    CHECK(begin(w, &b, &d));
    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)(i * 7 + i / 256);
    for (unsigned first = 0; first < 256; first += 5) {
        silt_auto_fd fd = dial(&b, PUBLIC4, first % 2 == 0 ? 443 : 80);
        garbage[0] = (char)first;
        garbage[1] = 3;
        CHECK(fd >= 0 && send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL) > 0);
    }
    CHECK(talks(&b, PUBLIC4, 80, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
                "<93.184.215.14:80||example.com>"));
    return finish(w, &b, &d);
}

static bool limits(struct world *w)
{
    struct box b;
    static struct decider d;
    static int held[2 * CONNECTIONS];
    int broken = 0, refused = 0;
    struct silt_egress_note n;
    CHECK(begin(w, &b, &d));
    for (size_t i = 0; i < SILT_COUNT(held); i++) {
        held[i] = dial(&b, PUBLIC4, SILENT_PORT);
        refused += held[i] < 0;
    }
    struct silt_egress_request count = {
        .type = SILT_EGRESS_COUNT, .link = link_number, .generation = 5};
    CHECK(is_told(SILT_REFUSED_LIMIT, SILENT_PORT));
    CHECK(proxy_tell(&proxy, count, NULL) && proxy_hear(&proxy, SILT_EGRESS_COUNTS, &n));
    CHECK(n.body.counts.open <= CONNECTIONS);
    for (int tries = 0; tries < PATIENCE_MS / 10 && broken + refused < CONNECTIONS; tries++) {
        (void)poll(NULL, 0, 10);
        for (size_t i = 0; i < SILT_COUNT(held); i++) {
            char byte;
            if (held[i] < 0 || recv(held[i], &byte, 1, MSG_DONTWAIT) >= 0 || errno != ECONNRESET)
                continue;
            broken++;
            silt_close_fd(&held[i]);
        }
    }
    CHECK(broken + refused >= CONNECTIONS);
    for (size_t i = 0; i < SILT_COUNT(held); i++)
        silt_close_fd(&held[i]);
    for (int tries = 0; tries < PATIENCE_MS / 10 && n.body.counts.open > 0; tries++) {
        (void)poll(NULL, 0, 10);
        CHECK(proxy_tell(&proxy, count, NULL) && proxy_hear(&proxy, SILT_EGRESS_COUNTS, &n));
    }
    return finish(w, &b, &d);
}

const struct test offer_tests[] = {
    {"a captive sandbox's connection is offered with its destination and the name that it begins "
     "with",
     offers_with_hints, no_gate},
    {"who waits for the server to speak is offered without a name", lets_servers_speak_first,
     no_gate},
    {"what is refused, or offered to nobody, is reset and told", breaks_off_when_refused, no_gate},
    {"closed networks are refused before anybody is asked, but for those that the operator opened",
     keeps_closed_networks_closed, no_gate},
    {"a captive sandbox's last words are passed on, and those that come back", passes_ends_on,
     no_gate},
    {"100 MiB pass a captive sandbox's connection both ways with flat memory", carries_much,
     no_gate},
    {"TLS is spoken with a certificate for the server's name, signed by the sidecar's authority",
     speaks_tls_itself, no_gate},
    {"a sidecar that is gone is spoken for by nobody, and no connection brings its authority back",
     speaks_for_nobody, no_gate},
    {"TLS that nobody wants to read passes as it is", leaves_tls_alone, no_gate},
    {"64 MiB pass in TLS both ways with flat memory", carries_much_in_tls, no_gate},
    {"names are answered as the sidecar's settings say", answers_names, no_gate},
    {"a new silt-proxy gets sockets and the same authority again", starts_again, no_gate},
    {"a captive sandbox's connections outlive siltd; one that a new siltd does not name is dropped",
     outlives_siltd, no_gate},
    {"a captive sandbox's nonsense harms nobody", bears_nonsense, no_gate},
    {"a captive sandbox has so many connections and no more", limits, no_gate},
    {NULL, NULL, NULL},
};
