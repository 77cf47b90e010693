/* SPDX-License-Identifier: Apache-2.0 */
/* silt tls dev: makes a certificate for previews on this machine and puts it into the settings. */
#include "base/fd.h"
#include "cli/command/tls_files.h"
#include "cli/core/cli.h"
#include "cli/core/find.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { SETTINGS_MAX = 256 << 10 };

static const char default_settings[] = "/etc/silt/silt.conf";

struct dev {
    const struct silt_config *config; /* borrowed */
    char settings[PATH_MAX];
    char directory[PATH_MAX];
    char domain[128]; /* "": only names of this machine */
};

/* Paths */

static int find_places(struct dev *d, const char *directory, struct silt_error *e)
{
    const char *settings = getenv("SILT_CONFIG");
    settings = settings != NULL && settings[0] != 0 ? settings : default_settings;
    if (silt_find_config(&d->config, e) < 0
        || silt_slice_to_path(silt_slice_of(settings), d->settings, e) < 0)
        return -1;
    const char *slash = strrchr(d->settings, '/');
    int n = directory != NULL
                ? snprintf(d->directory, PATH_MAX, "%s", directory)
                : snprintf(d->directory, PATH_MAX, "%.*s/tls",
                           (int)(slash != NULL ? slash - d->settings : 0), d->settings);
    if (n < 0 || n >= PATH_MAX - 16 || d->directory[0] != '/')
        return silt_fail(e, SILT_INVALID, "directory %.80s: not an absolute path", d->directory);
    (void)snprintf(d->domain, sizeof(d->domain), "%.*s",
                   (int)strcspn(d->config->preview_domain, ":"), d->config->preview_domain);
    if (strcmp(d->domain, "localhost") == 0)
        return silt_fail(e, SILT_INVALID,
                         "no browser takes a certificate for all of localhost\nTake the setting "
                         "preview.domain away, or choose silt.localhost and the port.");
    return 0;
}

static int make_files(const struct dev *d, struct silt_error *e)
{
    if (silt_tls_files_make(d->directory, d->domain, e) == 0)
        return 0;
    if (e->sys == EACCES && geteuid() != 0)
        return silt_fail(e, SILT_DENIED, "no right to write to %s\nTry: sudo silt tls dev",
                         d->directory);
    return silt_because(e, "no certificate was made");
}

/* Settings */

/* Settings with a section in their name go before the first [section]. */
static int write_settings(const struct dev *d, silt_slice old, mode_t mode, struct silt_error *e)
{
    char fresh[PATH_MAX + 8], lines[2 * PATH_MAX + 128];
    int n = snprintf(lines, sizeof(lines),
                     "# By silt tls dev.\npreview.certificate = %s/preview.pem\npreview.key = "
                     "%s/preview.key\n\n",
                     d->directory, d->directory);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", d->settings);
    silt_auto_fd fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", fresh);
    if (silt_fd_write_all(fd, (silt_slice){lines, (size_t)n}, e) < 0
        || silt_fd_write_all(fd, old, e) < 0)
        return silt_because(e, "%s", fresh);
    if (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(fresh, d->settings) < 0)
        return silt_fail_errno(e, "write %s", d->settings);
    return 0;
}

static int add_settings(const struct dev *d, struct silt_error *e)
{
    silt_auto_free char *old = NULL;
    size_t len = 0;
    struct stat st = {.st_mode = 0644};
    if (stat(d->settings, &st) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "look at %s", d->settings);
    if (st.st_size > 0 && silt_fd_read_file(AT_FDCWD, d->settings, SETTINGS_MAX, &old, &len, e) < 0)
        return silt_because(e, "%s", d->settings);
    return write_settings(d, (silt_slice){old, len}, st.st_mode & 0777, e);
}

/* 1: settings were added; 0: they existed. */
static int settle(const struct dev *d, struct silt_error *e)
{
    char ours[PATH_MAX + 16];
    (void)snprintf(ours, sizeof(ours), "%s/preview.pem", d->directory);
    if (strcmp(d->config->preview_certificate, ours) == 0)
        return 0;
    if (d->config->preview_certificate[0] != 0)
        return silt_fail(e, SILT_CONFLICT,
                         "preview.certificate is %s already\nTo use the new one set it to %s, and "
                         "preview.key to preview.key beside it.",
                         d->config->preview_certificate, ours);
    return add_settings(d, e) < 0 ? -1 : 1;
}

/* Next steps */

static void print_way(const struct dev *d, bool new)
{
    const char *f = d->directory, *domain = d->domain[0] != 0 ? d->domain : "silt.localhost";
    (void)printf("%s/preview.pem is a certificate for *.%s\n", f, domain);
    if (new)
        (void)printf("%s names it now. Start the daemon again (systemctl restart silt, or "
                     "script/down and script/up): previews are https then.\n",
                     d->settings);
    else
        (void)printf("A daemon that runs with it takes the new one within seconds.\n");
    (void)printf("\nTrust its authority, %s/ca.pem, where your browser is. It can vouch for names "
                 "of %s only.\n"
                 "  Debian, curl   sudo cp %s/ca.pem /usr/local/share/ca-certificates/silt-dev.crt "
                 "&& sudo update-ca-certificates\n"
                 "  Chromium       certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n silt-dev -i "
                 "%s/ca.pem    (package libnss3-tools)\n"
                 "  Firefox        Settings, Privacy, Certificates: import it as an authority\n"
                 "  macOS          security add-trusted-cert -k "
                 "~/Library/Keychains/login.keychain-db ca.pem\n"
                 "  one program    curl --cacert %s/ca.pem; NODE_EXTRA_CA_CERTS=%s/ca.pem node\n"
                 "On another machine: silt tls dev --print-ca here, and its output there.\n",
                 f, d->domain[0] != 0 ? "this machine and of that domain" : "this machine", f, f, f,
                 f);
}

static int print_authority(const struct dev *d, struct silt_error *e)
{
    silt_auto_free char *text = NULL;
    char path[PATH_MAX + 16];
    size_t len = 0;
    (void)snprintf(path, sizeof(path), "%s/ca.pem", d->directory);
    if (silt_fd_read_file(AT_FDCWD, path, SETTINGS_MAX, &text, &len, e) < 0)
        return silt_fail(e, SILT_NOT_FOUND, "no authority at %s\nTry: sudo silt tls dev", path);
    (void)fwrite(text, 1, len, stdout);
    return 0;
}

static int run_dev(const char *directory, bool print, struct silt_error *e)
{
    static struct dev d;
    if (find_places(&d, directory, e) < 0)
        return -1;
    if (print)
        return print_authority(&d, e);
    if (make_files(&d, e) < 0)
        return -1;
    int got = settle(&d, e);
    if (got >= 0)
        print_way(&d, got == 1);
    return got < 0 ? -1 : 0;
}

int silt_cli_tls(int argc, char **argv)
{
    static struct silt_cli cli;
    struct silt_error e;
    bool print = false;
    const char *directory = NULL;
    const struct silt_option own[] = {
        {.name = "print-ca", .flag = &print},
        {.name = "directory", .value = &directory},
        {.name = "folder", .value = &directory} /* the former name of the option */};
    const struct silt_options options = {.table = own, .count = SILT_COUNT(own)};
    if (silt_cli_parse(&cli, &options, argc, argv, &e) < 0)
        return silt_cli_fail(&e);
    if (cli.plain.count != 1 || strcmp(cli.plain.items[0], "dev") != 0)
        return silt_cli_usage();
    return run_dev(directory, print, &e) < 0 ? silt_cli_fail(&e) : EXIT_SUCCESS;
}
