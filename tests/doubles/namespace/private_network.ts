// A program in a network of its own: nothing of the machine's is reachable there, loopback is up, and
// names are looked up at a resolver on 127.0.0.1. Works as root and as an ordinary user.
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
