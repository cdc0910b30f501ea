/**
 * For servers: who sent a request. Only Web APIs, so it runs in Node (20 and later), Deno, Bun
 * and edge runtimes.
 *
 * ```ts
 * import { createServerClient } from "authmount/server";
 *
 * const auth = createServerClient("https://app.example.com");
 * const { data: claims, error } = await auth.verify(request);
 * ```
 *
 * @module
 */
import type { Claims } from "./claims.js";
import { crossSite, header, soleCookie, split, withCookies, type RequestLike } from "./cookies.js";
import { keySet } from "./keys.js";
import { baseURL, failed, readFailure, type Result } from "./result.js";
import { checkToken } from "./token.js";

export type { Claims } from "./claims.js";
export type { Failure, Result } from "./result.js";
export type { HeadersLike, RequestLike } from "./cookies.js";

/** A session is renewed this long before its access token expires, in seconds. */
const EARLY = 60;
const TIMEOUT = 5_000;
/** Of the codes of POST /refresh, those that say that the session is over. */
const ENDS = /_(token|reused|ended|banned)$/;

/** What {@link createServerClient} may be told. */
export interface ServerOptions {
  /** Public API key, where the server has any. */
  apiKey?: string;
  /** Path of the mount; default: that of the URL, or `/auth/v1`. */
  path?: string;
  /** Where this process reaches the server, if not at the project URL. */
  internalUrl?: string;
  /** `iss` of access tokens; default: the base URL. */
  issuer?: string;
  /** `aud` of access tokens; default "authenticated". */
  audience?: string;
  /** Name that the server's cookies begin with; default "authmount". */
  cookieName?: string;
  /** Passes X-Forwarded-For on, so that the server's limits count the visitor. Only behind a proxy that sets it. */
  forwardedFor?: boolean;
  /** In place of the global fetch. */
  fetch?: typeof fetch;
}

/** What a call on behalf of a browser comes to. */
export type ServerResult<T> = Result<T> & {
  /** Set-Cookie lines that have to reach the browser, whatever else was answered. */
  setCookie: string[];
  /** The Cookie header of the browser once it has them, for what handles the same request later on. */
  cookie: string;
};

/** Knows who sent a request. It keeps keys, and nothing about anybody. */
export interface ServerClient {
  /** Base URL of the server, as browsers know it. */
  readonly url: string;
  /**
   * Checks the access token of a request, or a token: signature, issuer, audience, type, times.
   * A bearer token wins over a cookie, and one that is refused never falls back on it. What
   * changes something by cookie has to come from the same origin.
   *
   * The session may have been ended since: {@link ServerClient.getUser} asks the server.
   *
   * Errors: `missing_token`, `bad_token`, `cross_site_request`; `token_stale` where cookies hold a
   * session that has to be renewed first, so that nobody is signed out yet; `network_error` where
   * the keys could not be fetched, which says nothing about the token.
   */
  verify(source: RequestLike | string): Promise<Result<Claims>>;
  /**
   * As {@link ServerClient.verify}, and renews the session in the cookies if its access token
   * has expired or is about to. Only where `setCookie` can be handed to the browser: what was
   * renewed and does not arrive there ends the session.
   *
   * Errors: those of verify, and of POST /refresh. `network_error`, 429 and 5xx are outages:
   * the visitor is not signed out.
   *
   * @param renewing called before anything is renewed; what it throws is thrown, and nothing was
   */
  session(request: RequestLike, renewing?: () => void): Promise<ServerResult<Claims>>;
  /**
   * Calls an endpoint of the server on behalf of the browser: `call(request, "POST", "/login",
   * { email, password })` signs it in, in cookies. The caller vouches that the browser meant it:
   * a request that changes something and comes from another site is refused.
   */
  call<T = unknown>(request: RequestLike, method: string, path: string, body?: object): Promise<ServerResult<T>>;
  /** The user as the server has it now (GET /me): knows of ended sessions and bans. */
  getUser<T = Record<string, unknown>>(source: RequestLike | string): Promise<ServerResult<T>>;
}

/**
 * Makes what checks requests. One for the process, at module level: it is safe for all
 * requests at once.
 *
 * @param url the project URL, as browsers know it
 * @throws TypeError for a URL that is none
 */
export function createServerClient(url: string, options: ServerOptions = {}): ServerClient {
  const base = baseURL(url, options.path);
  const at = baseURL(options.internalUrl ?? base, new URL(base).pathname);
  const ask = (path: string, init?: RequestInit) =>
    (options.fetch ?? fetch)(at + path, { redirect: "manual", signal: AbortSignal.timeout(TIMEOUT), ...init });
  const check = keySet(() => ask("/.well-known/jwks.json"));
  const expected = { issuer: options.issuer ?? base, audience: options.audience ?? "authenticated" };
  // The prefix makes browsers refuse a planted cookie (RFC 6265bis); it needs https.
  const prefix = `${base.startsWith("https:") ? "__Host-" : ""}${options.cookieName ?? "authmount"}-`;
  const access = (cookies: string) => soleCookie(cookies, prefix + "access");
  const refresh = (cookies: string) => soleCookie(cookies, prefix + "refresh");
  const cookies = (r: RequestLike) => header(r, "cookie");
  const bearer = (r: RequestLike) => /^bearer +(.*)/i.exec(header(r, "authorization"))?.[1];
  const foreign = (r: RequestLike) => bearer(r) === undefined && crossSite(r) && failed("cross_site_request", 403);

  const judge = async (token: string): Promise<Result<Claims>> => {
    try {
      const claims = token && (await checkToken(token, expected, check));
      if (claims) return { data: claims, error: null };
    } catch {
      return failed("network_error");
    }
    return failed(token ? "bad_token" : "missing_token", 401);
  };

  const verify = async (source: RequestLike | string): Promise<Result<Claims>> => {
    if (typeof source === "string") return judge(source);
    const result = foreign(source) || (await judge(bearer(source) ?? access(cookies(source))));
    // With a refresh token nobody is signed out yet.
    return result.error?.status === 401 && bearer(source) === undefined && refresh(cookies(source)) ? failed("token_stale", 401) : result;
  };

  const call = async <T>(request: RequestLike, method: string, path: string, body?: object): Promise<ServerResult<T>> => {
    const cookie = cookies(request);
    let setCookie: string[] = [];
    let result: Result<T> | false = foreign(request);
    if (!result) {
      const headers = {
        accept: "application/json",
        "content-type": "application/json",
        "x-session-transport": "cookie",
        // Of all that the browser keeps, the server needs its own.
        cookie: split(cookie).filter((c) => c.startsWith(prefix)).join("; "),
        "user-agent": header(request, "user-agent"),
        ...(bearer(request) && { authorization: header(request, "authorization") }),
        ...(options.apiKey && { apikey: options.apiKey }),
        ...(options.forwardedFor && { "x-forwarded-for": header(request, "x-forwarded-for") }),
      };
      try {
        const response = await ask(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
        setCookie = response.headers.getSetCookie();
        result = response.ok ? { data: response.status === 204 ? null : await response.json(), error: null } : await readFailure(response);
      } catch {
        result = failed("network_error");
      }
    }
    return { ...result, setCookie, cookie: withCookies(cookie, setCookie) };
  };

  const session = async (request: RequestLike, renewing?: () => void): Promise<ServerResult<Claims>> => {
    const cookie = cookies(request);
    const now = { ...(await verify(request)), setCookie: [], cookie };
    if (now.error ? now.error.code !== "token_stale" : now.data.exp - Date.now() / 1000 > EARLY || bearer(request) !== undefined || !refresh(cookie)) return now;
    renewing?.();
    const { error, setCookie } = await call(request, "POST", "/refresh");
    const after = { setCookie, cookie: withCookies(cookie, setCookie) };
    if (!error) return { ...(await judge(access(after.cookie))), ...after };
    // In an outage the token that is there may still be good for a minute.
    return now.error || ENDS.test(error.code) ? { data: null, error, ...after } : now;
  };

  return {
    url: base,
    verify,
    session,
    call,
    getUser: (source) => call(typeof source === "string" ? { headers: { authorization: `Bearer ${source}` } } : source, "GET", "/me"),
  };
}
