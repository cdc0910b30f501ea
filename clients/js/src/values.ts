import { AuthError } from "./error.js";
import type { Session, Storage, User } from "./types.js";

/** A stored session. A storage adapter may store only the refresh token. */
export interface Kept {
  refresh_token?: string | null;
  access_token?: string | null;
  expires_at?: number | null;
  expires_in?: number;
  user?: User;
}

/** The client's member for the other entries of this package. It is the same in two copies of this module. */
export const inner: unique symbol = Symbol.for("authmount");

export const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Converts the names of parameters to snake_case (fullName to full_name). Values are unchanged. */
export const wired = (params?: object): Record<string, unknown> => mapped(params, ([name, value]) => [name.replace(/[A-Z]/g, "_$&").toLowerCase(), value]);

/** Maps the entries of an object to a new object. */
export const mapped = (members: object | undefined, to: (member: [string, any]) => [string, unknown]): any => Object.fromEntries(Object.entries(members ?? {}).map(to));

/** Returns the members that are not null or undefined, for headers and queries. */
export const present = (members: object) => Object.fromEntries(Object.entries(members ?? {}).filter((member) => member[1] != null)) as Record<string, string>;

/** Returns a name that identifies the session in all tabs; null if it is in cookies. */
export const nameOf = (kept: Kept | null) => kept && (sessionOf(kept).id ?? kept.refresh_token ?? null);

/** Returns the public form of a session. It does not verify the token: use the claims for display only. */
export function sessionOf({ access_token = null, expires_at = null }: Kept): Session {
  const claims = attempt(() => JSON.parse(atob(access_token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/"))));
  return { access_token, expires_at, id: claims?.session_id ?? null, aal: claims?.aal ?? null, permissions: claims?.permissions ?? [] };
}

/** Starts a timer that does not keep a Node process alive. */
export function later(run: () => void, seconds: number): number {
  const timer: any = setTimeout(run, seconds * 1000);
  timer.unref?.();
  return timer;
}

/** Waits for a promise until the signal aborts, then rejects with `aborted`. The work itself continues for other callers. */
export function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((done, fail) => {
    const stop = () => fail(new AuthError("aborted"));
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
    // A signal may live as long as the page, so remove the listener to free memory.
    promise.then(done, fail).finally(() => signal?.removeEventListener("abort", stop));
  });
}

/** Returns the function's result; undefined if it throws. */
export function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

/** Creates a storage in memory. */
export function memory(): Storage {
  const values: Record<string, string> = {};
  return {
    getItem: (key) => values[key] as string,
    setItem: (key, value) => (values[key] = value),
    removeItem: (key) => delete values[key],
  };
}
