/** One request to a server-rendering framework, and its response. */
import { header, withCookies, type RequestLike } from "../server/cookies.js";
import type { Claims, Result, ServerResult } from "../server/index.js";
import type { Metadata, State, User } from "../types.js";
import { browserRequest, initialState, PRIVATE, signInLocation, type Site } from "./core.js";
import { merge } from "./set-cookie.js";

/** The authentication of the current request. Its session is only taken from the server's cookies. */
export interface RequestAuth<M extends Metadata = {}> {
  /**
   * Returns the verified claims, after signing in or out in the same request, too.
   *
   * Errors: those of `ServerClient.verify`. `token_stale` and `network_error` are outages: the user is still signed in.
   */
  verify(): Promise<Result<Claims>>;
  /**
   * Returns the verified claims. Otherwise it throws, which ends the request: with a redirect to the sign-in page
   * (in Nuxt with 401), and in an outage with 503.
   *
   * @param returnTo the path after the sign-in; default: that of the request if it is for a page
   */
  requireUser(returnTo?: string): Promise<Claims>;
  /** Fetches the current user from the server, which detects ended sessions and bans. */
  getUser(): Promise<Result<User<M>>>;
  /** Returns the state for `<AuthProvider initial>`. During an outage it is "loading", never "signed-out". */
  initialState(): Promise<State<M>>;
  /** Calls an endpoint of the server, and sets the cookies of its response: `call("POST", "/login", { email, password })`. */
  call<T = unknown>(method: string, path: string, body?: object): Promise<Result<T>>;
}

/** What a framework does in its own manner. */
export interface Host {
  /** Ends the request because no user is signed in; location is that of the sign-in page. */
  signIn(location: string): never;
  /** Ends the request because the Authmount server does not respond. */
  unavailable(): never;
  /** Sets cookies on the response. Without it, {@link Visit.finish} does. */
  keep?(lines: string[]): void;
  /** Called when the response starts to depend on cookies. */
  vary?(): void;
}

/** The authentication of a request, as the bindings use it. */
export interface Visit<M extends Metadata> {
  auth: RequestAuth<M>;
  /** Refreshes the session. Returns the location of the sign-in page if the visitor of a page has to go there first. */
  open(): Promise<string | null>;
  /** The Cookie header with the changes so far, for handlers that read it. */
  cookie(): string;
  /** Returns a redirect, with the cookies. */
  leave(location: string): Response;
  /** Adds cookies and Cache-Control to the response of the application. */
  finish(response: Response): Response;
}

/** @param path path and query of the page that was requested; "" if the request is not for a page */
export function visit<M extends Metadata = {}>(site: Site, request: RequestLike, path: string, host: Host): Visit<M> {
  const { server } = site;
  let cookie = header(request, "cookie");
  let lines: string[] = [];
  let depends = false;
  const vary = () => {
    depends = true;
    host.vary?.();
  };
  const now = () => {
    vary();
    return browserRequest(request, cookie);
  };
  const keep = <T>({ setCookie, cookie: _, ...result }: ServerResult<T>): Result<T> => {
    if (setCookie.length) {
      vary();
      cookie = withCookies(cookie, setCookie);
      lines = merge(lines, setCookie);
      host.keep?.(setCookie);
    }
    return result as Result<T>;
  };
  const auth: RequestAuth<M> = {
    verify: async () => server.verify(now()),
    async requireUser(returnTo = path) {
      const { data, error } = await auth.verify();
      if (data) return data;
      return error.code === "token_stale" || error.code === "network_error" ? host.unavailable() : host.signIn(signInLocation(site.signIn, returnTo));
    },
    getUser: async () => keep(await server.getUser<User<M>>(now())),
    initialState: async () => initialState(await auth.verify(), auth.getUser),
    call: async (method, to, body) => keep(await server.call(now(), method, to, body)),
  };

  const complete = (response: Response, mine: string[]) => {
    if (!depends) return response;
    const apply = (to: Response) => {
      if (lines.length || !/\b(private|no-store)\b/.test(to.headers.get("cache-control") ?? "")) to.headers.set("cache-control", PRIVATE);
      for (const line of mine) to.headers.append("set-cookie", line);
      return to;
    };
    try {
      return apply(response);
    } catch {
      return apply(new Response(response.body, response)); // its headers cannot be changed: Response.redirect, fetch
    }
  };

  return {
    auth,
    cookie: () => cookie,
    async open() {
      const [page = ""] = path.split("?");
      if (site.guards(page)) vary();
      const { away, ...result } = await site.check(request, page);
      keep(result as ServerResult<Claims>);
      return away ? signInLocation(site.signIn, path) : null;
    },
    leave: (location) => complete(new Response(null, { status: 303, headers: { location } }), lines),
    finish: (response) => complete(response, host.keep ? [] : lines),
  };
}
