// Files: uploads of both kinds, their bytes and their descriptions.
import { isMember } from "./channels.ts";
import { type RestAnswer, type RouteCall } from "./exchange.ts";
import { type FileInfo, newId, Refusal } from "./model.ts";
import { FORBIDDEN, INVALID_BODY } from "./posts.ts";
import type { Route } from "./routes.ts";
import type { World } from "./world.ts";

export interface NewFile {
  readonly userId: string;
  readonly channelId: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array;
}

export function addFile(world: World, file: NewFile): FileInfo {
  const { maxFileSize, filesAllowed } = world.knobs();
  if (!filesAllowed) throw new Refusal(403, "api.file.attachments.disabled.app_error");
  if (file.bytes.length > maxFileSize) {
    throw new Refusal(413, "api.file.upload_file.too_large_detailed.app_error");
  }
  if (!isMember(world, file.channelId, file.userId)) throw new Refusal(403, FORBIDDEN);
  const at = world.tick();
  const info: FileInfo = {
    id: newId(),
    user_id: file.userId,
    channel_id: file.channelId,
    post_id: "",
    create_at: at,
    update_at: at,
    delete_at: 0,
    name: file.name,
    extension: file.name.includes(".") ? file.name.split(".").at(-1) ?? "" : "",
    size: file.bytes.length,
    mime_type: file.type,
    width: 0,
    height: 0,
    has_preview_image: false,
    archived: false,
  };
  world.store.putBytes(info.id, file.bytes);
  world.store.files.set(info.id, info);
  return info;
}

async function fromForm(world: World, call: RouteCall, type: string): Promise<FileInfo[]> {
  const form = await new Response(call.request.bytes, { headers: { "content-type": type } })
    .formData();
  const keys = [...form.keys()];
  const channelId = form.get("channel_id");
  const isOrdered = keys.indexOf("channel_id") < keys.indexOf("files");
  if (typeof channelId !== "string" || !isOrdered) throw new Refusal(400, INVALID_BODY);
  const infos: FileInfo[] = [];
  for (const part of form.getAll("files")) {
    if (typeof part === "string") throw new Refusal(400, INVALID_BODY);
    const bytes = new Uint8Array(await part.arrayBuffer());
    const { name, type: mime } = part;
    infos.push(addFile(world, { userId: call.me.id, channelId, name, type: mime, bytes }));
  }
  return infos;
}

async function upload(world: World, call: RouteCall): Promise<RestAnswer> {
  const { bytes, headers, query } = call.request;
  if (bytes.length === 0) throw new Refusal(400, INVALID_BODY);
  const type = headers["content-type"] ?? "";
  if (type.startsWith("multipart/form-data")) {
    const infos = await fromForm(world, call, type);
    return { status: 201, body: { file_infos: infos, client_ids: [] } };
  }
  if (type === "" || type.startsWith("application/x-www-form-urlencoded")) {
    throw new Refusal(400, INVALID_BODY);
  }
  const info = addFile(world, {
    userId: call.me.id,
    channelId: query.get("channel_id") ?? "",
    name: query.get("filename") ?? "",
    type,
    bytes,
  });
  return { status: 201, body: { file_infos: [info], client_ids: [] } };
}

function readable(world: World, call: RouteCall): FileInfo {
  const info = world.store.files.get(call.part("file"));
  if (info === undefined) throw new Refusal(404, "app.file_info.get.app_error");
  const isIn = info.user_id === call.me.id || isMember(world, info.channel_id, call.me.id);
  if (!isIn) throw new Refusal(403, FORBIDDEN);
  return info;
}

const SAFE_TYPES = ["image/jpeg", "image/png", "image/gif", "text/plain", "application/pdf"];

export function fileRoutes(world: World): Route[] {
  return [
    { method: "POST", path: "/files", run: (call) => upload(world, call) },
    {
      method: "GET",
      path: "/files/:file",
      run: (call) => {
        const info = readable(world, call);
        const bytes = world.store.bytesOf(info.id);
        if (bytes === null) throw new Refusal(404, "api.file.get_file.app_error");
        const type = SAFE_TYPES.includes(info.mime_type) ? info.mime_type : "text/plain";
        const headers = {
          "Content-Type": type,
          "Content-Disposition": `attachment;filename*=UTF-8''${encodeURIComponent(info.name)}`,
        };
        return { status: 200, body: null, bytes: new Uint8Array(bytes), headers };
      },
    },
    {
      method: "GET",
      path: "/files/:file/info",
      run: (call) => ({ status: 200, body: readable(world, call) }),
    },
  ];
}
