#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What developers run works inside out of the box, under the default limits:
# compilers, interpreters, debuggers, sanitizers, and toolchains of HOME.
# ctest: serial
# ctest: timeout 900
. "$(dirname "$0")/lib.sh" || exit 1
. "$TOP/tests/system/jail/adapter.sh"

# works NAME PROGRAM PATTERN COMMAND: skipped by name when PROGRAM is missing.
works() {
  case_ "$1"
  command -v "$2" >/dev/null || {
    echo "    no $2 here"
    return 0
  }
  # A draft has its defaults; the walls alone have none.
  if [ "$ADAPTER" = draft ]; then J "$4"; else JX 'memory=4G pids=512 time=600s' "$4"; fi
  has "$3"
}

# A toolchain beneath HOME, as its manager lays it out, with a credential
# beside it that must not come along.
fake_toolchains() {
  mkdir -p "$HOME"/.pyenv/{shims,bin,versions/9.9/bin} "$HOME"/.cargo/bin \
    "$HOME"/.rustup/toolchains/nightly/bin "$HOME"/.nvm/versions/node/v99/bin
  printf '#!/bin/sh\nexec "%s/.pyenv/versions/9.9/bin/pythonx"\n' "$HOME" >"$HOME/.pyenv/shims/pythonx"
  printf '#!/bin/sh\necho python-9.9\n' >"$HOME/.pyenv/versions/9.9/bin/pythonx"
  printf '#!/bin/sh\nexec "$HOME/.rustup/toolchains/nightly/bin/cargox"\n' >"$HOME/.cargo/bin/rustup"
  printf '#!/bin/sh\necho cargo-nightly\n' >"$HOME/.rustup/toolchains/nightly/bin/cargox"
  printf '#!/bin/sh\necho node-v99\n' >"$HOME/.nvm/versions/node/v99/bin/nodex"
  # As rustup and pipx have it: links to what does the work.
  ln -sf rustup "$HOME/.cargo/bin/cargox"
  mkdir -p "$HOME"/.local/bin "$HOME"/.local/share/pipx/venvs/p/bin
  printf '#!/bin/sh\necho pipxed\n' >"$HOME/.local/share/pipx/venvs/p/bin/pipxed"
  chmod +x "$HOME/.local/share/pipx/venvs/p/bin/pipxed"
  ln -sf "$HOME/.local/share/pipx/venvs/p/bin/pipxed" "$HOME/.local/bin/pipxed"
  chmod +x "$HOME"/.pyenv/shims/* "$HOME"/.pyenv/versions/9.9/bin/* \
    "$HOME"/.cargo/bin/* "$HOME"/.rustup/toolchains/nightly/bin/* \
    "$HOME"/.nvm/versions/node/v99/bin/*
  echo DECOYSECRET >"$HOME/.cargo/credentials.toml"
  chmod -R a+rX "$HOME"
  PATH=$HOME/.cargo/bin:$HOME/.pyenv/shims:$HOME/.pyenv/bin:$HOME/.nvm/versions/node/v99/bin:$HOME/.local/bin:/usr/local/bin:/usr/bin:/bin
  export PATH
}

# Packages that were fetched before are there, to read and to add to; nothing
# else of the real home is, and nothing is written to it.
caches() {
  case_ 'package caches'
  mkdir -p "$HOME"/.npm/_cacache/index "$HOME"/.cache/{pip/http,private} \
    "$HOME"/.m2/repository "$HOME"/.cargo/registry/cache "$HOME"/elsewhere
  echo npm-warm >"$HOME/.npm/_cacache/index/x"
  echo pip-warm >"$HOME/.cache/pip/http/x"
  echo crate-warm >"$HOME/.cargo/registry/cache/x"
  local secret
  for secret in .cache/private/x .npm/_logs .m2/settings.xml .m2/settings-security.xml \
    .cargo/credentials .cargo/credentials.toml .config/x .bash_history elsewhere/x \
    elsewhere/uv; do
    echo DECOYSECRET >"$HOME/$secret"
  done
  # Links in a cache, and a cache that is one: no way to anything else.
  ln -s "$HOME/.ssh/id_decoy" "$HOME/.npm/_cacache/absolute"
  ln -s ../../.ssh/id_decoy "$HOME/.npm/_cacache/relative"
  ln -s ../../.ssh "$HOME/.npm/_cacache/directory"
  ln -s ../elsewhere "$HOME/.cache/uv"
  ln -s elsewhere "$HOME/go"
  local before
  before=$(cd "$HOME" && find . -printf '%p %y %m %s %T@ %l\n' | sort)
  J 'cat ~/.npm/_cacache/index/x ~/.cache/pip/http/x ~/.cargo/registry/cache/x
     cd ~ && find . | sort; find ~ ~/.npm/_cacache/* -type f -exec cat {} + 2>/dev/null
     cat .npm/_cacache/absolute .npm/_cacache/relative .npm/_cacache/directory/id_decoy .cache/uv/x go/x .npmrc .ssh/id_decoy .config/x .cargo/credentials
     echo added >.npm/_cacache/index/y && echo more >>.npm/_cacache/index/x && mkdir .cache/private && echo own >.cache/private/x && cat .cache/private/x
     echo mine >.m2/settings.xml && chmod 600 .cargo/registry/cache/x && mv .cargo/registry .cargo/moved && cat .cargo/moved/cache/x
     rm -r .cache/pip && ls -A .cache; mkdir go && rm -r .m2/repository && echo RAN'
  ran
  has '^npm-warm$'
  has '^pip-warm$'
  has '^crate-warm$'
  has '^own$'
  lacks 'DECOYSECRET|_logs|elsewhere$|bash_history|credentials$|^\./\.ssh|^\./\.config'
  J 'cat ~/.npm/_cacache/index/x ~/.npm/_cacache/index/y ~/.m2/settings.xml ~/.cargo/moved/cache/x; ls -A ~/.cache ~/.cargo'
  has '^more$'
  has '^added$'
  has '^mine$'
  lacks DECOYSECRET
  same "$before" "$(cd "$HOME" && find . -printf '%p %y %m %s %T@ %l\n' | sort)" "$CASE: the real home"
  # A fork and a collection know what they stand over.
  "$STOPLOG" --workspace "$P" fork other >/dev/null
  [ "$("$STOPLOG" --workspace "$P" -d other run --quiet -- sh -c 'cat ~/.cargo/moved/cache/x ~/.npm/_cacache/index/y')" = \
    "$(printf 'crate-warm\nadded')" ] || fail "$CASE: the fork"
  # Another HOME beneath the same draft: what was held stays, no more shows.
  mkdir -p "$T/other-home/.npm/_cacache"
  echo other >"$T/other-home/.npm/_cacache/z"
  : >"$OUT"
  HOME=$T/other-home J 'cat ~/.npm/_cacache/z ~/.npm/_cacache/index/y; cat ~/.cache/pip/http/x; echo RAN'
  ran
  has '^other$'
  has '^added$'
  lacks pip-warm
  rm -r "$HOME"/.cargo "$HOME/go"
}

# The same version inside as outside, of whatever is on the caller's PATH.
same_versions() {
  local tool
  case_ 'the same versions'
  # The tests' HOME is not the one that the toolchains are installed in.
  [ ! -r /root/.rustup ] || export RUSTUP_HOME=/root/.rustup
  [ ! -r /root/.pyenv ] || export PYENV_ROOT=/root/.pyenv
  for tool in python3 node npm cargo rustc gcc cmake java git pyenv perl go ruby; do
    command -v "$tool" >/dev/null || continue
    "$tool" --version >"$T/outside" 2>&1 || continue
    echo "    $tool"
    : >"$OUT"
    J "$tool --version"
    cmp -s "$T/outside" "$OUT" || {
      show "$tool: outside $(head -n 1 "$T/outside")"
      fail "$CASE"
    }
  done
}

attack() {
  [ "$ADAPTER" = plain ] || caches
  same_versions
  fake_toolchains
  case_ 'toolchains of HOME'
  J 'pythonx; cargox; nodex; pipxed; cat ~/.cargo/credentials.toml; touch ~/.cargo/mine && echo WRITABLE; echo x > ~/.pyenv/x || echo READONLY; echo RAN'
  ran
  has '^python-9.9$'
  has '^cargo-nightly$'
  has '^node-v99$'
  has '^pipxed$'
  has WRITABLE
  has READONLY
  lacks DECOYSECRET

  printf 'int main(void) { void *volatile p = __builtin_malloc(100); p = 0; return 0; }\n' >"$P/leak.c"
  [ "$MODE" = user ] || [ "$ADAPTER" = draft ] || chown "$JAIL_ID" "$P/leak.c"
  works 'leak checking' gcc 'detected memory leaks' \
    'gcc -g -fsanitize=address leak.c -o leak && ./leak'
  works gdb gdb 'exited normally' \
    'gcc -g leak.c -o plain && gdb -nx -batch -ex run ./plain 2>&1'
  works strace strace '^[0-9]+ +execve' \
    'strace -f -o /tmp/trace true && head -n 1 /tmp/trace'
  works cmake cmake 'BUILT' \
    'printf "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(x leak.c)\n" >CMakeLists.txt
     cmake -S . -B b >/dev/null && make -C b >/dev/null && b/x && echo BUILT'
  works 'node with WebAssembly' node '^wasm 5$' 'node -e "
const b=new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);
const m=[];for(let i=0;i<20;i++)m.push(new WebAssembly.Memory({initial:1,maximum:65536}));
WebAssembly.instantiate(b).then(r=>console.log(\"wasm\",r.instance.exports.add(2,3)))"'
  works npm npm '^[0-9]+\.' 'npm --version'
  works java java '^hello user' \
    'printf "public class H { public static void main(String[] a) { System.out.println(\"hello user\"); } }" >H.java && java H.java'
  works 'python and certificates' python3 "'x509_ca': [1-9]" \
    'python3 -c "import ssl,sqlite3,ctypes,venv;print(ssl.create_default_context().cert_store_stats())"'
  works 'git commit' git 'committed' \
    'mkdir r && cd r && git init -q && echo x >f && git add f && git -c user.name=n -c user.email=e commit -qm committed && git log --format=%s'
  works 'the user has a name' id '^(user|stoplog-test)$' 'whoami'
  works 'locale and time zone' locale 'UTF-8' 'LC_ALL=C.UTF-8 locale; date +%Z'
  works 'a server on loopback' python3 '^200$' \
    'python3 -m http.server 8123 >/dev/null 2>&1 &
     for i in $(seq 300); do
       python3 -c "import urllib.request;print(urllib.request.urlopen(\"http://localhost:8123/\").status)" && break
       sleep 0.1
     done'
  works 'many processes' make 'MADE' \
    'printf "all: $(seq -s " " 40 | sed "s/[0-9]*/t&/g")\nt%%:\n\t@sleep 0.01\n" >M; make -j8 -f M && echo MADE'
}
everywhere attack
