/** The rules that the bindings for server-rendering frameworks share. Each framework's module only adapts them. */
import { header, type RequestLike } from "../server/cookies.js";
import { createServerClient, type Claims, type Failure, type Result, type ServerClient, type ServerOptions, type ServerResult } from "../server/index.js";
import type { Metadata, State, User } from "../types.js";

/** Options of the bindings for server-rendering frameworks. */
export interface SiteOptions extends ServerOptions {
  /** Paths that require a sign-in, including all paths below: other visitors are redirected. */
  protect?: string[];
  /** Path of the sign-in page. It gets the query `?return_to=` with a path. Default "/sign-in". */
  signIn?: string;
}

/** The Cache-Control of responses that depend on cookies or set them. */
export const PRIVATE = "private, no-store";

/** What the bindings share for one application. */
export interface Site {
  server: ServerClient;
  /** Path of the sign-in page. */
  signIn: string;
  /** Reports whether a path belongs to the Authmount server. */
  owns(path: string): boolean;
  /** Reports whether a page requires a sign-in; "" is none. */
  guards(path: string): boolean;
  /** Refreshes the session if necessary. `away` reports that the visitor has to sign in first. */
  check(request: RequestLike, path: string): Promise<ServerResult<Claims> & { away: boolean }>;
}

/** Whether the server reported that no user is signed in. A 429, 5xx or network error does not mean that. */
const refused = ({ code, status }: Failure) => code !== "network_error" && status >= 400 && status < 429;

/**
 * Returns the parts of a request that count. The Authorization header does not, because pages are for browsers:
 * only the cookies, which scripts cannot read, say who is signed in.
 */
export function browserRequest(request: RequestLike, cookie = header(request, "cookie")): RequestLike {
  const headers: Record<string, string> = { cookie };
  for (const name of ["host", "origin", "sec-fetch-site", "user-agent", "x-forwarded-for"]) headers[name] = header(request, name);
  return { method: request.method, headers };
}

/**
 * Lets concurrent refreshes of one browser in this process share one request, because a refresh token is for one use.
 * Only equal requests share: the server has to judge the device and address of whoever else has the token.
 */
function sharing(ask: typeof fetch): typeof fetch {
  const running = new Map<string, Promise<Response>>();
  return async (input, init) => {
    // A Cloudflare worker must not await a promise of another request.
    if (!String(input).endsWith("/refresh") || globalThis.navigator?.userAgent === "Cloudflare-Workers") return ask(input, init);
    const sent = JSON.stringify([...new Headers(init?.headers)]);
    let answer = running.get(sent);
    if (!answer) running.set(sent, (answer = ask(input, init).finally(() => running.delete(sent))));
    return (await answer).clone();
  };
}

/** Returns a path in one spelling, because routers decode paths, and some ignore case and repeated slashes. */
function plain(path: string): string {
  let before;
  try {
    do path = decodeURIComponent((before = path));
    while (path !== before);
  } catch {
    // The rest is no encoding.
  }
  return path.toLowerCase().replace(/[/\\]+/g, "/");
}

const below = (path: string, at: string) => (path + "/").startsWith(at.replace(/\/*$/, "/"));

/** @throws TypeError if the URL or a path in `protect` is invalid */
export function createSite(url: string, { protect = [], signIn = "/sign-in", ...options }: SiteOptions): Site {
  const ask = options.fetch;
  const server = createServerClient(url, { ...options, fetch: sharing((...all) => (ask ?? fetch)(...all)) });
  const mount = new URL(server.url).pathname;
  for (const path of protect) if (!path.startsWith("/")) throw new TypeError(`protect: ${path} does not begin with a slash`);
  const guards = (path: string) => !!path && protect.some((p) => below(plain(path), plain(p)));

  return {
    server,
    signIn,
    owns: (path) => below(path, mount),
    guards,
    async check(request, path) {
      const result = await server.session(browserRequest(request));
      return { ...result, away: !!result.error && refused(result.error) && /^(GET|HEAD)$/.test(request.method ?? "GET") && guards(path) };
    },
  };
}

/** Returns the location of the sign-in page, which then continues to a path, if there is one. */
export const signInLocation = (signIn: string, path: string) => signIn + (path && `?return_to=${encodeURIComponent(path)}`);

/** Returns the state for `<AuthProvider initial>`. During an outage it is "loading", never "signed-out". */
export async function initialState<M extends Metadata>(known: Result<Claims>, getUser: () => Promise<Result<User<M>>>): Promise<State<M>> {
  const { data, error } = known.data ? await getUser() : known;
  if (!error) return { status: "signed-in", user: data, session: null };
  const out = error.code !== "token_stale" && refused(error);
  return { status: out ? "signed-out" : "loading", user: null, session: null };
}

/**
 * Returns a target of a redirect if it is a path of this application, else the fallback. Everything else would let
 * a link to the sign-in page send visitors to another site (open redirect).
 */
export function localPath(to: unknown, fallback = "/"): string {
  const base = "http://path.invalid";
  if (typeof to !== "string" || !to.startsWith("/")) return fallback;
  try {
    const { origin, pathname, search, hash } = new URL(to, base); // as browsers read it: backslashes, tabs, dots
    return origin === base && !pathname.startsWith("//") ? pathname + search + hash : fallback;
  } catch {
    return fallback;
  }
}
