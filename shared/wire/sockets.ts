// Every socket of the house: who listens on it and who alone may dial it. A socket's path is its
// caller's identity, so there is one socket per pair and none is shared. Permission flags, the
// launcher's folders and the boundary tests all read this table.

export const ROLES = [
  "gatewayd",
  "loopd",
  "inferproxy",
  "brokerd",
  "egressd",
  "memoryd",
  "bxctl",
] as const;
export type Role = (typeof ROLES)[number];

type Row = { readonly server: Role; readonly caller: Role };

export const SOCKETS = {
  "gateway-loop/loop": { server: "loopd", caller: "gatewayd" },
  "owner-loop/admin": { server: "loopd", caller: "bxctl" },
  "loop-infer/infer": { server: "inferproxy", caller: "loopd" },
  "loop-broker/broker": { server: "brokerd", caller: "loopd" },
  "broker-gateway/broker": { server: "brokerd", caller: "gatewayd" },
  "broker-memory/broker": { server: "brokerd", caller: "memoryd" },
  "owner-broker/admin": { server: "brokerd", caller: "bxctl" },
  "broker-gateway/gateway": { server: "gatewayd", caller: "brokerd" },
  "owner-gateway/admin": { server: "gatewayd", caller: "bxctl" },
  "broker-egress/egress": { server: "egressd", caller: "brokerd" },
  "loop-memory/memory": { server: "memoryd", caller: "loopd" },
  "broker-memory/memory": { server: "memoryd", caller: "brokerd" },
  "owner-memory/admin": { server: "memoryd", caller: "bxctl" },
} as const satisfies Record<string, Row>;
export type SocketName = keyof typeof SOCKETS;

/** The socket's absolute path below an absolute home. */
export function socketPath(home: string, name: SocketName): string {
  return `${home}/run/${name}.sock`;
}

const names = Object.keys(SOCKETS).filter(isSocketName);

/** Whether `text` names a socket of the house. */
export function isSocketName(text: string): text is SocketName {
  return Object.hasOwn(SOCKETS, text);
}

/** Names of the sockets `role` listens on, in table order. */
export function servedBy(role: Role): SocketName[] {
  return names.filter((name) => SOCKETS[name].server === role);
}

/** Names of the sockets `role` dials, in table order. */
export function calledBy(role: Role): SocketName[] {
  return names.filter((name) => SOCKETS[name].caller === role);
}
