# SPDX-License-Identifier: Apache-2.0
# bash completion of stoplog. Words come from `stoplog __complete`, which knows
# commands, options, drafts, marks, commits and changed paths.
_stoplog() {
  # Split at blanks alone: bash splits at '@', ':' and '=' as well, which are
  # parts of marks and options.
  local line=${COMP_LINE:0:COMP_POINT} word about kept strip quote='' i
  # A quote within single ones; what double ones do not keep from history.
  local end_quote="'\\''" bang="\"'!'\""
  local -a words lines
  # Without -r: a blank behind a backslash is part of a word.
  # shellcheck disable=SC2162
  read -a words <<<"$line"
  [[ $line == *[[:blank:]] ]] && words+=('')
  word=${words[${#words[@]} - 1]}
  # What stands before the part that bash replaces ($2) is not to be given again.
  kept=${2//\\/}
  if [[ $word == [\"\']* ]]; then
    quote=${word:0:1} word=${word:1} kept=${kept#[\"\']}
    words[${#words[@]} - 1]=$word
  fi
  strip=${word%"$kept"}
  mapfile -t lines < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case ${lines[0]} in
    :files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "${word#"$strip"}")
      ;;
    :dirs)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "${word#"$strip"}")
      ;;
    :command)
      for ((i = 1; i <= COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
        elif ((COMP_CWORD == i + 1)); then
          mapfile -t COMPREPLY < <(compgen -c -- "$kept")
        else
          compopt -o default 2>/dev/null
        fi
        return
      done
      compopt -o default 2>/dev/null
      ;;
    :words)
      while IFS=$'\t' read -r word about; do
        word=${word#"$strip"}
        case $quote in
          '') printf -v word '%q' "$word" ;;
          \') word=${word//\'/$end_quote} ;;
          \")
            word=${word//[\\]/\\\\}
            word=${word//\"/\\\"} word=${word//\$/\\\$}
            word=${word//\`/\\\`} word=${word//!/$bang}
            ;;
        esac
        COMPREPLY+=("$word")
      done < <(printf '%s\n' "${lines[@]:1}")
      [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == "''" ]] && COMPREPLY=()
      ;;
  esac
}
complete -F _stoplog stoplog
