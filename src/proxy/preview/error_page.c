/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/error_page.h"
#include "base/clock.h"

#include <stdio.h>

enum { TEXT_MAX = 512 };

struct words {
    int status;
    const char *code;
    const char *title;
    const char *hint;
};

static const struct words words[SILT_ERROR_PAGE_MAX] = {
    [SILT_ERROR_PAGE_MALFORMED] = {400, "VALIDATION_FAILED", "This request is not understood",
                                   "Send well-formed HTTP/1.1 to a preview's own host."},
    [SILT_ERROR_PAGE_UNKNOWN] = {404, "PREVIEW_NOT_FOUND", "There is no such preview",
                                 "Check the URL; exposing the port again gives a valid one."},
    [SILT_ERROR_PAGE_LOCKED] = {403, "PREVIEW_PRIVATE", "This preview is private",
                                "Ask its owner for a signed URL; they expire."},
    [SILT_ERROR_PAGE_CLOSED] =
        {504, "PORT_NOT_LISTENING", "The service does not listen",
         "Start it, then load this page again. To see what listens: silt exec ID -- ss -ltn"},
    [SILT_ERROR_PAGE_LATE] = {504, "PREVIEW_TIMEOUT", "The sandbox did not answer in time",
                              "Try again in a moment."},
    [SILT_ERROR_PAGE_ENDED] = {502, "SANDBOX_ENDED", "The sandbox is not running",
                               "The next request starts it again, if it can be started."},
    [SILT_ERROR_PAGE_BROKEN] = {502, "SERVICE_BROKE_OFF", "The service broke off",
                                "It closed the connection without an answer: look at its output."},
    [SILT_ERROR_PAGE_NOT_HTTP] = {502, "SERVICE_NOT_HTTP", "The service does not speak HTTP/1.1",
                                  "Its answer is not well-formed HTTP/1.1."},
    [SILT_ERROR_PAGE_BUSY] = {503, "PREVIEW_BUSY", "Too many requests at once",
                              "Try again in a moment."},
    [SILT_ERROR_PAGE_GUESSING] = {429, "TOO_MANY_UNKNOWN_PREVIEWS", "Too many unknown previews",
                                  "Wait a moment, and check the URL."},
};

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{400, "Bad Request"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {408, "Request Timeout"},
                   {414, "URI Too Long"},
                   {417, "Expectation Failed"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {501, "Not Implemented"},
                   {502, "Bad Gateway"},
                   {503, "Service Unavailable"},
                   {504, "Gateway Timeout"},
                   {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

static void say(const struct silt_error_page *p, char out[TEXT_MAX])
{
    const char *title = words[p->kind].title;
    if (p->kind == SILT_ERROR_PAGE_CLOSED)
        (void)snprintf(out, TEXT_MAX,
                       "Nothing listens on port %u of this sandbox, after %u.%u s of waiting.",
                       p->port, p->wait_ms / 1000, p->wait_ms / 100 % 10);
    else if (p->text != NULL && p->text[0] != 0)
        (void)snprintf(out, TEXT_MAX, "%s: %.160s", title, p->text);
    else if (p->port != 0)
        (void)snprintf(out, TEXT_MAX, "%s (port %u).", title, p->port);
    else
        (void)snprintf(out, TEXT_MAX, "%s.", title);
}

/* Keeps only characters without special meaning in HTML and JSON. */
static void put_plain(struct silt_buf *out, const char *text)
{
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        bool odd = c < ' ' || c > '~' || c == '<' || c == '>' || c == '&' || c == '"' || c == '\\';
        silt_buf_add_byte(out, odd ? '?' : (char)c);
    }
}

static void put_html(struct silt_buf *b, const struct silt_error_page *p, int status,
                     const char *text)
{
    const char *title = words[p->kind].title;
    silt_buf_addf(
        b,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>%d %s</title><style>body{font:16px/1.5 "
        "system-ui,sans-serif;"
        "max-width:40rem;margin:15vh auto;padding:0 "
        "1rem;color:#222;background:#fff}h1{font-size:1.4rem}"
        "code{background:#eee;padding:.1rem "
        ".3rem}@media(prefers-color-scheme:dark){body{color:#ddd;"
        "background:#181818}code{background:#333}}</style></head><body><h1>%s</h1><p>",
        status, reason_of(status), title);
    if (strncmp(text, title, strlen(title)) != 0
        || strcmp(text + strlen(title), ".") != 0) { /* more than the title */
        put_plain(b, text);
        silt_buf_add(b, SILT_LIT("</p><p>"));
    }
    put_plain(b, words[p->kind].hint);
    silt_buf_addf(b, "</p><p><code>%s</code></p></body></html>\n", words[p->kind].code);
}

static void put_json(struct silt_buf *b, const struct silt_error_page *p, int status,
                     const char *text)
{
    char now[SILT_ISO_SIZE];
    silt_clock_iso(silt_clock_wall_ms(), now);
    silt_buf_addf(b, "{\"code\":\"%s\",\"message\":\"", words[p->kind].code);
    put_plain(b, text);
    silt_buf_add(b, SILT_LIT("\",\"context\":{"));
    if (p->port != 0)
        silt_buf_addf(b, "\"port\":%u", p->port);
    silt_buf_addf(b, "},\"httpStatus\":%d,\"suggestion\":\"", status);
    put_plain(b, words[p->kind].hint);
    silt_buf_addf(b, "\",\"timestamp\":\"%s\"}\n", now);
}

static void put_connection(struct silt_buf *out, bool close, bool old)
{
    if (close)
        silt_buf_add(out, SILT_LIT("Connection: close\r\n"));
    else if (old)
        silt_buf_add(out, SILT_LIT("Connection: keep-alive\r\n"));
    silt_buf_add(out, SILT_LIT("\r\n"));
}

void silt_error_page_write(struct silt_buf *out, const struct silt_error_page *p)
{
    int status = p->kind == SILT_ERROR_PAGE_MALFORMED ? p->status : words[p->kind].status;
    char text[TEXT_MAX];
    silt_auto_buf body;
    silt_buf_init(&body, SILT_ERROR_PAGE_MAX_BYTES);
    say(p, text);
    if (p->html)
        put_html(&body, p, status, text);
    else
        put_json(&body, p, status, text);
    silt_buf_addf(
        out,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; style-src "
        "'unsafe-inline'\r\n",
        status, reason_of(status), p->html ? "text/html; charset=utf-8" : "application/json",
        body.len);
    if (status == 503 || status == 429)
        silt_buf_add(out, SILT_LIT("Retry-After: 1\r\n"));
    put_connection(out, p->close, p->old);
    if (!p->head_only)
        silt_buf_add(out, silt_buf_slice(&body));
}

void silt_error_page_write_move(struct silt_buf *out, const struct silt_error_page_move *m)
{
    silt_buf_add(out, SILT_LIT("HTTP/1.1 302 Found\r\nLocation: "));
    silt_buf_add(out, m->to);
    silt_buf_add(out, m->query);
    silt_buf_add(out, SILT_LIT("\r\nContent-Length: 0\r\nCache-Control: "
                               "no-store\r\nReferrer-Policy: no-referrer\r\n"));
    if (m->cookie.len > 0) {
        silt_buf_add(out, SILT_LIT("Set-Cookie: "));
        silt_buf_add(out, m->cookie);
        silt_buf_add(out, SILT_LIT("\r\n"));
    }
    put_connection(out, m->close, m->old);
}

void silt_error_page_write_lift(struct silt_buf *out, const struct silt_error_page_lift *l)
{
    silt_buf_add(out, SILT_LIT("HTTP/1.1 308 Permanent Redirect\r\nLocation: https://"));
    silt_buf_add(out, l->host);
    silt_buf_add(out, l->target);
    silt_buf_add(out, SILT_LIT("\r\nContent-Length: 0\r\nCache-Control: no-store\r\n"));
    put_connection(out, l->close, l->old);
}
