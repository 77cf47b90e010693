/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/http_connect.h"
#include "http/parse.h"
#include "proxy/egress/client_hello.h"
#include "proxy/policy/policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { HANDSHAKE = 22, HTTP = 80, ADDRESS_TEXT = INET6_ADDRSTRLEN + sizeof("[]:65535") };

/* Unrecognised protocols are offered without hints: the sidecar may still accept them. */
static bool look_at_hello(silt_slice bytes, struct silt_http_connect_hints *h)
{
    struct silt_client_hello hello;
    switch (silt_client_hello_parse(bytes, &hello)) {
    case SILT_CLIENT_HELLO_MORE:
        return false;
    case SILT_CLIENT_HELLO_WHOLE:
        if (hello.name.data != NULL)
            (void)silt_policy_clean(hello.name, h->sni);
        return true;
    case SILT_CLIENT_HELLO_OTHER:
    case SILT_CLIENT_HELLO_BROKEN:
        break;
    }
    return true;
}

static bool look_at_request(silt_slice bytes, struct silt_http_connect_hints *h)
{
    static struct silt_http_head head;
    silt_slice name, rest;
    int len = silt_http_parse(&head, bytes, SILT_HTTP_REQUEST);
    if (len == 0)
        return false;
    rest = head.host;
    if (len > 0 && silt_slice_split(&rest, ':', &name))
        (void)silt_policy_clean(name, h->host);
    return true;
}

bool silt_http_connect_has_more(silt_slice before, silt_slice new)
{
    return before.len == 0 || before.data[0] == HANDSHAKE
           || before.len + new.len >= SILT_HTTP_CONNECT_PEEK_MAX || silt_slice_has_byte(new, '\n');
}

bool silt_http_connect_look(silt_slice bytes, uint16_t port, struct silt_http_connect_hints *ret)
{
    bool whole = true;
    *ret = (struct silt_http_connect_hints){0};
    if (bytes.data[0] == HANDSHAKE)
        whole = look_at_hello(bytes, ret);
    else if (port == HTTP)
        whole = look_at_request(bytes, ret);
    return whole || bytes.len >= SILT_HTTP_CONNECT_PEEK_MAX;
}

static void write_address(const struct sockaddr_storage *at, char out[ADDRESS_TEXT])
{
    const struct sockaddr_in *four = (const void *)at;
    const struct sockaddr_in6 *six = (const void *)at;
    bool is_four = at->ss_family == AF_INET;
    char text[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(at->ss_family, is_four ? (const void *)&four->sin_addr : &six->sin6_addr, text,
                    sizeof(text));
    (void)snprintf(out, ADDRESS_TEXT, is_four ? "%s:%u" : "[%s]:%u", text,
                   ntohs(is_four ? four->sin_port : six->sin6_port));
}

void silt_http_connect_write(struct silt_buf *out, const struct sockaddr_storage *to,
                             const struct sockaddr_storage *from,
                             const struct silt_http_connect_hints *h)
{
    char destination[ADDRESS_TEXT], source[ADDRESS_TEXT];
    write_address(to, destination);
    write_address(from, source);
    silt_buf_addf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nX-Proto: tcp\r\n",
                  destination, destination, source);
    if (h->sni[0] != 0)
        silt_buf_addf(out, "X-Tls-Sni: %s\r\n", h->sni);
    if (h->host[0] != 0)
        silt_buf_addf(out, "X-Hostname: %s\r\n", h->host);
    silt_buf_addf(out, "Connection: close\r\n\r\n");
}

int silt_http_connect_read(silt_slice bytes, int *ret_status)
{
    static struct silt_http_head head;
    int len = silt_http_parse(&head, bytes, SILT_HTTP_RESPONSE);
    if (len > 0)
        *ret_status = head.status;
    return len > 0 && head.status < 200 ? -1 : len;
}
