# SPDX-License-Identifier: Apache-2.0
# fish completion of stoplog. Words come from `stoplog complete`.
function __stoplog_words
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..-1] 2>/dev/null)
    switch "$lines[1]"
        case :files :command
            __fish_complete_path (commandline -ct)
        case :dirs
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $lines
    end
end
complete -c stoplog -f -a '(__stoplog_words)'
