// Writes down whom anything in this network speaks to: one line in the file named first for each
// destination of a TCP connection, a UDP packet or an ICMP message, on every interface, loopback too.
// Answers to what was seen before are no line. Needs the right to open a packet socket.
const AF_PACKET = 17;
const SOCK_RAW = 3;
const ALL_PROTOCOLS = 0x0300; // 3, in network order
const [path] = Deno.args;
if (path === undefined) throw new Error("name a file");

const libc = Deno.dlopen("libc.so.6", {
  socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
  recv: { parameters: ["i32", "buffer", "usize", "i32"], result: "isize", nonblocking: true },
});
const socket = libc.symbols.socket(AF_PACKET, SOCK_RAW, ALL_PROTOCOLS);
if (socket < 0) throw new Error("no packet socket");

const known = new Set<string>();
const told = new Set<string>();
function tell(line: string): void {
  if (told.has(line)) return;
  told.add(line);
  Deno.writeTextFileSync(path ?? "", `${line}\n`, { append: true });
}

function address(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const words = Array.from(
    { length: 8 },
    (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  return `[${words.join(":")}]`;
}

function look(packet: Uint8Array): void {
  const type = ((packet[12] ?? 0) << 8) | (packet[13] ?? 0);
  const ip = packet.subarray(14);
  if (type === 0x0800) {
    const start = ((ip[0] ?? 0) & 15) * 4;
    note(ip[9] ?? 0, ip.subarray(12, 16), ip.subarray(16, 20), ip.subarray(start));
  } else if (type === 0x86dd) {
    note(ip[6] ?? 0, ip.subarray(8, 24), ip.subarray(24, 40), ip.subarray(40));
  }
}

function note(protocol: number, from: Uint8Array, to: Uint8Array, body: Uint8Array): void {
  if (protocol !== 6 && protocol !== 17) {
    // A neighbour or router is looked for by the kernel itself; whoever is reached shows anyway.
    const isKernels = protocol === 58 && [133, 135, 136, 143].includes(body[0] ?? 0);
    const isReport = protocol === 0 || protocol === 2;
    if (!isKernels && !isReport) tell(`protocol ${protocol} ${address(to)}`);
    return;
  }
  const port = (at: number) => ((body[at] ?? 0) << 8) | (body[at + 1] ?? 0);
  const source = `${address(from)}:${port(0)}`;
  const target = `${address(to)}:${port(2)}`;
  if (protocol === 6) {
    const flags = (body[13] ?? 0) & 0x12;
    if (flags === 0x02) tell(`tcp ${target}`);
    return;
  }
  known.add(`${source} ${target}`);
  if (!known.has(`${target} ${source}`)) tell(`udp ${target}`);
}

Deno.writeTextFileSync(path, "watching\n");
const buffer = new Uint8Array(65_536);
for (;;) {
  const length = Number(await libc.symbols.recv(socket, buffer, BigInt(buffer.length), 0));
  if (length > 14) look(buffer.subarray(0, length));
}
