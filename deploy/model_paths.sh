# Where the real model server and the small real model are kept, for the shell scripts that source
# this file (TypeScript asks `sh deploy/model.sh --where`). Nothing here writes or downloads.
#
# Writing: BOXMAKER_CACHE if set; else /var/cache/boxmaker for root, so that the ordinary user the
# house runs as can read it; else the user's own cache folder. Reading looks at the folder that
# would be written first, then at root's, and takes the first complete one.

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

# find_artefact FOLDER FILE: the readable file's path, or failure. A folder is published whole, by
# rename, so a file that is there is complete.
find_artefact() {
  for root in "$(model_dir)" /var/cache/boxmaker; do
    if [ -r "$root/$1/$2" ]; then
      printf '%s\n' "$root/$1/$2"
      return 0
    fi
  done
  return 1
}

llama_server_path() { find_artefact "$(llama_folder)" llama-server; }
chat_template_path() { find_artefact "$(llama_folder)" "$LLAMA_TEMPLATE"; }
smollm2_path() { find_artefact "$(smollm2_folder)" "$SMOLLM2_FILE"; }
