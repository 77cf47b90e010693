# SPDX-License-Identifier: Apache-2.0
# fish completion for silt(1), also printed by `silt completion fish`. The words come from the program itself.

function __silt_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :directory
                __fish_complete_directories $word
            case :file :place
                __fish_complete_path $word
            case '*'
                echo $line
        end
    end
end

complete -c silt -f -a '(__silt_complete)'
