#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `cmake --install` and the .deb put everything where a distribution would, and
# the maintainer scripts do no harm.
. "$(dirname "$0")/lib.sh" || exit 1
needs cmake cpack dpkg-deb readelf

# --- cmake --install beneath a prefix of one's own
cmake --install "$BUILD" --prefix "$T/prefix" >"$T/log" 2>&1 ||
  fail "install: $(cat "$T/log")"
same "$(sha256sum <"$STOPLOG")" "$(sha256sum <"$T/prefix/bin/stoplog")"
test -f "$T/prefix/etc/apparmor.d/stoplog"
test -f "$T/prefix/share/doc/stoplog/README.md"

# --- the package
(cd "$BUILD" && cpack -B "$T/package" >"$T/log" 2>&1) ||
  fail "cpack: $(cat "$T/log")"
deb=$(echo "$T"/package/stoplog_*.deb)
dpkg-deb -c "$deb" >"$T/contents"
has() {
  grep -qE " \./$1( |\$)" "$T/contents" ||
    fail "not in the package: $1; it holds: $(cat "$T/contents")"
}
has usr/bin/stoplog
has etc/apparmor.d/stoplog
has usr/share/doc/stoplog/copyright
has usr/share/doc/stoplog/README.md
has usr/share/doc/stoplog/THREAT-MODEL.md
not grep -E ' \./(usr/local|tmp|home|work|root)' "$T/contents"
not grep -vE ' root/root ' "$T/contents"
for source in "$TOP"/man/*.[15].scd; do
  [ -e "$source" ] || continue
  page=$(basename "$source" .scd)
  has "usr/share/man/man${page##*.}/$page\\.gz"
done
[ ! -e "$TOP/completions/stoplog.bash" ] ||
  has usr/share/bash-completion/completions/stoplog

dpkg-deb --ctrl-tarfile "$deb" | tar x -C "$T"
same /etc/apparmor.d/stoplog "$(cat "$T/conffiles")"
# The program needs no library where it could be linked so.
if readelf -d "$STOPLOG" | grep -q NEEDED; then
  grep -q '^Depends: .*libc6' "$T/control"
else
  not grep '^Depends:' "$T/control"
fi
sh -n "$T/postinst"
sh -n "$T/postrm"

# --- what postinst says and does, over an /etc of its own
[ "$(id -u)" -eq 0 ] || skip 'the maintainer scripts are tried as root only'
mkdir -p "$T/etc/apparmor.d"
cp "$TOP/packaging/apparmor" "$T/etc/apparmor.d/stoplog"
# awk and others are reached through it.
cp -a /etc/alternatives "$T/etc/"
mount --bind "$T/etc" /etc
sh "$T/postinst" configure >"$T/said"
[ -L /etc/apparmor.d/disable/stoplog ] ||
  fail 'an old parser would read the profile'
mkdir -p /etc/apparmor.d/abi
touch /etc/apparmor.d/abi/4.0
sh "$T/postinst" configure >"$T/said"
[ ! -L /etc/apparmor.d/disable/stoplog ] || fail 'the profile stayed off'
if [ -e /dev/fuse ] && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
  grep -q 'only root can use stoplog' "$T/said"
fi
sh "$T/postrm" remove
