// HTTP/1.1 to the model server through inferproxy's Unix socket; loopd's only way out. One request a
// connection, no redirects, no proxies, nothing kept open behind anybody's back.
import { request } from "node:http";
import { err, messageOf, ok, type Result } from "../../shared/results/result.ts";

export interface HttpCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: Uint8Array<ArrayBuffer>;
  /** Drops the connection. */
  readonly signal: AbortSignal;
  onStatus(status: number): void;
  onBytes(bytes: Uint8Array): void;
}

/**
 * Makes one exchange and resolves when its answer has ended as HTTP says it should. Fails with
 * `model-unreachable` before a status came, with `model-stream-broken` after one.
 */
export type ModelHttp = (call: HttpCall) => Promise<Result<null>>;

export function unixHttp(socketPath: string): ModelHttp {
  return (call) =>
    new Promise((resolve) => {
      if (call.signal.aborted) {
        return resolve(err("model-stream-broken", "The request was dropped"));
      }
      const sent = request({
        socketPath,
        method: call.method,
        path: call.path,
        agent: false,
        headers: {
          host: "model",
          accept: "*/*",
          connection: "close",
          ...(call.body === undefined ? {} : {
            "content-type": "application/json",
            "content-length": String(call.body.length),
          }),
        },
      });
      let hasStatus = false;
      const drop = () => void sent.destroy();
      const finish = (result: Result<null>) => {
        call.signal.removeEventListener("abort", drop);
        sent.destroy();
        resolve(result);
      };
      const fail = (detail: string) =>
        finish(err(hasStatus ? "model-stream-broken" : "model-unreachable", detail));
      call.signal.addEventListener("abort", drop);
      sent.on("response", (response) => {
        hasStatus = true;
        call.onStatus(response.statusCode ?? 0);
        response.on("data", (bytes: Uint8Array) => call.onBytes(bytes));
        response.on("end", () => response.complete ? finish(ok(null)) : fail("Cut short"));
        response.on("error", (thrown: unknown) => fail(messageOf(thrown)));
        response.on("aborted", () => fail("The connection was cut"));
        response.on("close", () => fail("The connection was closed"));
      });
      sent.on("error", (thrown: unknown) => fail(messageOf(thrown)));
      sent.on("close", () => fail("The connection was closed without an answer"));
      sent.end(call.body);
    });
}
