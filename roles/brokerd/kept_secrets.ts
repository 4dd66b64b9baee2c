// The secrets that brokerd keeps itself, one owner-only file each in `{home}/broker/secrets/`. The owner
// types one into bxctl, which holds no file permission; nothing ever gives it back.
import type { Secrets } from "../../shared/config/fields.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, makeFolders, replaceFile } from "../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";

type KeptSecrets = {
  readonly disk: Disk;
  readonly home: string;
  readonly secrets: Secrets;
  /** Puts on record that a secret is set, before it is. */
  readonly record: (name: string) => Result<unknown>;
};

/**
 * Writes the secret `name`; whether there was one before. Fails with `secret-missing` when brokerd.toml
 * does not name its file here, `request-invalid` when the value is not one line of text.
 */
export function keepSecret(place: KeptSecrets, name: string, bytes: Uint8Array): Result<boolean> {
  const { disk, home } = place;
  const folder = `${home}/broker/secrets`;
  const path = `${folder}/${name}`;
  const source = place.secrets[name];
  if (source === undefined || !("file" in source) || source.file !== path) {
    const line = `${name} = { file = "${path}" }`;
    return err("secret-missing", `Write ${line} under [secrets] of brokerd.toml and restart it`);
  }
  const text = decodeUtf8(bytes);
  if (!text.ok || text.value === "" || /[\0\r\n]/.test(text.value)) {
    return err("request-invalid", `The secret ${name} must be one line of text`);
  }
  const said = place.record(name);
  if (!said.ok) return said;
  const made = makeFolders(disk, folder);
  if (!made.ok) return made;
  const before = attempt(() => disk.lstat(path));
  const written = replaceFile(disk, path, bytes);
  return written.ok ? ok(before.ok) : written;
}
