/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell/state.h"
#include "agent/shell/dev_silt.h"
#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Options are written only if they differ from the defaults of bash 5.2, and last, because errexit
 * would end the loading shell at the first error. Functions come after variables, because one of
 * them may have the name of a builtin; aliases after functions, because a function's text is
 * already expanded. The first lines undo silt_state_env. */
static const char fork_text[] =
    "\\command echo declare +x HOME LANG LC_ALL PATH SHELL TERM\n"
    "${HOME+:} \\command echo unset -v HOME\n"
    "${LANG+:} \\command echo unset -v LANG\n"
    "${LC_ALL+:} \\command echo unset -v LC_ALL\n"
    "${PATH+:} \\command echo unset -v PATH\n"
    "${SHELL+:} \\command echo unset -v SHELL\n"
    "${TERM+:} \\command echo unset -v TERM\n"
    "[[ $BASHOPTS == "
    "checkwinsize:cmdhist:complete_fullquote:extquote:force_fignore:globasciiranges:"
    "globskipdots:hostcomplete:interactive_comments:patsub_replacement:progcomp:promptvars:"
    "sourcepath"
    " ]] || \\command shopt -p\n"
    "\\command declare -p\n"
    "\\command umask -p\n"
    "\\command printf '%s ' set -- \"${@@Q}\"\n"
    "\\command echo\n"
    "\\command declare -f\n"
    "\\command alias -p\n"
    "[[ $SHELLOPTS == braceexpand:hashall:interactive-comments ]] || \\command set +o\n"
    "\\command echo '" SILT_STATE_WHOLE "'\n";

/* Usable only if written to its last line: a command's timeout, a full tmpfs or a user's trap can
 * cut it short. */
static const char save_text[] = "\\command . " SILT_DEV_SILT SILT_STATE_FORK
                                "\n\\command trap -p\n\\command echo '" SILT_STATE_WHOLE "'\n";

static int install(int directory, const char *name, silt_slice text, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    if (silt_dev_silt_create(directory, name, (struct silt_owner){0}, &fd, e) < 0)
        return -1;
    if (fchmod(fd, 0644) < 0) /* every user's shell reads it */
        return silt_fail_errno(e, "let " SILT_DEV_SILT "%s be read", name);
    return silt_fd_write_all(fd, text, e);
}

static int install_missing(int directory, const char *name, silt_slice text, struct silt_error *e)
{
    return faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : install(directory, name, text, e);
}

int silt_state_install(int directory, struct silt_error *e)
{
    if (install_missing(directory, SILT_STATE_FORK, silt_slice_of(fork_text), e) < 0)
        return -1;
    return install_missing(directory, SILT_STATE_SAVE, silt_slice_of(save_text), e);
}

static const char *const own_names[] = {
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_LINENO",
    "BASH_LOADABLES_PATH",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "BASH_VERSION",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "HOSTTYPE",
    "LINENO",
    "MACHTYPE",
    "OSTYPE",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
    "_",
};

/* declare -xr NAME="…" */
static bool is_own(silt_slice line)
{
    silt_slice word;
    silt_slice name;
    if (!silt_slice_starts(line, SILT_LIT("declare -")))
        return false;
    (void)silt_slice_split(&line, ' ', &word);
    (void)silt_slice_split(&line, ' ', &word);
    (void)silt_slice_split(&line, '=', &name);
    for (size_t i = 0; i < SILT_COUNT(own_names); i++)
        if (silt_slice_eq(name, silt_slice_of(own_names[i])))
            return true;
    return false;
}

static size_t trim(char *text, size_t len)
{
    silt_slice rest = {text, len};
    silt_slice line;
    size_t kept = 0;
    while (rest.len > 0 && silt_slice_split(&rest, '\n', &line)) {
        bool ended = rest.data != NULL;
        if (is_own(line))
            continue;
        memmove(text + kept, line.data, line.len);
        kept += line.len;
        if (ended)
            text[kept++] = '\n';
    }
    return kept;
}

bool silt_state_trim(int fd)
{
    static char text[SILT_STATE_SMALL];
    ssize_t len = pread(fd, text, sizeof(text), 0);
    if (len <= 0 || (size_t)len == sizeof(text))
        return false;
    size_t kept = trim(text, (size_t)len);
    memset(text + kept, '\n', (size_t)len - kept); /* the size stays: one call, nothing to undo */
    ssize_t written = pwrite(fd, text, (size_t)len, 0);
    return written == len;
}

char *const *silt_state_env(void)
{
    static char home[] = "HOME=/";
    static char lang[] = "LANG=C.UTF-8";
    static char lc_all[] = "LC_ALL=C.UTF-8";
    static char path[] = "PATH=/usr/bin:/bin";
    static char shell[] = "SHELL=/bin/bash";
    static char term[] = "TERM=dumb";
    static char *const env[] = {home, lang, lc_all, path, shell, term, NULL};
    return env;
}
