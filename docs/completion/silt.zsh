#compdef silt
# SPDX-License-Identifier: Apache-2.0
# zsh completion for silt(1), also printed by `silt completion zsh`. The words come from the program itself.

_silt() {
    local line
    local -a described places
    for line in "${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        :directory) _files -/ ;;
        :file | :place) _files ;;
        *:$'\t'*) places+=("${line%%$'\t'*}") ;;
        *) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    if (( ${#places} )); then compadd -S '' -a places; fi
    if (( ${#described} )); then _describe silt described; fi
}

if [ "$funcstack[1]" = _silt ]; then
    _silt "$@"
else
    compdef _silt silt
fi
