import { AuthError } from "./error.js";
import type { Session, Storage, User } from "./types.js";

/** A session as it is kept: an adapter may keep the refresh token alone. */
export interface Kept {
  refresh_token?: string | null;
  access_token?: string | null;
  expires_at?: number | null;
  expires_in?: number;
  user?: User;
}

export const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** The wire's names of parameters: fullName is full_name. Values stay as they are. */
export const wired = (params?: object): Record<string, unknown> => mapped(params, ([name, value]) => [name.replace(/[A-Z]/g, "_$&").toLowerCase(), value]);

/** Members made of those of an object. */
export const mapped = (members: object | undefined, to: (member: [string, any]) => [string, unknown]): any => Object.fromEntries(Object.entries(members ?? {}).map(to));

/** The members that are there, as headers and queries take them. */
export const present = (members: object) => Object.fromEntries(Object.entries(members ?? {}).filter((member) => member[1] != null)) as Record<string, string>;

/** What names a session among tabs; null where it is in cookies. */
export const nameOf = (kept: Kept | null) => kept && (sessionOf(kept).id ?? kept.refresh_token ?? null);

/** A session as the application sees it. What its token says is not verified: it decides what is shown, no more. */
export function sessionOf({ access_token = null, expires_at = null }: Kept): Session {
  const claims = attempt(() => JSON.parse(atob(access_token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/"))));
  return { access_token, expires_at, id: claims?.session_id ?? null, aal: claims?.aal ?? null, permissions: claims?.permissions ?? [] };
}

/** A timer that keeps no process alive. */
export function later(run: () => void, seconds: number): number {
  const timer: any = setTimeout(run, seconds * 1000);
  timer.unref?.();
  return timer;
}

/** A promise, or the end of the wait for it; what it stands for goes on for others. */
export function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((done, fail) => {
    const stop = () => fail(new AuthError("aborted"));
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop);
    // A signal may live as long as the page: it keeps nothing of what is over.
    promise.then(done, fail).finally(() => signal?.removeEventListener("abort", stop));
  });
}

/** What a function returns; undefined where it throws. */
export function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

/** A storage that ends with the process. */
export function memory(): Storage {
  const values: Record<string, string> = {};
  return {
    getItem: (key) => values[key] as string,
    setItem: (key, value) => (values[key] = value),
    removeItem: (key) => delete values[key],
  };
}
