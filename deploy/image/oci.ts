// The documents of an OCI image with one uncompressed layer, so that the layer's digest is also the
// name of its blob. No clock value is inside: the digest is a function of the files alone.
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { IMAGE_REPOSITORY } from "../../shared/tool/image_files.ts";

export interface Blob {
  readonly sha256: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface OciImage {
  readonly layer: Blob;
  readonly config: Blob;
  readonly manifest: Blob;
  readonly index: Uint8Array<ArrayBuffer>;
  readonly layout: Uint8Array<ArrayBuffer>;
}

const EPOCH = "1970-01-01T00:00:00Z";

/** Wraps a layer. `labels` go into the configuration in the order given. */
export function ociImage(
  layerBytes: Uint8Array<ArrayBuffer>,
  labels: Readonly<Record<string, string>>,
): OciImage {
  const layer = blob(layerBytes);
  const config = blob(encodeCanonical({
    created: EPOCH,
    architecture: "amd64",
    os: "linux",
    config: {
      User: "1000:1000",
      Env: [],
      Entrypoint: ["/bin/deno"],
      WorkingDir: "/tmp",
      Labels: labels,
    },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer.sha256}`] },
    history: [{ created: EPOCH, created_by: "boxmaker image builder" }],
  }));
  const manifest = blob(encodeCanonical({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: described("application/vnd.oci.image.config.v1+json", config),
    layers: [described("application/vnd.oci.image.layer.v1.tar", layer)],
  }));
  const index = encodeCanonical({
    schemaVersion: 2,
    manifests: [{
      ...described("application/vnd.oci.image.manifest.v1+json", manifest),
      annotations: { "org.opencontainers.image.ref.name": `${IMAGE_REPOSITORY}:latest` },
    }],
  });
  return {
    layer,
    config,
    manifest,
    index,
    layout: encodeCanonical({ imageLayoutVersion: "1.0.0" }),
  };
}

function blob(bytes: Uint8Array<ArrayBuffer>): Blob {
  return { sha256: sha256Hex(bytes), bytes };
}

function described(mediaType: string, of: Blob) {
  return { mediaType, digest: `sha256:${of.sha256}`, size: of.bytes.length };
}
