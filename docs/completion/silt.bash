# SPDX-License-Identifier: Apache-2.0
# bash completion for silt(1)

_silt_ids() {
    silt ls --json 2>/dev/null | grep -o '"id":"[^"]*"' | cut -d'"' -f4
}

_silt_images() {
    silt image ls 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# id of a sandbox -> ids of its processes
_silt_processes() {
    silt ps "$1" --all 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# What cp takes: ID: or a local path. bash cuts words at colons: a path in a sandbox is left alone.
_silt_place() {
    [ "$1" != : ] && [ "$2" != : ] || return
    compopt -o filenames -o nospace
    mapfile -t COMPREPLY < <(compgen -W "$(_silt_ids | sed 's/$/:/')" -- "$1"; compgen -f -- "$1")
}

# The words that are no options, from the second on: how many are complete.
_silt_plain() {
    local i n=0
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -s | --signal | --server | --token-file) i=$((i + 1)) ;;
        -*) ;;
        *) n=$((n + 1)) ;;
        esac
    done
    echo "$n"
}

_silt() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "exec run create shell ps logs kill cp git-clone watch ls info net expose unexpose ports open stop start restart pause resume update rm image tls new wrangler-env token doctor version help" -- "$word")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" != -- ] || return
    done
    case $previous in
    --token-file | --directory)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    -s | --signal)
        mapfile -t COMPREPLY < <(compgen -W "TERM KILL INT HUP QUIT USR1 USR2 STOP CONT" -- "$word")
        return
        ;;
    --event)
        mapfile -t COMPREPLY < <(compgen -W "create modify delete move_from move_to attrib" -- "$word")
        return
        ;;
    --server | --session | --shell | --cwd | --env | --timeout | --label | --name | --user | --token | --branch | --depth | --include | --exclude) return ;;
    esac
    local words="--server --token-file"
    case $command in
    exec)
        words+=" --session --no-session --keep --cwd --env --timeout --"
        [ "$COMP_CWORD" -ne 2 ] || words=$(_silt_ids)
        ;;
    run)
        words+=" -d --name --session --cwd --env --user --timeout --"
        [ "$(_silt_plain)" -ne 0 ] || words+=" $(_silt_ids)"
        ;;
    shell)
        words+=" --session --shell"
        [ "$(_silt_plain)" -ne 0 ] || words+=" $(_silt_ids)"
        ;;
    ps)
        words+=" --all --json"
        [ "$(_silt_plain)" -ne 0 ] || words+=" $(_silt_ids)"
        ;;
    logs | kill)
        [ "$command" = logs ] && words+=" -f --stdout --stderr" || words+=" -s --all"
        case $(_silt_plain) in
        0) words+=" $(_silt_ids)" ;;
        *)
            for ((i = 2; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in -*) ;; *) words+=" $(_silt_processes "${COMP_WORDS[i]}")"; break ;; esac
            done
            ;;
        esac
        ;;
    cp)
        case $word in
        --*) ;;
        *)
            _silt_place "$word" "$previous"
            return
            ;;
        esac
        ;;
    git-clone)
        words+=" --branch --depth --timeout"
        [ "$(_silt_plain)" -ne 0 ] || words+=" $(_silt_ids)"
        ;;
    watch)
        words+=" --include --exclude --event --flat --json"
        [ "$(_silt_plain)" -ne 0 ] || words+=" $(_silt_ids)"
        ;;
    create)
        case $previous in
        --image) words=$(_silt_images) ;;
        --type) words="lite basic standard-1 standard-2 standard-3 standard-4" ;;
        --network) words="none public allow" ;;
        *) words+=" --image --type --network --allow --env --label --sleep-after --stop-after --ttl --keep-alive --ephemeral --json" ;;
        esac
        ;;
    ls) words+=" --label --json" ;;
    net)
        case $previous in
        --mode) words="none public allow" ;;
        --allow) words="" ;;
        *) words+=" --mode --allow --json $(_silt_ids)" ;;
        esac
        ;;
    expose) words+=" --name --token --private --json $(_silt_ids)" ;;
    info | ports | unexpose | open) words+=" --json $(_silt_ids)" ;;
    stop | start | restart | pause | resume) words+=" --json $(_silt_ids)" ;;
    update)
        words+=" --cpu --memory --disk --pids --env --label --network --allow --sleep-after --stop-after --ttl"
        words+=" --keep-alive --keep-processes --remove-after-stop --json $(_silt_ids)"
        ;;
    rm) words+=" $(_silt_ids)" ;;
    new)
        case $previous in
        -t | --template) words="minimal code-interpreter ai-code-executor data-analysis code-review-bot test-pipeline agent" ;;
        *) words+=" --template $(compgen -d -- "$word")" ;;
        esac
        ;;
    wrangler-env) words+=" --no-account" ;;
    tls)
        [ "$COMP_CWORD" -ne 2 ] && words="--directory --print-ca" || words=dev
        ;;
    image)
        case $COMP_CWORD:${COMP_WORDS[2]} in
        2:*) words="ls build import export pull tag commit prune rm" ;;
        3:build) words="base host -t --tag -f --file --build-arg --target --network --no-cache" ;;
        *:export) words+=" -o --output --format $(_silt_images) $(compgen -f -- "$word")" ;;
        3:rm | 3:tag) words=$(_silt_images) ;;
        3:commit) words=$(_silt_ids) ;;
        *:build) words+=" --refresh -t --tag -f --file --build-arg --target --network --no-cache $(compgen -d -- "$word")" ;;
        *:import) words+=" --image --format $(compgen -f -- "$word")" ;;
        *:pull) words+=" --name --user --password-stdin" ;;
        *:ls) words+=" --json" ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _silt silt
