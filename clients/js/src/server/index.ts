/**
 * Authenticates requests on servers. It uses only Web APIs, so it runs in Node (20 and later),
 * Deno, Bun and edge runtimes.
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

/** Seconds before the expiry of the access token at which a session is refreshed. */
const EARLY = 60;
const TIMEOUT = 5_000;
/** Error codes of POST /refresh which mean that the session has ended. */
const ENDS = /_(token|reused|ended|banned)$/;

/** Options of {@link createServerClient}. */
export interface ServerOptions {
  /** Public API key, if the server requires one. */
  apiKey?: string;
  /** The server's mount path. Default: the URL's path, or `/auth/v1`. */
  path?: string;
  /** URL at which this process reaches the server. Default: the project URL. */
  internalUrl?: string;
  /** `iss` of access tokens; default: the base URL. */
  issuer?: string;
  /** `aud` of access tokens; default "authenticated". */
  audience?: string;
  /** Prefix of the names of the server's cookies; default "authmount". */
  cookieName?: string;
  /** Forwards X-Forwarded-For, so that the server's rate limits use the visitor's IP address. Use it only behind a proxy that sets the header. Default false. */
  forwardedFor?: boolean;
  /** Replaces the global fetch. */
  fetch?: typeof fetch;
}

/** The result of a call on behalf of a browser. */
export type ServerResult<T> = Result<T> & {
  /** Set-Cookie lines to send to the browser, also if there is an error. */
  setCookie: string[];
  /** The Cookie header after those changes, for later handlers of the same request. */
  cookie: string;
};

/** Authenticates requests. It caches the server's public keys, and no data of users. */
export interface ServerClient {
  /** Base URL of the server, as browsers know it. */
  readonly url: string;
  /**
   * Verifies an access token, given directly or in a request: signature, issuer, audience, type, times.
   * A bearer token takes precedence over a cookie, also if it is invalid. With a cookie, requests
   * other than GET, HEAD and OPTIONS have to come from the same origin.
   *
   * It does not detect a session that has ended since; {@link ServerClient.getUser} does.
   *
   * Errors: `missing_token`, `bad_token`, `cross_site_request`; `token_stale` if the access token in
   * the cookies is missing or invalid but there is a refresh token, so the user is still signed in;
   * `network_error` if the public keys could not be fetched, so the token was not checked.
   */
  verify(source: RequestLike | string): Promise<Result<Claims>>;
  /**
   * Like {@link ServerClient.verify}, and refreshes the session in the cookies if its access token
   * has expired or is about to. Call it only if you can send `setCookie` to the browser: otherwise
   * the browser keeps a used refresh token, and the session ends.
   *
   * Errors: those of verify, and of POST /refresh. `network_error`, 429 and 5xx are outages: the
   * user is still signed in.
   *
   * @param renewing called before a refresh; if it throws, session throws the same and does not refresh
   */
  session(request: RequestLike, renewing?: () => void): Promise<ServerResult<Claims>>;
  /**
   * Calls an endpoint of the server on behalf of the browser: `call(request, "POST", "/login",
   * { email, password })` signs in with cookies. Cross-site requests other than GET, HEAD and
   * OPTIONS are rejected: `cross_site_request`. Further protection against CSRF is up to the caller.
   */
  call<T = unknown>(request: RequestLike, method: string, path: string, body?: object): Promise<ServerResult<T>>;
  /** Fetches the current user from the server (GET /me), which detects ended sessions and bans. */
  getUser<T = Record<string, unknown>>(source: RequestLike | string): Promise<ServerResult<T>>;
}

/**
 * Creates a client that authenticates requests. Create one per process, at module level: it is
 * safe for concurrent requests.
 *
 * @param url the project URL, as browsers know it
 * @throws TypeError if the URL is invalid
 */
export function createServerClient(url: string, options: ServerOptions = {}): ServerClient {
  const base = baseURL(url, options.path);
  const at = baseURL(options.internalUrl ?? base, new URL(base).pathname);
  const ask = (path: string, init?: RequestInit) =>
    (options.fetch ?? fetch)(at + path, { redirect: "manual", signal: AbortSignal.timeout(TIMEOUT), ...init });
  const check = keySet(() => ask("/.well-known/jwks.json"));
  const expected = { issuer: options.issuer ?? base, audience: options.audience ?? "authenticated" };
  // Browsers reject __Host- cookies set by other hosts (RFC 6265bis); the prefix needs https.
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
    // With a refresh token, the user is still signed in.
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
        // Forward only the cookies of the Authmount server.
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
    // In an outage, the current token may still be valid for a minute.
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
