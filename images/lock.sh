# Packages that a package-lock.json pins. Sourced behind lib.sh; the caller sets `lock` and `out`.

# field NAME FIELD: of a package in the lock file, which npm writes one field to a line.
field() {
    awk -v package="\"node_modules/$1\":" -v field="\"$2\":" '
        $1 == package { inside = 1 }
        inside && $1 == field { gsub(/[",]/, "", $2); print $2; exit }' "$lock"
}

hex_of() {
    echo "${1#sha512-}" | base64 -d | od -An -v -tx1 | tr -d ' \n'
}

# unpack NAME FILE...: these files of the package, into $out.part/NAME.
unpack() {
    name=$1
    shift
    version=$(field "$name" version)
    sum=$(hex_of "$(field "$name" integrity)")
    file=$SILT_CACHE/npm/$(echo "$name-$version.tgz" | sed 's/^@//; s,/,-,')
    echo "$sum  $file" | sha512sum --check --status 2>/dev/null || npm_fetch "$name@$version" "$file" "$sum"
    mkdir -p "$out.part/$name"
    for path in "$@"; do
        set -- "$@" "package/$path"
        shift
    done
    tar -xzf "$file" -C "$out.part/$name" --strip-components=1 --no-same-owner --no-same-permissions package/package.json "$@"
}

# begin_packages: an empty $out.part, and a cache that can be written.
begin_packages() {
    [ -w "$SILT_CACHE" ] || mkdir -p "$SILT_CACHE" 2>/dev/null || SILT_CACHE=$(dirname "$out")/cache
    rm -rf "$out" "$out.part"
    mkdir -p "$out.part"
}
