// Where each post of gatewayd's must stand, judged by the key it carries: under the root of the message
// that it answers, or, for what the house says by itself, at the top level.
import type { Post } from "./mattermost/model.ts";

/**
 * The root that a post with this key must have; undefined when any will do, as when the root is gone.
 * `sessionOf` names the session of an outbox item, as far as it is known.
 */
export function placeByKey(
  post: (id: string) => Post | null,
  sessionOf: (item: number) => string | undefined = () => undefined,
): (message: string, key: string) => string | undefined {
  const standing = (id: string) => {
    const root = post(id);
    return root === null || root.delete_at > 0 ? undefined : id;
  };
  return (message, key) => {
    const plain = key.replace(/^x+/, "");
    if (/^[hms]\d+$/.test(plain)) return "";
    const item = /^o(\d+)-/.exec(plain)?.[1];
    if (item !== undefined) {
      const session = sessionOf(Number(item));
      return session?.startsWith("mm-") === true ? standing(session.slice(3)) : undefined;
    }
    const asked = post(/^[dafe]([a-z0-9]{26})(?:-\d+)*$/.exec(plain)?.[1] ?? "");
    if (asked === null) return undefined;
    if (message.startsWith("A new conversation")) return "";
    return standing(asked.root_id === "" ? asked.id : asked.root_id);
  };
}
