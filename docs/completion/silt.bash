# SPDX-License-Identifier: Apache-2.0
# bash completion for silt(1)

_silt_ids() {
    silt ls --json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4
}

_silt_images() {
    silt image ls 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_silt() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "exec ls info rm image token doctor version help" -- "$word")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" != -- ] || return
    done
    case $previous in
    --token-file)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --server | --session | --cwd | --env | --timeout | --label) return ;;
    esac
    local words="--server --token-file"
    case $command in
    exec)
        words+=" --session --no-session --keep --cwd --env --timeout --"
        [ "$COMP_CWORD" -ne 2 ] || words=$(_silt_ids)
        ;;
    ls) words+=" --label --json" ;;
    info) words+=" --json $(_silt_ids)" ;;
    rm) words+=" $(_silt_ids)" ;;
    image)
        case $COMP_CWORD:${COMP_WORDS[2]} in
        2:*) words="ls build rm" ;;
        3:build) words="base host" ;;
        3:rm) words=$(_silt_images) ;;
        *:build) words+=" --refresh" ;;
        *:ls) words+=" --json" ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _silt silt
