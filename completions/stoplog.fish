# SPDX-License-Identifier: Apache-2.0
# fish completion of stoplog. Words come from `stoplog __complete`.
function __stoplog_words
    set -l words (commandline -opc)
    # As it is meant: without a quote that is still open, and without backslashes.
    set -l current (commandline -ct | string replace -r '^["\']' '' | string unescape)
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
