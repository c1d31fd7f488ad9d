# SPDX-License-Identifier: Apache-2.0
# fish completion of stoplog. Words come from `stoplog __complete`.
function __stoplog_words
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path "$current"
        case :dirs
            __fish_complete_directories "$current"
        case :command
            set -l at (contains -i -- -- $words)
            and __fish_complete_subcommand --fcs-skip=(math $at)
            or __fish_complete_path "$current"
        case :words
            test (count $lines) -gt 1
            and printf '%s\n' $lines[2..-1]
    end
end
complete -c stoplog -f -a '(__stoplog_words)'
