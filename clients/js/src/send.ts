import { AuthError } from "./error.js";
import type { Options, Storage } from "./types.js";

/** What one request carries. */
export interface Call {
  body?: object | undefined;
  bearer?: string | null | undefined;
  signal?: AbortSignal | undefined;
}

/** A copy without members that are undefined. */
export const present = <T extends object>(members: T): T => JSON.parse(JSON.stringify(members));

/** What a text of JSON says; null where it says nothing. */
export function parsed<T>(text: string | null): T | null {
  try {
    return JSON.parse(text!);
  } catch {
    return null;
  }
}

/** The requests of a client, and the server's clock. `device` is where the name of this device is kept. */
export function createSender(url: string, apiKey: string | undefined, { cookies, debug, timeout = 20_000, fetch: given }: Options, device: [Storage, key: string] | null) {
  const controls = new Set<AbortController>();
  let disposed = false;
  let skew = 0; // how far the server's clock is ahead, in seconds
  const now = () => Date.now() / 1000 + skew;

  /** A random name of this device, kept over sign-outs: strangers' guesses at an account are told apart by it. */
  async function deviceId([storage, key]: [Storage, string]) {
    let id = await storage.getItem(key);
    if (!id) await storage.setItem(key, (id = crypto.randomUUID().replace(/-/g, "")));
    return id;
  }

  /** Sends a request, and returns its answer's data. Throws AuthError. */
  async function send<T>(method: string, path: string, { body, bearer, signal }: Call = {}): Promise<T> {
    const { captcha_token, ...json } = (body ?? {}) as Record<string, unknown>;
    const control = new AbortController();
    const stop = () => control.abort();
    const gone = () => disposed || signal?.aborted;
    const timer = setTimeout(stop, timeout);
    const began = Date.now();
    let status = 0;
    let error: AuthError | undefined;
    controls.add(control);
    signal?.addEventListener("abort", stop);
    try {
      if (gone()) throw stop; // judged below
      // An id that is empty, or dots: proxies tidy paths, and it would be another call.
      if (/\/\.{0,2}([/?]|$)/.test(path)) throw new AuthError("validation_failed");
      const response = await (given ?? fetch)(url + path, {
        method,
        headers: present({
          accept: "application/json",
          apikey: apiKey || undefined,
          authorization: bearer ? `Bearer ${bearer}` : undefined,
          "content-type": body && "application/json",
          "x-session-transport": cookies ? "cookie" : undefined,
          "x-captcha-token": captcha_token,
          "x-device-id": body && device ? await deviceId(device).catch(() => {}) : undefined,
        }) as Record<string, string>,
        body: body ? JSON.stringify(json) : null,
        credentials: cookies ? "include" : "omit",
        redirect: "error", // what is sent is for this server alone
        cache: "no-store",
        keepalive: path.startsWith("/logout"), // outlives the page
        signal: control.signal,
      });
      status = response.status;
      return read(response, await response.text());
    } catch (e) {
      error = e instanceof AuthError ? e : new AuthError(gone() ? "aborted" : "network_error");
      throw error;
    } finally {
      clearTimeout(timer);
      controls.delete(control);
      signal?.removeEventListener("abort", stop);
      debug?.({ method, path: path.split("?")[0]!, status, ms: Date.now() - began, ...(error && { code: error.code, requestId: error.requestId }) });
    }
  }

  /** What an answer says. */
  function read({ ok, status, headers }: Response, text: string) {
    let body: any;
    try {
      body = text && JSON.parse(text);
    } catch {
      // below
    }
    const seconds = (name: string) => Date.parse(headers.get(name) ?? "") / 1000;
    // Where a page of another origin cannot see the date, a session tells it.
    const at = seconds("date") || body?.expires_at - body?.expires_in;
    if (Math.abs(at - now()) > 2) skew = at - Date.now() / 1000;
    if (ok && body !== undefined) return body;
    const after = headers.get("retry-after");
    const { code = "bad_response", message, details, request_id, mfa_token: token, expires_in, factors } = body ?? {};
    const error = new AuthError(
      code,
      message,
      status,
      details,
      request_id,
      after && Math.max(1, +after || seconds("retry-after") - now() || 1) as any,
    );
    // Not to be seen by who prints the error.
    if (token) Object.defineProperty(error, "mfa", { value: { token, expires_in, factors } });
    throw error;
  }

  return {
    send,
    now,
    live: () => !disposed,
    dispose() {
      disposed = true;
      for (const control of controls) control.abort();
    },
  };
}
