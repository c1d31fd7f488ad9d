# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the hostile tests share, to be sourced after lib.sh.
#
#   attack() { case_ FS-01; J 'echo x > /etc/x; echo RAN'; ran; lacks ...; }
#   everywhere attack
#
# `everywhere` runs a function as root and as an ordinary user, each over a
# plain directory (jailrun: the walls alone) and, where stoplog has a mount, in
# a draft. Inside: $P the workspace, $C a canary directory outside of it, $OUT
# what the last commands printed, $REPORT their outcome in jailrun's words.
export ADAPTER=${ADAPTER:-plain}

# The command as root runs as this host id, which must own a plain workspace.
JAIL_ID=65533

J() { JX '' "$1"; }
# JX LIMITS COMMAND: limits as jailrun's -l takes them, separated by blanks.
JX() {
  local limit args=()
  for limit in $1; do
    if [ "$ADAPTER" = plain ]; then
      args+=(-l "$limit")
    else
      args+=("--${limit%%=*}" "${limit#*=}")
    fi
  done
  run_in_jail "${args[@]}" -- sh -c "$2" </dev/null >>"$OUT" 2>&1 || RC=$?
}
# REPLACE=exec: in place of this (sub)shell, so that $! is the program's pid.
# LAUNCH: a program that starts it.
run_in_jail() {
  RC=0
  if [ "$ADAPTER" = plain ]; then
    ${REPLACE:-} ${LAUNCH:-} "$BUILD/tests/jailrun" -w "$P" -R "$REPORT" ${JAILRUN_OPTIONS:-} "$@"
  else
    ${REPLACE:-} ${LAUNCH:-} "$STOPLOG" --workspace "$P" run --quiet --report "$REPORT" "$@"
  fi
}
# The outcome's field: killed_by, exit, refused_pids, wall_ms, cpu_ms...
outcome() {
  if [ "$ADAPTER" = plain ]; then
    tr ' ' '\n' <"$REPORT" | sed -n "s/^$1=//p"
  else
    case $1 in
      refused_pids) jq -r '.refused.pids' "$REPORT" ;;
      held_*) jq -r ".held.${1#held_}" "$REPORT" ;;
      *) jq -r ".$1 // \"-\"" "$REPORT" ;;
    esac
  fi
}

case_() {
  CASE=$1
  echo "  $CASE"
  : >"$OUT"
  RC=0
}
show() { echo "$CASE: $1" >&2; sed 's/^/    /' "$OUT" >&2; }
has() { grep -qE -- "$1" "$OUT" || { show "no «$1»"; fail "$CASE"; }; }
lacks() { if grep -qE -- "$1" "$OUT"; then show "«$1»"; fail "$CASE"; fi; }
# The attack came to its end: without this a check proves nothing.
# Not at the start of a line: the two streams are relayed each by itself, and a
# message on stderr may be cut in two by it.
ran() { has 'RAN$'; }

helpers() {
  mkdir -p "$P/helpers"
  local source
  for source in "$TOP"/tests/system/jail/*.c; do
    gcc -O1 -static -o "$P/helpers/$(basename "$source" .c)" "$source"
  done
}

prepare_attack() {
  P=$PWD
  C=$T/canary-$ADAPTER OUT=$T/out-$ADAPTER REPORT=$T/report-$ADAPTER
  mkdir -p "$C" "$P/sub"
  echo CANARY >"$C/canary"
  mkdir -p "$HOME"/{.ssh,.aws,.config/gh,.docker}
  local secret
  for secret in .ssh/id_decoy .aws/credentials .netrc .git-credentials \
    .config/gh/hosts.yml .docker/config.json .npmrc; do
    echo DECOYSECRET >"$HOME/$secret"
  done
  if [ "$MODE" = root ] && [ "$ADAPTER" = plain ]; then
    chown -R "$JAIL_ID:$JAIL_ID" "$P"
  fi
}

with_adapter() {
  prepare_attack
  "$ATTACK"
}

everywhere() {
  export ATTACK=$1
  local adapter
  for adapter in ${ADAPTERS:-plain draft}; do
    if [ "$adapter" = draft ]; then
      { : <>/dev/fuse; } 2>/dev/null || { echo 'no /dev/fuse: walls alone'; continue; }
      "$STOPLOG" run --help >/dev/null 2>&1 || { echo 'no run yet'; continue; }
      needs jq
    fi
    export ADAPTER=$adapter
    echo "== $adapter"
    ATTACK_$adapter
  done
}
ATTACK_plain() { both_modes with_adapter; rm -rf "$T/w-with_adapter" "$T/user/w-with_adapter"; }
ATTACK_draft() { both_modes with_adapter; }
