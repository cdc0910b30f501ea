import { AuthError } from "./error.js";
import type { Options } from "./types.js";

/** What a function returns; undefined where it throws. */
export function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

/** What a text of JSON says; undefined where it is none. */
export const parsed = <T>(text: string | null): T | undefined => attempt(() => JSON.parse(text!));

/** Members made of those of an object. */
export const mapped = (members: object | undefined, to: (member: [string, any]) => [string, unknown]): any => Object.fromEntries(Object.entries(members ?? {}).map(to));

/** The wire's names of parameters: fullName is full_name. Values stay as they are. */
export const wired = (params?: object): Record<string, unknown> => mapped(params, ([name, value]) => [name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]);

/** The members that are there, as headers and queries take them. */
export const present = (members: object) => Object.entries(members).filter((member) => member[1] != null) as [string, string][];

/**
 * The requests of a client, the server's clock in Unix seconds, and what ends them all. `deviceId` names this device:
 * strangers' guesses at an account are told apart by it.
 */
export function createSender(url: string, apiKey: string | null | undefined, { cookies, debug, timeout = 20_000, fetch: given }: Options, deviceId: () => Promise<string | null | undefined>) {
  const life = new AbortController();
  let skew = 0; // how far the server's clock is ahead, in seconds
  const now = () => Date.now() / 1000 + skew;

  /** Sends a request with a body by the names of {@link wired}, and returns its answer's data. Throws AuthError. */
  async function send<T>(method: string, path: string, body?: object, bearer?: string | null, signal?: AbortSignal): Promise<T> {
    const { captcha_token, ...json } = wired(body);
    const control = new AbortController();
    const stop = () => control.abort();
    const signals = [life.signal, signal];
    const gone = () => signals.some((s) => s?.aborted);
    const timer = setTimeout(stop, timeout);
    const began = Date.now();
    let status = 0;
    let error: AuthError | undefined;
    for (const s of signals) s?.addEventListener("abort", stop);
    try {
      if (gone()) throw stop; // judged below
      // An id that is empty, or dots: proxies tidy paths, and it would be another call.
      if (/\/\.{0,2}([/?]|$)/.test(path)) throw new AuthError("validation_failed");
      const response = await (given ?? fetch)(url + path, {
        method,
        headers: Object.fromEntries(
          present({
          accept: "application/json",
          apikey: apiKey,
          authorization: bearer && `Bearer ${bearer}`,
          "content-type": body && "application/json",
          "x-session-transport": cookies ? "cookie" : null,
          "x-captcha-token": captcha_token,
          "x-device-id": body && (await deviceId().catch(() => {})),
          }),
        ),
        body: body && (JSON.stringify(json) as any),
        credentials: cookies ? "include" : "omit",
        redirect: "error", // what is sent is for this server alone
        cache: "no-store",
        keepalive: path.startsWith("/logout"), // outlives the page
        signal: control.signal,
      });
      status = response.status;
      return read(response, await response.text());
    } catch (e) {
      throw (error = e instanceof AuthError ? e : new AuthError(gone() ? "aborted" : "network_error"));
    } finally {
      clearTimeout(timer);
      for (const s of signals) s?.removeEventListener("abort", stop);
      debug?.({ method, path: path.split("?")[0]!, status, ms: Date.now() - began, ...(error && { code: error.code, requestId: error.requestId }) });
    }
  }

  /** What an answer says. */
  function read({ ok, status, headers }: Response, text: string) {
    const body = text && parsed<any>(text);
    const seconds = (name: string) => Date.parse(headers.get(name)!) / 1000;
    // Where a page of another origin cannot see the date, a session tells it.
    const at = seconds("date") || body?.expires_at - body?.expires_in;
    if (Math.abs(at - now()) > 2) skew = at - Date.now() / 1000;
    if (ok && body !== undefined) return body;
    const after = headers.get("retry-after");
    const { code = "bad_response", message, mfa_token } = body || {};
    const error = new AuthError(code, message, status, body || {}, after && Math.max(1, +after || seconds("retry-after") - now() || 1) as any);
    if (mfa_token) error.mfa = () => body;
    throw error;
  }

  return [send, now, life] as const;
}
