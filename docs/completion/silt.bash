# SPDX-License-Identifier: Apache-2.0
# bash completion for silt(1), also printed by `silt completion bash`. The words come from the program itself.

# bash cuts words at = and at colons: --name=value is joined by leaving the = out, a path in a sandbox is left alone.
_silt() {
    local word=${COMP_WORDS[COMP_CWORD]} line i words=()
    COMPREPLY=()
    [ "$word" != : ] && [ "${COMP_WORDS[COMP_CWORD-1]}" != : ] || return 0
    [ "$word" != = ] || word=
    for ((i = 1; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" = = ] || words+=("${COMP_WORDS[i]}")
    done
    while IFS= read -r line; do
        case $line in
        :directory)
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$word")
            ;;
        :file | :place)
            compopt -o filenames 2>/dev/null
            [ "$line" = :file ] || compopt -o nospace 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
            ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" "$word" 2>/dev/null)
}

complete -F _silt silt
