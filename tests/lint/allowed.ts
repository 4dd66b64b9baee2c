// The exceptions of the house's lint rules: path -> rule -> reason. A test shows that each is needed.
// Several places need one rule: give each its own line, so that a reader sees how far a rule is bent.

export const ALLOWED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "roles/loopd/model_http.ts": {
    "banned-module": "the port to the model server, through inferproxy's socket alone",
  },
  "shared/boot/process.ts": { "deno-port": "the port of a daemon's own process" },
  "roles/gatewayd/network.ts": { "deno-port": "the port to the Mattermost server" },
  "roles/memoryd/index_port.ts": { "new-worker": "the one place that starts the search Worker" },
  "shared/clock/clock.ts": { "time-and-chance": "the clock port itself" },
  "shared/clock/random.ts": { "time-and-chance": "the random port itself" },
  "roles/egressd/call_socket.ts": { "deno-port": "the port to the network, and a call's socket" },
  "roles/brokerd/runtime/deno_process.ts": { "deno-port": "the port that starts Podman" },
  "shared/disk/deno_disk.ts": { "deno-port": "the disk port itself" },
  "roles/bxctl/deno_terminal.ts": { "deno-port": "the port of the owner's terminal" },
  "shared/tool/deno_tool.ts": { "deno-port": "the port of a tool's own process and files" },
  "shared/wire/codec.ts": { "codec-only": "the one codec" },
  "shared/wire/dial.ts": { "deno-port": "the port that dials sockets" },
  "shared/wire/listen.ts": { "deno-port": "the port that listens on sockets" },
  "tests/boundary/probe.ts": {
    "role-boundary": "tries the computed imports that must be refused",
    "no-storage": "shows that one role's storage is not another's",
  },
  "tests/lint/boxmaker.ts": {
    "default-export": "Deno takes a lint plugin from its default export",
  },
};
