# Where the real model server and the small real model are kept, for the shell scripts that source
# this file (TypeScript asks `sh deploy/model.sh --where`). Nothing here writes or downloads.
#
# BOXMAKER_CACHE, if set, is the only place. Else root writes to /var/cache/boxmaker, so that the
# ordinary user the house runs as can read it, and others write to their own cache folder; reading
# looks at one's own folder first, then at root's.

LLAMA_RELEASE=11434.0.0
LLAMA_BUILD=11434
LLAMA_TEMPLATE=Qwen-Qwen2.5-7B-Instruct.jinja
SMOLLM2_RELEASE=0.1.2
SMOLLM2_FILE=SmolLM2-135M-Instruct.Q4_1.gguf

# The folder this user's `model` run writes to.
model_dir() {
  if [ -n "${BOXMAKER_CACHE:-}" ]; then
    printf '%s\n' "$BOXMAKER_CACHE"
  elif [ "$(id -u)" = 0 ]; then
    printf '%s\n' /var/cache/boxmaker
  else
    printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/boxmaker"
  fi
}

# avx2 where the processor has AVX2, FMA and F16C; else generic. Part of the folder's name.
llama_flagset() {
  flags=$(sed -n '/^flags/{s/.*://p;q;}' /proc/cpuinfo 2>/dev/null)
  for need in avx2 fma f16c; do
    case " $flags " in
      *" $need "*) ;;
      *) printf 'generic\n'; return 0 ;;
    esac
  done
  printf 'avx2\n'
}

llama_folder() { printf 'llama-server-%s-%s\n' "$LLAMA_BUILD" "$(llama_flagset)"; }
smollm2_folder() { printf 'model-smollm2-%s\n' "$SMOLLM2_RELEASE"; }

# The folders to read from, in order.
model_roots() {
  model_dir
  [ -n "${BOXMAKER_CACHE:-}" ] || printf '%s\n' /var/cache/boxmaker
}

# find_artefact FOLDER FILE: the readable file's path, or failure. A folder is published whole, by
# rename, so a file that is there is complete.
find_artefact() {
  model_roots | while IFS= read -r root; do
    if [ -r "$root/$1/$2" ]; then
      printf '%s\n' "$root/$1/$2"
      break
    fi
  done | grep .
}

llama_server_path() { find_artefact "$(llama_folder)" llama-server; }
chat_template_path() { find_artefact "$(llama_folder)" "$LLAMA_TEMPLATE"; }
smollm2_path() { find_artefact "$(smollm2_folder)" "$SMOLLM2_FILE"; }
