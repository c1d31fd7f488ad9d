#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rules by path hold on every route to a file: its name, a renamed parent, a new
# link, a symlink. Denials are counted and handed up.
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/fs/mount.sh"
needs_fuse

rules() {
  local b=$T/rules-base m=$T/rules-m
  mkdir -p "$b"/{secrets/deep,app,vendor/lib,keys,plain}
  echo SECRET >"$b/secrets/deep/token"
  echo SECRET >"$b/app/.env"
  echo SECRET >"$b/keys/server.pem"
  echo lib >"$b/vendor/lib/x.c"
  echo SECRET >"$b/plain/private.db"
  echo open >"$b/plain/open"
  echo SECRET-of-two-names >"$b/keys/two.pem"
  ln "$b/keys/two.pem" "$b/plain/two"
  ln "$b/vendor/lib/x.c" "$b/plain/other.c"
  mkdir "$b/ci"
  echo real >"$b/ci/run.yml"
  fs_mount "$b" "$m" --way "$1" --hide secrets --read-only vendor/ \
    --read-only 'ci/*.yml' --deny '*.db' --default-masks

  # to warm names is no attempt at any of them
  "$STOPLOG" daemon --warm "$m"
  same '' "$(fs_ask denials)"

  # masked and read-only by a name that no rule speaks of, before the other one
  # was looked at; its size too
  not grep SECRET "$m/plain/two"
  test -s "$m/plain/two"
  same "$(stat -c %s "$m/plain/two")" "$(wc -c <"$m/plain/two")"
  not sh -c "echo x >>'$m/plain/two'"
  not sh -c "echo x >>'$m/plain/other.c'"
  not chmod 600 "$m/plain/other.c"
  same lib "$(cat "$m/plain/other.c")"

  # hide: as if it were not there, and not to be put there either
  not ls "$m/secrets"
  not cat "$m/secrets/deep/token"
  same '' "$(find "$m" -maxdepth 1 -name secrets)"
  not mkdir "$m/secrets"
  not touch "$m/secrets"

  # mask: there, with other content, not to be changed
  not grep -r SECRET "$m/app" "$m/keys"
  test -s "$m/app/.env"
  same "$(stat -c %s "$m/app/.env")" "$(wc -c <"$m/app/.env")"
  not sh -c "echo x >>'$m/app/.env'"
  not sh -c "echo x >'$m/keys/server.pem'"
  mv "$m/app" "$m/app2"
  not grep -r SECRET "$m/app2"
  if ln "$m/app2/.env" "$m/plain/linked"; then
    not grep SECRET "$m/plain/linked"
  fi
  if mv "$m/keys/server.pem" "$m/plain/moved"; then
    not grep SECRET "$m/plain/moved"
  fi
  ln -s ../app2/.env "$m/plain/sym"
  not grep SECRET "$m/plain/sym"
  if cp "$m/app2/.env" "$m/plain/copied"; then
    not grep SECRET "$m/plain/copied"
  fi

  # what the draft makes itself is not masked, also by that name
  echo own >"$m/app2/.env.local"
  same own "$(cat "$m/app2/.env.local")"
  echo own2 >"$m/app2/draft"
  mv "$m/app2/draft" "$m/app2/new.pem"
  same own2 "$(cat "$m/app2/new.pem")"
  not mv "$m/app2/new.pem" "$m/app2/.env"
  rm "$m/app2/new.pem" "$m/app2/.env.local"

  # read-only
  same lib "$(cat "$m/vendor/lib/x.c")"
  not sh -c "echo x >'$m/vendor/lib/x.c'"
  not touch "$m/vendor/lib/new"
  not rm "$m/vendor/lib/x.c"
  not chmod 600 "$m/vendor/lib/x.c"
  not mv "$m/vendor/lib/x.c" "$m/plain/x.c"

  # nor made elsewhere and brought there with its directory, open or not, nor
  # taken away with it
  not mv "$m/ci" "$m/was"
  mkdir "$m/made"
  echo evil >"$m/made/run.yml"
  exec 8<>"$m/made/run.yml"
  not mv -T "$m/made" "$m/ci"
  not mv "$m/made/run.yml" "$m/ci/new.yml"
  mv "$m/made" "$m/ci/old2"
  echo more >&8
  exec 8>&-
  not mv "$m/ci/old2/run.yml" "$m/ci"
  not rm -r "$m/ci"
  same real "$(cat "$m/ci/run.yml")"

  # deny: the name shows, nothing else
  not cat "$m/plain/private.db"
  mv "$m/plain" "$m/plain2"
  not cat "$m/plain2/private.db"

  same open "$(cat "$m/plain2/open")"
  echo edited >"$m/plain2/open"
  local denials
  denials=$(fs_ask denials)
  case $denials in *private.db*) ;; *) fail "denials: $denials" ;; esac
  fs_unmount
  same SECRET "$(cat "$b/app/.env")"
}

if [ "$(id -u)" -eq 0 ]; then rules privileged; fi
ordinary() { rules fusermount; }
run_as_user ordinary
