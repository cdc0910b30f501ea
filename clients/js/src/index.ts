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

/** Clients of this page, by name: over hot module reloads, and over two copies of this module. */
const registry = Symbol.for("authmount.clients");

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
  const clients: Map<string, AuthClient> | undefined = isBrowser() ? ((globalThis as { [registry]?: Map<string, AuthClient> })[registry] ??= new Map()) : undefined;
  const name = `${base} ${storageKey}`;
  const there = clients?.get(name);
  if (there) return there;

  const core = createCore(base, key ?? undefined, options, storageKey);
  const methods = createMethods(core, options);
  const client: AuthClient = {
    ...methods,
    get state() {
      return core.state;
    },
    dispose() {
      core.dispose();
      if (clients?.get(name) === client) clients.delete(name);
    },
  };
  clients?.set(name, client);
  return client;
}
