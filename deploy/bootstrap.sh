#!/bin/sh
# Brings a machine that has Node, npm and apt to a running Boxmaker, and runs it or its checks.
#
#   sh deploy/bootstrap.sh [--no-install] try [ARGUMENT...]   every role, a conversation, a proof
#   sh deploy/bootstrap.sh [--no-install] gate                format, lint, types, every test
#   sh deploy/bootstrap.sh [--no-install] model               a real model server and a small model
#   sh deploy/bootstrap.sh [--no-install] run -- COMMAND...   a command where the gate would run
#
# What is missing is installed, after saying what and why; --no-install refuses instead. Run as root
# it installs, then does the rest as the ordinary user `boxmaker` in a copy of this checkout, because
# no tool may ever run with root behind it; nothing is downloaded as that user. Run as an ordinary
# user it works in place and uses sudo only where sudo asks nothing. A second run changes nothing.
# Exit codes: the command's own; 2 usage, 3 something must be installed or allowed first.
set -eu
umask 022
unset CDPATH
export DENO_NO_UPDATE_CHECK=1

DENO_VERSION=2.9.6
USER_NAME=boxmaker
SUBIDS=65536

say() { printf 'bootstrap: %s\n' "$*" >&2; }
refuse() {
  say "$*"
  exit 3
}
usage() {
  sed -n '3,7s/^# *//p' "$0" >&2
  exit 2
}

here=$(cd -P -- "$(dirname -- "$0")/.." && pwd -P)
may_install=yes
if [ "${1-}" = --no-install ]; then
  may_install=no
  shift
fi
command=${1-}
[ $# -eq 0 ] || shift
case $command in
try | gate) ;;
model)
  [ "$may_install" = yes ] || set -- --no-install "$@"
  exec sh "$here/deploy/model.sh" "$@"
  ;;
run)
  [ "${1-}" = -- ] && [ $# -gt 1 ] || usage
  shift
  ;;
*) usage ;;
esac

is_root() { [ "$(id -u)" = 0 ]; }

# as_root COMMAND...: runs it as root, or says what to run.
as_root() {
  if is_root; then
    "$@"
  elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    refuse "cannot do this without root; run as root: $*"
  fi
}

# logged WHY COMMAND...: runs it quietly; when it fails, its last lines and why are shown.
logged() {
  why=$1 log=$(mktemp)
  shift
  ("$@") >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    rm -f "$log"
    refuse "$why; its last lines stand above"
  }
  rm -f "$log"
}

may() { [ "$may_install" = yes ] || refuse "missing: $1; --no-install was given, so nothing was changed"; }

# The place for what is downloaded once: readable to everyone when root keeps it.
cache_folder() {
  if is_root; then
    printf '%s\n' /var/cache/boxmaker
  else
    printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/boxmaker"
  fi
}

# Certificates that the machine trusts count for npm and Deno too, which bring lists of their own.
trust_system_certificates() {
  bundle=/etc/ssl/certs/ca-certificates.crt
  if [ -z "${NODE_EXTRA_CA_CERTS-}" ] && [ -r "$bundle" ]; then export NODE_EXTRA_CA_CERTS="$bundle"; fi
  export DENO_TLS_CA_STORE="${DENO_TLS_CA_STORE:-mozilla,system}"
}

# --- programs from apt -------------------------------------------------------------------------

install_packages() {
  packages=''
  command -v podman >/dev/null 2>&1 || packages="$packages podman netavark"
  command -v runc >/dev/null 2>&1 || packages="$packages runc"
  command -v newuidmap >/dev/null 2>&1 || packages="$packages uidmap"
  [ -n "$packages" ] || return 0
  say "missing:$packages"
  say "  each tool call runs in a fresh rootless container: podman and runc start it, uidmap gives it a"
  say "  user namespace of its own; netavark only keeps apt from choosing larger network packages"
  may "$packages"
  say "installing them with apt (about 80 MB on disk)"
  logged "apt-get could not read its lists" as_root apt-get -qq update
  # shellcheck disable=SC2086  # a list of package names
  logged "apt-get could not install$packages" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y install --no-install-recommends $packages
}

# --- Deno --------------------------------------------------------------------------------------

# is_pinned FILE: a real Deno binary of the pinned version (a script wrapper would stay in front of
# the roles and keep their signals).
is_pinned() {
  [ -x "$1" ] && [ "$(NO_COLOR=1 "$1" --version 2>/dev/null | sed -n '1s/^deno \([0-9.]*\).*/\1/p')" = "$DENO_VERSION" ] &&
    [ "$(NO_COLOR=1 "$1" eval -p 'Deno.execPath()' 2>/dev/null)" = "$(realpath "$1")" ]
}

# Prints the binary's path when it is there and may be run by the user that will run it.
find_deno() {
  own=$(cache_folder)/deno-$DENO_VERSION/node_modules
  roots=/var/cache/boxmaker/deno-$DENO_VERSION/node_modules
  for candidate in "$own/deno/deno" "$own"/@deno/linux-*/deno "$roots/deno/deno" \
    "$(command -v deno || true)"; do
    if is_root; then case $(realpath "$candidate" 2>/dev/null) in /root/*) continue ;; esac fi
    if is_pinned "$candidate"; then
      realpath "$candidate"
      return 0
    fi
  done
  return 1
}

install_deno() {
  if deno=$(find_deno); then return 0; fi
  say "missing: Deno $DENO_VERSION, the runtime of every role and the wall around it"
  may "Deno $DENO_VERSION"
  command -v npm >/dev/null 2>&1 || refuse "npm is missing; Deno comes from it: install Node and npm"
  folder=$(cache_folder)/deno-$DENO_VERSION
  say "installing it with npm into $folder (about 95 MB)"
  mkdir -p "$folder"
  logged "npm could not install deno@$DENO_VERSION" \
    npm install --prefix "$folder" --no-save --no-audit --no-fund "deno@$DENO_VERSION"
  chmod -R go+rX "$folder"
  deno=$(find_deno) || refuse "npm installed deno@$DENO_VERSION, but no binary of that version is in $folder"
}

# --- packages of the lock file ------------------------------------------------------------------

# install_modules FOLDER: node_modules exactly as the lock file says; done once per lock file.
install_modules() {
  stamp=$1/node_modules/.boxmaker-lock
  wanted=$(cat "$1/deno.lock" "$1/deno.json" | sha256sum | cut -d' ' -f1)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  may "the packages of deno.lock"
  say "fetching the packages of deno.lock"
  logged "deno ci could not fetch the packages of deno.lock" env -C "$1" NO_COLOR=1 "$deno" ci
  printf '%s\n' "$wanted" >"$stamp"
}

# --- the ordinary user --------------------------------------------------------------------------

# ensure_subids USER: rootless containers need a range of subordinate ids.
ensure_subids() {
  for kind in uid gid; do
    ! grep -q "^$1:" "/etc/sub$kind" 2>/dev/null || continue
    may "subordinate ids for the user $1"
    first=$(awk -F: 'BEGIN { top = 100000 } $2 + $3 > top { top = $2 + $3 } END { print top }' \
      "/etc/sub$kind" 2>/dev/null || echo 100000)
    say "giving $1 subordinate ${kind}s $first to $((first + SUBIDS - 1)), for user namespaces of containers"
    as_root usermod "--add-sub${kind}s" "$first-$((first + SUBIDS - 1))" "$1"
  done
}

ensure_user() {
  if ! id "$USER_NAME" >/dev/null 2>&1; then
    say "missing: an ordinary user; tools must never run with root behind them"
    may "the user $USER_NAME"
    say "creating the user $USER_NAME (no login)"
    useradd --create-home --shell /usr/sbin/nologin "$USER_NAME"
  fi
  ensure_subids "$USER_NAME"
  user_home=$(getent passwd "$USER_NAME" | cut -d: -f6)
  [ -d "$user_home" ] || install -d -m 700 -o "$USER_NAME" -g "$(id -g "$USER_NAME")" "$user_home"
}

# Names the checkout's files, each ended by a NUL: what is tracked or could be, and still exists.
checkout_files() {
  if git -c safe.directory='*' -C "$here" rev-parse --git-dir >/dev/null 2>&1; then
    (cd "$here" && git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
      xargs -0 sh -c 'for f; do if [ -e "$f" ] || [ -h "$f" ]; then printf "%s\0" "$f"; fi; done' sh)
  else
    (cd "$here" && find . -mindepth 1 \( -path ./.git -o -path ./node_modules -o -path ./build -o -path ./.cache \) \
      -prune -o ! -type d -print0)
  fi
}

# The checkout as an archive whose bytes follow from names, contents, modes and where links lead.
pack_checkout() {
  checkout_files | sort -z |
    tar -C "$here" --null --no-recursion --mtime=@0 --owner=0 --group=0 --numeric-owner -T - -cf -
}

# Copies the checkout to a folder of the user's, named by where it is and what it holds: what runs
# from an earlier copy is never disturbed, and an unchanged checkout is not copied again.
copy_checkout() {
  copies=$user_home/checkout
  place=$(printf '%s' "$here" | sha256sum | cut -c1-8)
  holds=$({ pack_checkout && echo "$deno"; } | sha256sum | cut -c1-8)
  copy=$copies/$place-$holds
  if [ ! -d "$copy" ]; then
    say "copying $here to $copy, where $USER_NAME can read it"
    new=$copies/.new-$place-$holds
    rm -rf "$new"
    mkdir -p "$new"
    pack_checkout | tar -C "$new" --no-same-owner -xf -
    printf '%s\n' "$deno" >"$new/.deno-path"
    install_modules "$new"
    chown -R "$USER_NAME:" "$new"
    mv -T "$new" "$copy"
  fi
  chown "$USER_NAME:" "$copies"
  chmod 700 "$copies"
  touch "$copy"
  remove_old_copies
}

# Removes earlier copies of this checkout, but for the newest three and those that a process uses.
remove_old_copies() {
  for old in $(ls -1dt "$copies/$place-"* | tail -n +4); do
    grep -Fqs "$old" /proc/[0-9]*/cmdline || readlink /proc/[0-9]*/cwd | grep -Fq "$old" || rm -rf "$old"
  done
}

# become_user COMMAND...: in the copy, as the user, with an empty environment.
become_user() {
  set -- "HOME=$user_home" "USER=$USER_NAME" "LOGNAME=$USER_NAME" LANG=C.UTF-8 \
    DENO_NO_UPDATE_CHECK=1 \
    "PATH=$(dirname "$deno"):/usr/local/bin:/usr/bin:/bin" "$@"
  for name in TERM CI NO_COLOR BOXMAKER_HOME BOXMAKER_LLAMA_URL BOXMAKER_MATTERMOST_URL \
    BOXMAKER_MATTERMOST_OWNER_ID BOXMAKER_MATTERMOST_TOKEN_FILE BOXMAKER_MATTERMOST_CA_FILE \
    BOXMAKER_CACHE; do
    eval "value=\${$name-}"
    [ -z "$value" ] || set -- "$name=$value" "$@"
  done
  cd "$copy"
  exec setpriv --reuid="$USER_NAME" --regid="$(id -g "$USER_NAME")" --init-groups env -i "$@"
}

# --- the commands -------------------------------------------------------------------------------

trust_system_certificates
install_packages
install_deno
if is_root; then
  ensure_user
  # One copy at a time; the lock goes away with the process, and is not passed on.
  mkdir -p /var/cache/boxmaker
  exec 9>/var/cache/boxmaker/bootstrap.lock
  flock 9
  copy_checkout
  exec 9>&-
  if [ "$command" = run ]; then become_user "$@"; fi
  become_user sh "$copy/deploy/bootstrap.sh" --no-install "$command" "$@"
fi

ensure_subids "$(id -un)"
install_modules "$here"
printf '%s\n' "$deno" >"$here/.deno-path"
cd "$here"
case $command in
run)
  PATH=$(dirname "$deno"):$PATH
  exec "$@"
  ;;
gate | try)
  say "building the tool image"
  "$deno" run -A deploy/image/main.ts build --out build/image >/dev/null
  exec "$deno" task -q "$command" "$@"
  ;;
*) usage ;;
esac
