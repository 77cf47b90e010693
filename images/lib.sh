# Shared by the image recipes and by script/: saying what happens, the cache directory, pinned npm packages.
# Sourced; the caller has set `images` to this directory.

# Where downloads and finished tars are kept between runs.
: "${SILT_CACHE:=/var/cache/silt}"

silt_start=$(date +%s)

elapsed() {
    echo "$(($(date +%s) - silt_start))s"
}

say() {
    printf '%s\n' "$*"
}

# step N TOTAL WHAT: one line of progress with the time since the start.
step() {
    printf '[%s/%s] %s (%s)\n' "$1" "$2" "$3" "$(elapsed)"
}

# indented COMMAND...: shows its output moved to the right, ends as it does.
indented() {
    indented_status=$(mktemp)
    {
        if "$@"; then echo 0 >"$indented_status"; else echo $? >"$indented_status"; fi
    } 2>&1 | sed 's/^/      /'
    read -r indented_code <"$indented_status"
    rm -f "$indented_status"
    return "$indented_code"
}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || die "the program $1 is missing; install the Debian package $2"
}

# The size of a file as people say it.
size_of() {
    stat -c %s "$1" | awk '{ if ($1 >= 1048576) printf "%.0f MiB\n", $1 / 1048576; else printf "%.0f KiB\n", $1 / 1024 }'
}

npm_version() {
    awk -v name="$1" '$1 == name { print $2 }' "$images/npm.txt"
}

# npm_package NAME: prints the path of the package file, fetched once and checked every time.
npm_package() {
    npm_pinned=$(npm_version "$1")
    [ -n "$npm_pinned" ] || die "$1 is not in npm.txt"
    npm_file=$SILT_CACHE/npm/$(echo "$1-$npm_pinned.tgz" | sed 's/^@//; s,/,-,')
    npm_sum=$(awk -v name="$1" '$1 == name { print $3 }' "$images/npm.txt")
    if ! echo "$npm_sum  $npm_file" | sha512sum --check --status 2>/dev/null; then
        npm_fetch "$1@$npm_pinned" "$npm_file" "$npm_sum"
    fi
    echo "$npm_file"
}

# npm itself may be any version and runs on any node: what it brings is checked against the pinned sum.
npm_fetch() {
    command -v npm >/dev/null 2>&1 || die "npm is missing; install the Debian package npm"
    mkdir -p "$SILT_CACHE/npm"
    npm_tmp=$(mktemp -d "$SILT_CACHE/npm/.fetch-XXXXXX")
    if ! (cd "$npm_tmp" && npm pack --silent --ignore-scripts --cache "$npm_tmp/cache" "$1" >out.txt 2>err.txt); then
        sed 's/^/    /' "$npm_tmp/err.txt" >&2
        rm -rf "$npm_tmp"
        die "npm could not fetch $1: check the network and npm's registry setting"
    fi
    if ! echo "$3  $(echo "$npm_tmp"/*.tgz)" | sha512sum --check --status; then
        rm -rf "$npm_tmp"
        die "$1 is not the file that npm.txt pins (wrong sha512): nothing of it was used"
    fi
    mv "$npm_tmp"/*.tgz "$2"
    rm -rf "$npm_tmp"
}

# recipe_key FILE...: a short name for what these files say.
recipe_key() {
    sha256sum "$@" | sed 's, .*/, ,' | sha256sum | cut -c1-16
}
