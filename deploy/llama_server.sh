#!/bin/sh
# Becomes llama-server with the small real model on 127.0.0.1, as fetched by deploy/model.sh.
#
#   sh deploy/llama_server.sh [--port N] [--port-file FILE] [--context N] [--slots N] [--threads N]
#
# Without --port the kernel picks a free one. Ready when the log on stderr says
# "listening on http://127.0.0.1:PORT" (the model is loaded then); with --port-file the port is also
# written to FILE, by rename, at that moment. This process becomes the server: stop it by its pid.
# It ends with the process that started it, so no server is left behind. Exit 3: `model` has not run.
set -eu
here=$(dirname "$0")
# shellcheck source=deploy/model_paths.sh
. "$here/model_paths.sh"

port=0 port_file='' context=16384 slots=2 threads=1
while [ $# -gt 0 ]; do
  case "$1" in
    --port) port=$2 ;;
    --port-file) port_file=$2 ;;
    --context) context=$2 ;;
    --slots) slots=$2 ;;
    --threads) threads=$2 ;;
    *) echo "Cannot start llama-server: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

if ! server=$(llama_server_path) || ! model=$(smollm2_path) || ! template=$(chat_template_path); then
  echo "Cannot start llama-server as it is not built: run sh deploy/bootstrap.sh model" >&2
  exit 3
fi

set -- "$server" --model "$model" --alias smollm2-135m --jinja --chat-template-file "$template" \
  --host 127.0.0.1 --port "$port" --ctx-size "$context" --parallel "$slots" --threads "$threads" \
  --batch-size 512 --slots --metrics --no-ui --offline --log-colors off
if [ -z "$port_file" ]; then
  exec setpriv --pdeathsig TERM "$@"
fi

# The log passes through a reader that publishes the port; it ends when the server closes stderr.
rm -f "$port_file"
fifo=$(mktemp -u "${TMPDIR:-/tmp}/boxmaker-llama.XXXXXX")
mkfifo -m 600 "$fifo"
(
  trap '' INT TERM
  while IFS= read -r line; do
    printf '%s\n' "$line" >&2
    case "$line" in
      *"listening on http://127.0.0.1:"*)
        printf '%s\n' "${line##*:}" > "$port_file.new"
        mv "$port_file.new" "$port_file"
        ;;
    esac
  done < "$fifo"
) &
exec 2> "$fifo"
rm -f "$fifo"
exec setpriv --pdeathsig TERM "$@"
