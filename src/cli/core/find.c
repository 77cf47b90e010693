/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/find.h"
#include "base/fd.h"
#include "base/id.h"
#include "cli/core/context.h"

#include <errno.h>
#include <fcntl.h>

enum { SMALL_FILE_MAX = 4096 };

int silt_find_config(const struct silt_config **ret, struct silt_error *e)
{
    static struct silt_config config;
    static bool loaded;
    static char name[] = "silt", no_file[] = "--config=";
    char *args[] = {name, no_file, NULL};
    if (!loaded && silt_config_load(1, args, &config, e) < 0
        && (e->code != SILT_DENIED || silt_config_load(2, args, &config, e) < 0))
        return -1;
    loaded = true;
    *ret = &config;
    return 0;
}

/* The text of a file without trailing white space. */
static int read_word(const char *path, char *ret, size_t size, struct silt_error *e)
{
    silt_auto_free char *text = NULL;
    size_t len = 0;
    if (silt_fd_read_file(AT_FDCWD, path, SMALL_FILE_MAX, &text, &len, e) < 0)
        return -1;
    while (len > 0 && silt_is_any(text[len - 1], " \t\r\n"))
        len--;
    if (silt_slice_to_cstr((silt_slice){text, len}, ret, size, e) < 0)
        return silt_because(e, "%s", path);
    return 0;
}

/* A host without a port has that of its scheme. */
int silt_find_address(const char *text, char ret[SILT_CLIENT_ADDRESS_SIZE], bool *ret_https,
                      struct silt_error *e)
{
    silt_slice s = silt_slice_of(text), http = SILT_LIT("http://"), https = SILT_LIT("https://");
    silt_slice name = silt_slice_starts(s, https) ? https : silt_slice_starts(s, http) ? http : s;
    *ret_https = name.data == https.data;
    if (text[0] == '/')
        return silt_slice_to_cstr(s, ret, SILT_CLIENT_ADDRESS_SIZE, e);
    if (name.data != s.data)
        s = (silt_slice){s.data + name.len, s.len - name.len};
    while (s.len > 0 && s.data[s.len - 1] == '/')
        s.len--;
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] <= ' ' || s.data[i] == '/' || s.data[i] > '~')
            return silt_fail(e, SILT_INVALID, "server %s: not host:port", text);
    if (silt_slice_to_cstr(s, ret, SILT_CLIENT_ADDRESS_SIZE - 4, e) < 0)
        return silt_because(e, "server %s", text);
    const char *colon = strrchr(ret, ':');
    bool bare = colon == NULL || ret[s.len > 0 ? s.len - 1 : 0] == ']';
    if (bare && s.len > 0 && name.data != text)
        (void)memcpy(ret + s.len, *ret_https ? ":443" : ":80", *ret_https ? 5 : 4);
    else if (bare || ret[0] == ':')
        return silt_fail(e, SILT_INVALID, "server %s: not host:port", text);
    return 0;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? value : NULL;
}

static const char *named_server(const char *option)
{
    if (option != NULL)
        return option;
    const char *named = variable("SILT_SERVER");
    return named != NULL ? named : variable("SILT_URL");
}

int silt_find_context(const char *server, const struct silt_context **ret, struct silt_error *e)
{
    *ret = NULL;
    if (server != NULL || (!silt_context_is_chosen() && named_server(NULL) != NULL))
        return 0;
    return silt_context_current(ret, e);
}

int silt_find_server(const char *option, char ret[SILT_CLIENT_ADDRESS_SIZE], bool *ret_https,
                     struct silt_error *e)
{
    const struct silt_config *config;
    char path[PATH_MAX + 16];
    const char *named = named_server(option);
    *ret_https = false;
    if (named != NULL)
        return silt_find_address(named, ret, ret_https, e);
    if (silt_find_config(&config, e) < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/address", config->run);
    if (read_word(path, ret, SILT_CLIENT_ADDRESS_SIZE, e) == 0)
        return 0;
    return silt_find_address(config->listen, ret, ret_https,
                             e); /* not running, or in another mount namespace */
}

int silt_find_token(const char *option, char ret[SILT_CLIENT_TOKEN_SIZE], struct silt_error *e)
{
    const struct silt_config *config;
    const char *token = getenv("SILT_TOKEN");
    if (option != NULL)
        return read_word(option, ret, SILT_CLIENT_TOKEN_SIZE, e);
    if (token != NULL)
        return silt_slice_to_cstr(silt_slice_of(token), ret, SILT_CLIENT_TOKEN_SIZE, e);
    if (silt_find_config(&config, e) < 0)
        return -1;
    if (read_word(config->token_file, ret, SILT_CLIENT_TOKEN_SIZE, e) < 0)
        ret[0] = 0;
    return 0;
}

int silt_find_program(const char *name, char ret[PATH_MAX], struct silt_error *e)
{
    static const char *const places[] = {".", "../libexec/silt"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return silt_fail_errno(e, "read /proc/self/exe");
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < SILT_COUNT(places); i++) {
        int len = snprintf(ret, PATH_MAX, "%s/%s/%s", self, places[i], name);
        if (len > 0 && len < PATH_MAX && access(ret, X_OK) == 0)
            return 0;
    }
    return silt_fail(e, SILT_NOT_FOUND, "no program %s near %s", name, self);
}

/* Installed: share/silt/images; in a source tree: images, in a directory above the program. */
int silt_find_recipe(const char *name, char ret[PATH_MAX], struct silt_error *e)
{
    static const char *const places[] = {"../share/silt/images", "../images", "../../images",
                                         "../../../images"};
    char self[PATH_MAX];
    if (silt_id_check_image(silt_slice_of(name), e) < 0)
        return -1;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n < 0)
        return silt_fail_errno(e, "read /proc/self/exe");
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < SILT_COUNT(places); i++) {
        int len = snprintf(ret, PATH_MAX, "%s/%s/%s/build", self, places[i], name);
        if (len > 0 && len < PATH_MAX && access(ret, X_OK) == 0)
            return 0;
    }
    return silt_fail(e, SILT_NOT_FOUND, "no recipe for image %s\nRecipes exist for base and host.",
                     name);
}
