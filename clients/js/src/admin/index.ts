/**
 * The admin side, for programs with a secret key: every operation below `/admin`, with types
 * from the server's own document. Never in a browser.
 *
 * ```ts
 * import { createAdminClient } from "authmount/admin";
 *
 * const admin = createAdminClient("https://app.example.com", process.env.AUTH_SECRET_KEY!);
 * const { data, error } = await admin.users.ban(id, { reason: "spam" });
 * for await (const user of admin.users.list({ role: "editor" })) console.log(user.email);
 * ```
 *
 * Arguments are camelCase, what the server sent keeps the wire's names. A POST carries an
 * idempotency key, so that one whose answer was lost is repeated without harm.
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

/** What {@link createAdminClient} may be told. */
export interface AdminOptions {
  /** Path of the mount; default: that of the URL, or `/auth/v1`. */
  path?: string;
  /** How often a call is repeated that the server refused for now or did not answer; default 2. */
  retries?: number;
  /** Milliseconds until a call is given up, exports and imports apart; default 30000. */
  timeout?: number;
  /** In place of the global fetch. */
  fetch?: typeof fetch;
}

/** What can be done with a secret key. */
export type AdminClient = AdminOperations;

/** Whether a person could read what this process knows: a page, a worker of one, an app on a phone. */
function isBrowser(): boolean {
  const g = globalThis as { document?: unknown; importScripts?: unknown; navigator?: { product?: string; userAgent?: string } };
  return g.document !== undefined || g.navigator?.product === "ReactNative" || (g.importScripts !== undefined && /^Mozilla\//.test(g.navigator?.userAgent ?? ""));
}

/**
 * Makes a client of the admin side.
 *
 * @param url the project URL
 * @param secretKey `sk_…`, with the scopes that the operations need
 * @throws Error in a browser; TypeError for a URL or a key that is none
 */
export function createAdminClient(url: string, secretKey: string, options: AdminOptions = {}): AdminClient {
  if (isBrowser()) throw new Error("authmount/admin is for servers: a secret key in a browser is everybody's.");
  if (!/^sk_[\w.~-]+$/.test(secretKey ?? "")) throw new TypeError("A secret key begins with sk_."); // the text is not shown
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
