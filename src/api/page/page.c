/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/terminal: a page with the terminal of a session, behind a login. Everything the page loads
 * is embedded in this program. */
#include "api/core/login.h"

#define FIELDS                                                                                     \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self' "            \
    "'unsafe-inline'; connect-src 'self'; "                                                        \
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"        \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n"
#define NEVER "Cache-Control: no-store\r\n"

enum { FORM_MAX = 4096 };

extern const unsigned char silt_web_terminal[], silt_web_login[], silt_web_script[],
    silt_web_style[], silt_web_docs[], silt_web_docs_script[], silt_web_docs_style[];
extern const size_t silt_web_terminal_size, silt_web_login_size, silt_web_script_size,
    silt_web_style_size, silt_web_docs_size, silt_web_docs_script_size, silt_web_docs_style_size;

static silt_slice text_of(const unsigned char *bytes, size_t size)
{
    return (silt_slice){(const char *)bytes, size};
}

static void send_page(struct silt_http_request *r, int status, silt_slice page)
{
    silt_http_reply(r, status, SILT_LIT("text/html; charset=utf-8"), SILT_LIT(FIELDS NEVER), page);
}

SILT_HANDLER(silt_api_terminal_page)
{
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0)
        silt_api_refuse_field(r, "id", e.text);
    else if (silt_login_has(silt_api_of(r), r))
        send_page(r, 200, text_of(silt_web_terminal, silt_web_terminal_size));
    else
        send_page(r, 401, text_of(silt_web_login, silt_web_login_size));
}

/* token=… from the form. */
static silt_slice typed_token(struct silt_http_request *r)
{
    silt_slice rest = r->body, pair, name, value;
    while (rest.len > 0 && silt_slice_split(&rest, '&', &pair))
        if (silt_slice_split(&pair, '=', &name) && silt_slice_eq(name, SILT_LIT("token"))
            && pair.len > 0 && silt_query_decode(r, pair, &value))
            return silt_trim_blank(value);
    return (silt_slice){NULL, 0};
}

/* The login page with a message above its field. */
static void send_wrong(struct silt_http_request *r)
{
    silt_slice page = text_of(silt_web_login, silt_web_login_size), field = SILT_LIT("\t<label");
    const char *at = memmem(page.data, page.len, field.data, field.len);
    size_t before = at != NULL ? (size_t)(at - page.data) : page.len;
    silt_auto_buf b;
    silt_buf_init(&b, page.len + 256);
    silt_buf_add(&b, (silt_slice){page.data, before});
    silt_buf_add(&b, SILT_LIT("\t<p role=\"alert\">That is not this server's token.</p>\n"));
    silt_buf_add(&b, (silt_slice){page.data + before, page.len - before});
    send_page(r, 401, silt_buf_slice(&b));
}

static void on_form(struct silt_http_request *r)
{
    struct silt_api *api = silt_api_of(r);
    char cookie[SILT_LOGIN_FIELD_SIZE];
    silt_auto_buf fields;
    silt_buf_init(&fields, SILT_HTTP_HEAD_MAX + 4096);
    if (!silt_slice_eq_secret(typed_token(r), api->token)) {
        send_wrong(r);
        return;
    }
    silt_login_field(api, r, cookie);
    silt_buf_add(&fields, SILT_LIT(FIELDS NEVER "Location: "));
    silt_buf_add(&fields, r->head->target);
    silt_buf_addf(&fields, "\r\n%s", cookie);
    silt_http_reply(r, 303, (silt_slice){NULL, 0}, silt_buf_slice(&fields), (silt_slice){NULL, 0});
}

/* From our own page only: other sites must not log a browser in. */
SILT_HANDLER(silt_api_terminal_login)
{
    struct silt_error e;
    if (silt_id_check(args[0], &e) < 0)
        silt_api_refuse_field(r, "id", e.text);
    else if (!silt_http_is_own(r->head))
        silt_api_refuse(r, SILT_API_PERMISSION_DENIED, (silt_slice){NULL, 0},
                        "The form was sent by another page");
    else
        silt_http_collect(r, FORM_MAX, on_form);
}

/* Shows docs/openapi.json; open, as the document is. */
SILT_HANDLER(silt_api_docs)
{
    (void)args;
    send_page(r, 200, text_of(silt_web_docs, silt_web_docs_size));
}

SILT_HANDLER(silt_api_asset)
{
    static const struct {
        const char *name, *type;
        const unsigned char *bytes;
        const size_t *size;
    } assets[] = {
        {"terminal.js", "text/javascript; charset=utf-8", silt_web_script, &silt_web_script_size},
        {"terminal.css", "text/css; charset=utf-8", silt_web_style, &silt_web_style_size},
        {"docs.js", "text/javascript; charset=utf-8", silt_web_docs_script,
         &silt_web_docs_script_size},
        {"docs.css", "text/css; charset=utf-8", silt_web_docs_style, &silt_web_docs_style_size},
    };
    for (size_t i = 0; i < SILT_COUNT(assets); i++)
        if (silt_slice_eq(args[0], silt_slice_of(assets[i].name))) {
            silt_http_reply(r, 200, silt_slice_of(assets[i].type),
                            SILT_LIT(FIELDS "Cache-Control: no-cache\r\n"),
                            text_of(assets[i].bytes, *assets[i].size));
            return;
        }
    silt_api_refuse(r, SILT_API_UNKNOWN_ROUTE, (silt_slice){NULL, 0},
                    "The requested endpoint was not found");
}
