// A program in a network of its own: nothing of the machine's is reachable there, loopback is up, and
// names are looked up at a resolver on 127.0.0.1. Works as root and as an ordinary user. A watched
// network has a way out as well, which leads nowhere, and every packet on it is written down.
const SHARE = Deno.uid() === 0 ? ["-mn"] : ["-Urmn"];
const INTO = 'set -e; ip link set lo up; printf "nameserver 127.0.0.1\\n" >"$1/resolv.conf"; ' +
  'mount --bind "$1/resolv.conf" /etc/resolv.conf; shift; exec "$@"';

/** Why no such network can be made here, or null. */
export const NO_NETWORK = await reason();

async function reason(): Promise<string | null> {
  try {
    const ran = await inPrivateNetwork(["/bin/true"]);
    return ran.success ? null : "no network namespace can be made here";
  } catch {
    return "unshare is not installed";
  }
}

/** Runs a program to its end in a fresh network. */
export async function inPrivateNetwork(
  argv: readonly string[],
): Promise<{ success: boolean; out: string; err: string }> {
  const folder = await Deno.makeTempDir({ prefix: "bxn" });
  try {
    const { success, stdout, stderr } = await new Deno.Command("unshare", {
      args: [...SHARE, "/bin/sh", "-c", INTO, "sh", folder, ...argv],
      env: { PATH: `${Deno.env.get("PATH") ?? ""}:/usr/sbin:/sbin`, DENO_NO_UPDATE_CHECK: "1" },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { success, out: text(stdout), err: text(stderr) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const ASIS = ["--map-user", String(Deno.uid()), "--map-group", String(Deno.gid()), "--keep-caps"];
const WATCH_SHARE = Deno.uid() === 0 ? ["-mn"] : ["-Umn", ...ASIS];

/** Why no watched network can be made here, or null. */
export const NO_WATCH = NO_NETWORK ?? await watchReason();

async function watchReason(): Promise<string | null> {
  const { success } = await new Deno.Command("unshare", {
    args: [...WATCH_SHARE, "/bin/sh", "-c", "ip link add v0 type veth peer name v1"],
    env: { PATH: `${Deno.env.get("PATH") ?? ""}:/usr/sbin:/sbin` },
    stdin: "null",
    stderr: "null",
  }).output();
  return success ? null : "no network with a way out of its own can be made here";
}

const WATCHER = decodeURIComponent(new URL("packets.ts", import.meta.url).pathname);
/** An address of the wide world that lies on this network's own loopback. */
export const PUBLIC = "93.184.216.34";
const WATCHED = `set -e
folder=$1 deno=$2; shift 2
ip link set lo up
ip addr add ${PUBLIC} dev lo
ip link add v0 type veth peer name v1
ip addr add 198.18.5.1/30 dev v0
ip -6 addr add fd77::1/64 dev v0 nodad
ip link set v0 arp off up
ip link set v1 arp off up
ip route add default via 198.18.5.2 dev v0 onlink
ip -6 route add default via fd77::2 dev v0 onlink
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
printf 'nameserver 127.0.0.1\\n' >"$folder/resolv.conf"
mount --bind "$folder/resolv.conf" /etc/resolv.conf
"$deno" run -A --quiet "${WATCHER}" "$folder/packets" &
watcher=$!
i=0
while ! grep -qs watching "$folder/packets"; do i=$((i + 1)); [ $i -lt 1200 ] || exit 1; sleep 0.05; done
status=0
"$@" || status=$?
sleep 0.2
kill $watcher
exit $status
`;

/**
 * Runs a program, without any capability, in a fresh watched network. `user`, for root alone, is who
 * it runs as. `packets`: whom anything there spoke to, as `tcp ADDRESS:PORT` and the like.
 */
export async function inWatchedNetwork(
  argv: readonly string[],
  user: { readonly name: string; readonly home: string } | null,
): Promise<{ success: boolean; out: string; err: string; packets: string[] }> {
  const folder = await Deno.makeTempDir({ prefix: "bxn" });
  const become = user === null ? [] : ["--reuid", user.name, "--regid", user.name, "--init-groups"];
  const path = `${
    Deno.execPath().replace(/\/[^/]*$/, "")
  }:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`;
  const home = user?.home ?? Deno.env.get("HOME") ?? "/tmp";
  const env = ["env", "-i", `HOME=${home}`, `PATH=${path}`, "DENO_NO_UPDATE_CHECK=1"];
  try {
    const { success, stdout, stderr } = await new Deno.Command("unshare", {
      args: [
        ...[...WATCH_SHARE, "/bin/sh", "-c", WATCHED, "sh", folder, Deno.execPath()],
        ...["setpriv", ...become, "--inh-caps=-all", "--ambient-caps=-all", ...env, ...argv],
      ],
      env: { PATH: path, DENO_NO_UPDATE_CHECK: "1" },
      stdin: "null",
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    const lines = (await Deno.readTextFile(`${folder}/packets`)).trim().split("\n").slice(1);
    return { success, out: text(stdout), err: text(stderr), packets: lines };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
