/** What the client says it is; the gateway takes it for an official SDK. */
export const userAgent = "Modelgate/JS 1";

/** The types of error that the gateway makes; "" where it did not make the error. */
export type ErrorType =
  | "bad_request" | "unauthorized" | "forbidden" | "region_policy" | "budget_exceeded" | "insufficient_balance" | "not_found"
  | "conflict" | "gone" | "request_too_large" | "rate_limited" | "bad_gateway" | "unavailable" | "internal" | "internal_error" | "";

/** An answer that is none of success. */
export class ModelgateError extends Error {
  constructor(
    /** Of HTTP. */
    readonly status: number,
    /** What to match on. */
    readonly type: ErrorType,
    message: string,
    /** X-Gateway-Request-Id. */
    readonly requestID: string,
    /** Seconds to wait; 0 where the answer does not say. */
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
  /** Milliseconds that a request may take. By default a minute, but model calls and exports take as long as they take. */
  timeout?: number;
}

/** How requests are made. */
export class Transport {
  readonly #base: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;
  readonly #timeout: number | undefined;

  constructor(options: Options) {
    this.#base = options.baseURL.replace(/\/+$/, "");
    this.#key = options.key;
    this.#fetch = options.fetch ?? fetch;
    this.#timeout = options.timeout;
  }

  /** Makes a request; an answer that is no success is thrown as a ModelgateError. */
  protected send(method: string, path: string, query?: object, body?: unknown): Promise<Response> {
    return this.#request(method, path, query, body, {}, this.#timeout ?? 60_000);
  }

  /** The same for an answer that is read as it comes. */
  protected open(method: string, path: string, query?: object, body?: unknown, more: Record<string, string> = {}): Promise<Response> {
    return this.#request(method, path, query, body, more, this.#timeout);
  }

  async #request(method: string, path: string, query: object | undefined, body: unknown, more: Record<string, string>, timeout: number | undefined): Promise<Response> {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined) params.set(name, String(value));
    }
    const search = params.size > 0 ? `?${params}` : "";
    const headers: Record<string, string> = { ...more, authorization: `Bearer ${this.#key}`, "user-agent": userAgent };
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await this.#fetch(this.#base + path + search, {
      method, headers,
      ...(timeout === undefined ? {} : { signal: AbortSignal.timeout(timeout) }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.status >= 300) throw await failure(response);
    return response;
  }

  protected async json<T>(method: string, path: string, query?: object, body?: unknown): Promise<T> {
    return (await (await this.send(method, path, query, body)).json()) as T;
  }

  /** Walks a list to its end, page by page. */
  protected async *pages<T>(method: string, path: string, query: object = {}, body?: unknown): AsyncGenerator<T> {
    let cursor: string | undefined;
    for (;;) {
      const asked: object = cursor === undefined ? query : { ...query, cursor };
      const response = await this.send(method, path, asked, body);
      const page = (await response.json()) as T[] | { data: T[]; next_cursor: string };
      const [entries, next] = Array.isArray(page) ? [page, response.headers.get("x-next-cursor") ?? ""] : [page.data, page.next_cursor];
      yield* entries;
      if (next === "") return;
      if (next === cursor) throw new Error("the list's cursor does not move on");
      cursor = next;
    }
  }

  /** Posts a body to a model door, such as /v1/chat/completions; attribution says what the call is for. */
  call(door: string, body: unknown, attribution?: Record<string, string>): Promise<Response> {
    const more: Record<string, string> = attribution === undefined ? {} : { "x-gateway-attribution": JSON.stringify(attribution) };
    return this.open("POST", door, undefined, body, more);
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
    // Not the gateway's own error: its status has to do.
  }
  return new ModelgateError(
    response.status, type, message, response.headers.get("x-gateway-request-id") ?? "", Number(response.headers.get("retry-after") ?? 0) || 0,
  );
}
