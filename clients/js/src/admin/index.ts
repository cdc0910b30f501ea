/**
 * Client of the admin API, for programs with a secret key: every operation below `/admin` that
 * a key may call, with types from the server's OpenAPI document. It must not run in a browser.
 *
 * ```ts
 * import { createAdminClient } from "authmount/admin";
 *
 * const admin = createAdminClient("https://app.example.com", process.env.AUTH_SECRET_KEY!);
 * const { data, error } = await admin.users.ban(id, { reason: "spam" });
 * for await (const user of admin.users.list({ role: "editor" })) console.log(user.email);
 * ```
 *
 * Arguments are camelCase; response data keeps the server's snake_case names. Every POST sends an
 * idempotency key, so that it is safe to repeat if the response was lost.
 *
 * @module
 */
import { baseURL } from "../server/result.js";
import { operation, type Connection } from "./call.js";
import { operations, type AdminOperations } from "./operations.js";

export { AdminError, lines, type CallOptions, type Pages, type Result, type Rows } from "./call.js";
export type { AdminOperations } from "./operations.js";
export type * from "./inputs.js";
export type * from "./wire.js";
export type { Failure } from "../server/result.js";

/** Options of {@link createAdminClient}. */
export interface AdminOptions {
  /** The server's mount path. Default: the URL's path, or `/auth/v1`. */
  path?: string;
  /** Maximum number of retries after 429, 503 or a network error; default 2. */
  retries?: number;
  /** Timeout of a call in milliseconds, except exports and imports; default 30000. */
  timeout?: number;
  /** Replaces the global fetch. */
  fetch?: typeof fetch;
}

/** The operations of the admin API. */
export type AdminClient = AdminOperations;

/** Whether the code runs where a user could read the key: in a page, a web worker or a React Native app. */
function isBrowser(): boolean {
  const g = globalThis as { document?: unknown; importScripts?: unknown; navigator?: { product?: string; userAgent?: string } };
  return g.document !== undefined || g.navigator?.product === "ReactNative" || (g.importScripts !== undefined && /^Mozilla\//.test(g.navigator?.userAgent ?? ""));
}

/**
 * Creates a client of the admin API.
 *
 * @param url the project URL
 * @param secretKey `sk_…`, with the scopes that the operations need
 * @throws Error in a browser; TypeError if the URL or the key is invalid
 */
export function createAdminClient(url: string, secretKey: string, options: AdminOptions = {}): AdminClient {
  if (isBrowser()) throw new Error("authmount/admin is for servers: a secret key in a browser is everybody's.");
  if (!/^sk_[\w.~-]+$/.test(secretKey ?? "")) throw new TypeError("A secret key begins with sk_."); // the message does not contain the key
  const base = baseURL(url, options.path);
  if (base.startsWith("http:") && !/^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/.test(base) && !options.fetch)
    console.warn("authmount/admin: the secret key travels in the clear to", new URL(base).origin);
  const connection: Connection = {
    base,
    secretKey,
    fetch: options.fetch ?? ((...a) => fetch(...a)),
    retries: options.retries ?? 2,
    timeout: options.timeout ?? 30_000,
  };
  const build = (table: object): unknown =>
    Object.fromEntries(Object.entries(table).map(([name, spec]) => [name, typeof spec === "string" ? operation(connection, spec) : build(spec)]));
  return build(operations) as AdminClient;
}
