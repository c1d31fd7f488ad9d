# SPDX-License-Identifier: Apache-2.0
# bash completion of stoplog. Words come from `stoplog complete`, which knows
# commands, options, drafts, marks and changed paths.
_stoplog() {
  local cur=${COMP_WORDS[COMP_CWORD]} line
  COMPREPLY=()
  local -a globals=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default 2>/dev/null; return ;;
      :dirs) compopt -o dirnames 2>/dev/null; return ;;
      :command)
        if declare -F _command_offset >/dev/null; then
          local i
          for ((i = 1; i <= COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then
              _command_offset $((i + 1))
              return
            fi
          done
        fi
        compopt -o default 2>/dev/null
        return ;;
      *) [[ $line == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$line")") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _stoplog stoplog
