# Shared by the programs in script/. Sourced; sets `top` (the source tree) and `images`.
script=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$script")
images=$top/images
. "$images/lib.sh"

must_be_root() {
    [ "$(id -u)" = 0 ] || die "must run as root: sudo script/$(basename "$0")"
}

# packages_of GROUP...: the words of deps.txt.
packages_of() {
    for group in "$@"; do
        awk -v group="$group" '$1 == group { print $2 }' "$script/deps.txt"
    done | sort -u
}

# missing_packages GROUP...: those of the groups that this machine lacks.
missing_packages() {
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
    for word in $(packages_of "$@"); do
        case $word in
        *:*) command -v "${word#*:}" >/dev/null 2>&1 || echo "${word%:*}" ;;
        *) printf '%s\n' "$installed" | grep -qxF "$word" || echo "$word" ;;
        esac
    done
}

# install_deps GROUP...: installs what is missing and nothing else.
install_deps() {
    missing=$(missing_packages "$@" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    must_be_root
    command -v apt-get >/dev/null 2>&1 || die "these Debian packages are needed and apt-get is not here: $missing"
    say "installing from Debian: $missing"
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list of words
    if ! { apt-get update -q && without_services apt-get install -q -y --no-install-recommends $missing; } \
        </dev/null >"$log" 2>&1; then
        tail -n 15 "$log" | sed 's/^/    /' >&2
        rm -f "$log"
        die "apt-get could not install $missing(its last lines are above)"
    fi
    rm -f "$log"
    case " $missing" in
    *" nginx "* | *" caddy "* | *" docker-registry "*) ! has_systemd || systemctl --quiet disable $(echo " $missing" | grep -oE 'nginx|caddy|docker-registry') ;; # for the tests, which start their own
    esac
}

# without_services APT-GET...: what is installed is not started. An answer of the machine's own is left as it is.
without_services() {
    policy=/usr/sbin/policy-rc.d
    [ ! -e "$policy" ] || policy=
    [ -z "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"; }
    ended=0
    DEBIAN_FRONTEND=noninteractive "$@" || ended=$?
    [ -z "$policy" ] || rm -f "$policy"
    return "$ended"
}

# ---- the source ----

# is_formatted: whether clang-format would change nothing.
is_formatted() {
    (cd "$top" && find src tests bench interpreters -name '*.[ch]' -not -path '*/node_modules/*' -print0 |
        xargs -0 -P "$(nproc)" -n 40 clang-format --dry-run -Werror)
}

# ---- the build ----

: "${BUILD:=$top/build}"

# build_tree DIRECTORY [MESON OPTION...]: sets up the directory once, then builds what has changed.
build_tree() {
    directory=$1
    shift
    mkdir -p "$directory"
    if [ ! -f "$directory/build.ninja" ]; then
        rm -rf "$directory/meson-private" # of a set-up that was interrupted
        quietly "$directory/setup.log" meson setup "$directory" "$top" "$@" || return 1
    fi
    quietly "$directory/build.log" ninja -C "$directory"
}

# show_count: of lines like "[12/400] Compiling …" the count, in one place of the terminal.
show_count() {
    while IFS= read -r line; do
        case $line in
        \[*/*\]*) printf '\r      %s]\033[K' "${line%%]*}" ;;
        esac
    done
    printf '\r\033[K'
}

# logged LOG COMMAND...: on a terminal one sees how far it is.
logged() {
    logged_log=$1
    shift
    if [ ! -t 1 ]; then
        "$@" >"$logged_log" 2>&1 </dev/null
        return
    fi
    logged_status=$logged_log.status
    {
        if "$@" 2>&1 </dev/null; then echo 0 >"$logged_status"; else echo $? >"$logged_status"; fi
    } | tee "$logged_log" | show_count
    read -r logged_code <"$logged_status"
    rm -f "$logged_status"
    return "$logged_code"
}

# quietly LOG COMMAND...: shows the output only when the command fails.
quietly() {
    quiet_log=$1
    shift
    if ! logged "$quiet_log" "$@"; then
        grep -vE '^\[[0-9]+/[0-9]+\]|^Compiler for C supports' "$quiet_log" | tail -n 40 | sed 's/^/    /' >&2
        say "    the whole of it: $quiet_log" >&2
        return 1
    fi
}

# ---- the instance ----

# setting NAME DEFAULT: as silt-super would read it, from the environment or the file.
setting() {
    variable=SILT_$(echo "$1" | tr 'a-z.' 'A-Z_')
    eval "value=\${$variable-}"
    conf=${SILT_CONFIG:-/etc/silt/silt.conf}
    if [ -z "$value" ] && [ -r "$conf" ]; then
        value=$(awk -v want="$1" '
            /^[ \t]*[#;]/ { next }
            /^[ \t]*\[/ { gsub(/[][ \t]/, ""); section = $0 "."; next }
            { at = index($0, "="); if (!at) next
              name = substr($0, 1, at - 1); gsub(/[ \t]/, "", name)
              text = substr($0, at + 1); sub(/^[ \t]+/, "", text); sub(/[ \t]+([#;].*)?$/, "", text)
              if (section name == want) print text }' "$conf" | tail -n 1)
    fi
    echo "${value:-$2}"
}

read_settings() {
    instance=$(setting instance silt)
    run_directory=$(setting run /run/silt)
    state=$(setting state /var/lib/silt)
    image_directory=$(setting images "$state/images")
    token_file=$(setting token_file /etc/silt/token)
    user=$(setting user silt)
    log=${SILT_LOG:-/var/log/silt.log}
    unit=$instance
    [ "$instance" = silt ] || unit=silt-$instance
}

has_systemd() {
    [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1
}

# alive PID: a process that has ended and waits to be reaped is not.
alive() {
    [ -r "/proc/$1/status" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}

# super_pid: the running silt-super of this instance, or nothing.
super_pid() {
    [ -r "$run_directory/pid" ] || return 0
    pid=$(cat "$run_directory/pid")
    if alive "$pid" && [ "$(cat "/proc/$pid/comm")" = silt-super ]; then
        echo "$pid"
    fi
}

# api METHOD PATH [CURL OPTION...]: prints the answer's body; fails with its error sentence.
api() {
    method=$1 path=$2
    shift 2
    answer=$(mktemp)
    status=$(printf 'header = "Authorization: Bearer %s"\n' "$(cat "$token_file")" |
        curl --silent --show-error --config - --request "$method" --output "$answer" --write-out '%{http_code}' \
            "$@" "http://$(cat "$run_directory/address")$path") || { rm -f "$answer" && return 1; }
    body=$(cat "$answer")
    rm -f "$answer"
    case $status in
    2*) printf '%s\n' "$body" ;;
    *) printf '%s\n' "$method $path answered $status: $body" >&2 && return 1 ;;
    esac
}

has_image() {
    api GET /v1/images | tr -d ' \n' | grep -qF "\"name\":\"$1\""
}

# {"Labels":{"silt.control":"builtin"}}: in containers of these images the daemon itself answers on the port of the API.
builtin=config=%7B%22Labels%22%3A%7B%22silt.control%22%3A%22builtin%22%7D%7D

# import_image NAME TAR [QUERY]
import_image() {
    api PUT "/v1/images/$1${3-}" --header 'Content-Type: application/x-tar' --header 'Expect:' --upload-file "$2" >/dev/null
}

# is_trusted NAME: whether root has vouched for it (silt-trust). Only to save time: the daemon looks itself.
is_trusted() {
    is_trusted_digest=$(api GET /v1/images | tr -d ' \n' | sed 's/},*/}\n/g' | grep -F "\"name\":\"$1\"" |
        sed -n 's/.*"digest":"\(sha256:\)\{0,1\}\([0-9a-f]\{64\}\)".*/\2/p')
    [ -n "$is_trusted_digest" ] && [ -e "$image_directory/$is_trusted_digest.trusted" ]
}

# trust_image TAR: root unpacks it itself; the import that follows finds the files. Without it contexts of the image only start more slowly.
trust_image() {
    mkdir -p "$image_directory"
    "$BUILD/silt-trust" "$1" || say "      no Python of this image is kept warm"
}

# await SECONDS COMMAND...: until the command succeeds.
await() {
    tries=$(($1 * 20))
    shift
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

answers() {
    [ -r "$run_directory/address" ] && curl --silent --fail --max-time 2 --output /dev/null "http://$(cat "$run_directory/address")/healthz"
}
