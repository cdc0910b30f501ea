/**
 * The client of an Authmount server, for browsers and programs.
 *
 * ```ts
 * const auth = createClient("https://app.example.com", "pk_your_key");
 * const { data, error } = await auth.signInWithPassword({ email, password });
 * ```
 *
 * @module
 */
import { createCore } from "./core.js";
import { createMethods } from "./methods.js";
import { isBrowser } from "./storage.js";
import type { AuthClient, Options } from "./types.js";

export { AuthError, type ErrorCode } from "./error.js";
export type * from "./types.js";
export type { Export, Identity, Prompt, RecoveryCodes, SentCode, SessionInfo, Settings, TakenOver, TOTPSetup, WireCode } from "./wire.js";

/**
 * Makes a client of the server at a URL, to whose bare origin /auth/v1 is added. In browsers a second call with the
 * same URL and storage key returns the same client; on servers every call makes its own, and keeps nothing.
 *
 * @param key the public API key, pk_…, where the server has one
 * @throws TypeError for a URL that is none, and for a key that is secret or cannot be sent in a header
 */
export function createClient(url: string, key?: string | null, options: Options = {}): AuthClient {
  const { origin, pathname, href } = new URL(url);
  if (!/^http/.test(origin) || href !== origin + pathname) throw new TypeError("not a project URL");
  if (!/^(?!sk_)[!-~]*$/.test(key ?? "")) throw new TypeError("not a public API key");
  const base = origin + (pathname === "/" ? options.path ?? "/auth/v1" : pathname).replace(/\/+$/, "");
  const storageKey = options.storageKey ?? `authmount:${base}`;
  // Clients of this page, by name: over hot module reloads, and over two copies of this module.
  const clients: Record<string, AuthClient> = isBrowser() ? (globalThis as any) : {};
  const name = `${storageKey} ${base}`;
  if (clients[name]) return clients[name];

  const core = createCore(base, key || null, options, storageKey);
  const client = createMethods(base, core, storageKey, options, () => clients[name] === client && delete clients[name]);
  return (clients[name] = client);
}
