import { failed, readFailure, type Result as AnyResult } from "../server/result.js";
import { open } from "./operations.js";
import type { AdminErrorCode } from "./wire.js";

/** The result of an operation: either `data` or `error` is null. */
export type Result<T> = AnyResult<T, AdminErrorCode>;

/** Options of every call. */
export interface CallOptions {
  /** Required revision of the target (If-Match). Error if it differs: `precondition_failed`. */
  ifMatch?: number | string;
  /** Idempotency key of a POST, valid for 24 hours: a repetition with the same key is not executed again. Default: a new one per call. */
  idempotencyKey?: string;
  /** Cancels the call, which then returns the error `aborted`. */
  signal?: AbortSignal;
}

/** A promise of one page, and an iterator over all items from there on: `for await (const user of admin.users.list())`. */
export interface Pages<Page, Item> extends Promise<Result<Page>>, AsyncIterable<Item> {}

/** Rows of an import: an iterable, NDJSON text, or a stream of NDJSON. */
export type Rows<Row> = Iterable<Row> | AsyncIterable<Row> | string | ReadableStream<Uint8Array>;

/** The error that `for await` over pages throws, because an iterator cannot return it as a result. */
export class AdminError extends Error {
  override name = "AdminError";
  /** @param failure the error of the call */
  constructor(readonly failure: NonNullable<Result<unknown>["error"]>) {
    super(failure.message);
  }
  /** The server's code. */
  get code(): AdminErrorCode | "network_error" | "aborted" {
    return this.failure.code;
  }
}

/** The server and credentials that calls use. */
export interface Connection {
  base: string;
  secretKey: string;
  fetch: typeof fetch;
  retries: number;
  timeout: number;
}

const snake = (name: string) => (name.includes(".") ? name : name.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase()));

/** Converts names to snake_case. Names in the application's own data, such as metadata, are unchanged. */
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire);
  if (!value || typeof value !== "object" || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [snake(k), open.includes(snake(k)) ? v : toWire(v)]));
}

function query(input: Record<string, unknown> = {}): string {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined || value === null) continue;
    if (typeof value === "object" && !Array.isArray(value)) for (const [k, v] of Object.entries(value)) q.append(`${snake(name)}.${k}`, String(v));
    else q.append(snake(name), String(value));
  }
  return q.size ? `?${q}` : "";
}

/** Encodes rows as NDJSON (one JSON value per line). */
async function* ndjson(rows: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  const text = new TextEncoder();
  for await (const row of rows) yield text.encode(JSON.stringify(row) + "\n");
}

/** Parses the values of an NDJSON stream, such as those of `users.export` and `jobs.results`. */
export async function* lines<T = unknown>(stream: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  const reader = stream.getReader();
  const text = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const parts = (rest + (done ? text.decode() : text.decode(value, { stream: true }))).split("\n");
      rest = done ? "" : parts.pop()!;
      for (const line of parts) if (line.trim()) yield JSON.parse(line) as T;
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => {}); // also if the caller leaves the loop early
  }
}

const wait = (seconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** Creates the function of an operation. `spec` is its entry in the table: verb, path, kind of input, kind of response. */
export function operation(connection: Connection, spec: string): (...args: any[]) => unknown {
  const [verb = "", path = "", takes, answer] = spec.split(" ");
  const holes = path.match(/\{\w+\}/g) ?? [];
  const streams = answer === "stream";

  const request = (args: any[]): Promise<Result<any>> => {
    const rest = [...args];
    const target = holes.reduce((at, hole) => {
      const value = rest.shift();
      // An empty id, "." or ".." would reach a different operation.
      if (typeof value !== "string" || /^\.{0,2}$/.test(value)) throw new TypeError(`${verb} ${path} needs ${hole}`);
      return at.replace(hole, () => encodeURIComponent(value));
    }, path);
    const rows: Rows<unknown> | undefined = takes === "rows" ? rest.shift() : undefined;
    const input = takes === "none" ? undefined : rest.shift();
    const options: CallOptions | undefined = rest[0];
    return takes === "body" ? send(verb, target, input ?? {}, rows, options) : send(verb, target + query(input), undefined, rows, options);
  };

  const send = async (
    method: string,
    target: string,
    input: unknown,
    rows: Rows<unknown> | undefined,
    options: CallOptions = {},
  ): Promise<Result<any>> => {
    const headers: Record<string, string> = { authorization: `Bearer ${connection.secretKey}` };
    if (method === "POST") headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
    if (options.ifMatch !== undefined) headers["if-match"] = `"${options.ifMatch}"`;
    const init: RequestInit & { duplex?: "half" } = { method, headers, redirect: "manual" };
    if (rows !== undefined) {
      headers["content-type"] = "application/x-ndjson";
      init.body = typeof rows === "string" || rows instanceof ReadableStream ? rows : (ndjson(rows) as unknown as BodyInit);
      init.duplex = "half";
    } else if (input !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(toWire(input));
    }
    const repeatable = rows === undefined || typeof rows === "string";
    for (let attempt = 0; ; attempt++) {
      const result = await once(target, init, options.signal, rows !== undefined);
      const { error } = result;
      if (!error || !repeatable || attempt >= connection.retries || options.signal?.aborted) return result;
      // 429 and 503 changed nothing. After a network error only GET and POST (idempotency key) are safe to repeat.
      const refused = error.status === 429 || error.status === 503;
      const lost = error.code === "network_error" && (method === "GET" || method === "POST");
      if (!refused && !lost) return result;
      const pause = error.retryAfter ?? 0.2 * 2 ** attempt * (0.5 + Math.random());
      if (pause > 10) return result;
      await wait(pause, options.signal);
    }
  };

  const once = async (target: string, init: RequestInit, signal: AbortSignal | undefined, rows: boolean): Promise<Result<any>> => {
    const signals = [signal, streams || rows ? undefined : AbortSignal.timeout(connection.timeout)].filter((s) => s !== undefined);
    try {
      const response = await connection.fetch(connection.base + target, { ...init, ...(signals.length ? { signal: AbortSignal.any(signals) } : {}) });
      if (!response.ok) return (await readFailure(response)) as Result<never>;
      return { data: streams ? response.body : response.status === 204 ? null : await response.json(), error: null };
    } catch {
      return failed(signal?.aborted ? "aborted" : "network_error") as Result<never>;
    }
  };

  if (!answer || streams) return (...args) => request(args);
  return (...args) => {
    const first = request(args);
    const at = holes.length; // the query's index in the arguments
    return Object.assign(first, {
      async *[Symbol.asyncIterator]() {
        for (let page = first, last = args[at]?.cursor; ; ) {
          const { data, error } = await page;
          if (error) throw new AdminError(error);
          yield* data[answer];
          if (!data.next_cursor) return;
          if (data.next_cursor === last) throw new AdminError(failed("network_error", 0, { message: "the same page would come again, without an end" }).error as AdminError["failure"]);
          const next = [...args];
          next[at] = { ...args[at], cursor: (last = data.next_cursor) };
          page = request(next);
        }
      },
    });
  };
}
