import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

/** What the client says it is; the gateway takes it for an official SDK. */
export const userAgent = "Modelgate/JS 1";

/** The types of error that the gateway makes; "" where it did not make the error. */
export type ErrorType = components["schemas"]["ErrorDetail"]["type"] | "";

/** A response that is not a success. */
export class ModelgateError extends Error {
  constructor(
    /** Of HTTP. */
    readonly status: number,
    /** What to match on. */
    readonly type: ErrorType,
    message: string,
    /** X-Gateway-Request-Id. */
    readonly requestID: string,
    /** Seconds to wait; 0 where the response does not say. */
    readonly retryAfter: number,
  ) {
    super(message);
    this.name = "ModelgateError";
  }
}

export interface Options {
  /** The gateway's address, without /gw. */
  baseURL: string;
  key: string;
  /** In place of the global fetch. */
  fetch?: typeof fetch;
  /** Milliseconds that a request may take. By default a minute, except for model calls and exports, which have no limit. */
  timeout?: number;
}

/** The self-service API, /gw, and the model doors, for one key. */
export interface Modelgate extends Client<paths> {
  /** Posts a body to a model door, such as /v1/chat/completions; attribution says what the call is for. */
  call(door: string, body: unknown, attribution?: Record<string, string>): Promise<Response>;
}

/** Makes a client. A response that is not a success is thrown as a ModelgateError. */
export function modelgate(options: Options): Modelgate {
  const base = options.baseURL.replace(/\/+$/, "");
  const headers = { authorization: `Bearer ${options.key}`, "user-agent": userAgent };
  const send = async (request: Request): Promise<Response> => {
    const path = request.url.slice(base.length).replace(/\?.*/, "");
    const limit = options.timeout ?? (path.startsWith("/gw/") && path !== "/gw/evidence" ? 60_000 : undefined);
    const signals = limit === undefined ? [request.signal] : [request.signal, AbortSignal.timeout(limit)];
    const response = await (options.fetch ?? fetch)(request, { signal: AbortSignal.any(signals) });
    if (response.status >= 300) throw await failure(response);
    return response;
  };
  return {
    ...createClient<paths>({ baseUrl: base, headers, fetch: send }),
    call(door, body, attribution) {
      const more = attribution === undefined ? {} : { "x-gateway-attribution": JSON.stringify(attribution) };
      return send(new Request(base + door, {
        method: "POST", headers: { ...headers, ...more, "content-type": "application/json" }, body: JSON.stringify(body),
      }));
    },
  };
}

/** The body of a response: `const me = await body(gateway.GET("/gw/me"))`. */
export async function body<T>(response: Promise<{ data?: T }>): Promise<T> {
  return (await response).data as T;
}

/** Walks a list to its end: `pages((page) => gateway.GET("/gw/usage", { params: { query: { since: "24h", ...page } } }))`. */
export async function* pages<T>(
  get: (page: { cursor?: string }) => Promise<{ data?: T[] | { data: T[]; next_cursor: string }; response: Response }>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  for (;;) {
    const { data = [], response } = await get(cursor === undefined ? {} : { cursor });
    const [rows, next] = Array.isArray(data) ? [data, response.headers.get("x-next-cursor") ?? ""] : [data.data, data.next_cursor];
    yield* rows;
    if (next === "") return;
    if (next === cursor) throw new Error("the cursor of a list does not advance");
    cursor = next;
  }
}

async function failure(response: Response): Promise<ModelgateError> {
  let type: ErrorType = "";
  let message = response.statusText || `status ${response.status}`;
  try {
    const envelope = JSON.parse(await response.text()) as { error?: { type?: ErrorType; message?: string } };
    type = envelope.error?.type ?? "";
    message = envelope.error?.message ?? message;
  } catch {
    // The gateway did not make this error; only its status is known.
  }
  return new ModelgateError(
    response.status, type, message, response.headers.get("x-gateway-request-id") ?? "", Number(response.headers.get("retry-after") ?? 0) || 0,
  );
}
