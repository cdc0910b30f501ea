/**
 * Bindings for the App Router of Next.js with sessions in cookies. The server has to be on the
 * application's origin (through `rewrites` in next.config), so that browsers send its cookies.
 *
 * ```ts
 * // auth.ts
 * export const { auth, middleware, initialState } = createNextAuth("https://app.example.com", { protect: ["/account"] });
 * // middleware.ts (proxy.ts since Next.js 16: export { middleware as proxy })
 * export { middleware } from "./auth";
 * // app/account/page.tsx
 * const { data: claims } = await auth();
 * if (!claims) redirect("/sign-in");
 * ```
 *
 * The middleware refreshes sessions and redirects visitors to the sign-in page. It is not a
 * security boundary: protected pages, actions and handlers have to call `auth()`, which verifies
 * the token itself (CVE-2025-29927 bypassed every middleware).
 *
 * @module
 */
import { cookies, headers } from "next/headers.js";
import { NextResponse, type NextRequest } from "next/server.js";
import type { Claims, RequestLike, Result, ServerClient } from "../server/index.js";
import { browserRequest, createSite, initialState, PRIVATE, signInLocation, type SiteOptions } from "../ssr/core.js";
import { parseSetCookie } from "../ssr/set-cookie.js";
import type { Metadata, State, User } from "../types.js";

export type { Claims, Failure, Result, ServerClient, ServerOptions } from "../server/index.js";
export { localPath } from "../ssr/core.js";

/** Options of {@link createNextAuth}. */
export interface NextOptions extends SiteOptions {}

/** The functions that an application uses, see {@link createNextAuth}. */
export interface NextAuth<M extends Metadata = {}> {
  /** The underlying client of `authmount/server`. */
  server: ServerClient;
  /** Refreshes sessions in cookies, and redirects signed-out visitors of protected paths. */
  middleware(request: NextRequest): Promise<NextResponse>;
  /**
   * Returns the verified claims of the current request, in a server component, action or route handler.
   *
   * In a route handler that changes data, pass its `request`, so that cross-site requests (CSRF) are
   * rejected. `refresh` also refreshes an expired session. Use it in actions and route handlers only:
   * server components cannot set cookies, so there Next.js throws and the session is not refreshed.
   *
   * Errors: those of `ServerClient.verify`, and with refresh of `ServerClient.session`.
   */
  auth(options?: { request?: RequestLike; refresh?: boolean }): Promise<Result<Claims>>;
  /** Fetches the current user from the server, see `ServerClient.getUser`. */
  getUser(): Promise<Result<User<M>>>;
  /** Returns the state for `<AuthProvider initial>`. During an outage it is "loading", never "signed-out". */
  initialState(): Promise<State<M>>;
  /**
   * Calls an endpoint of the server in an action or route handler, and sets the cookies of its response:
   * `call("POST", "/login", { email, password })`.
   *
   * @param request the request of a route handler; default: the current one's headers, with `method` for the cross-site check
   */
  call<T = unknown>(method: string, path: string, body?: object, request?: RequestLike): Promise<Result<T>>;
}

/** Sets cookies from the server's Set-Cookie lines. Next.js throws in server components. */
async function keep(lines: string[]): Promise<void> {
  if (!lines.length) return;
  const jar = await cookies();
  for (const cookie of lines.map(parseSetCookie)) jar.set(cookie);
}

/**
 * Creates the authentication functions of an application. Call it once, at module level.
 *
 * @typeParam M the shape of the users' metadata, as for `createClient`
 * @param url the project URL: the application's own origin
 * @throws TypeError if the URL or a path in `protect` is invalid
 */
export function createNextAuth<M extends Metadata = {}>(url: string, options: NextOptions = {}): NextAuth<M> {
  const site = createSite(url, options);
  const { server } = site;
  const incoming = async (request?: RequestLike, method?: string): Promise<RequestLike> => browserRequest(request ?? { method, headers: await headers() });
  const getUser = async () => server.getUser<User<M>>(await incoming());

  return {
    server,
    getUser,

    async middleware(request) {
      const { pathname, search } = request.nextUrl;
      if (site.owns(pathname)) return NextResponse.next(); // requests to the Authmount server itself
      const { away, setCookie, cookie } = await site.check(request, pathname);
      let response;
      if (away) {
        const to = request.nextUrl.clone();
        [to.pathname, to.search] = signInLocation(site.signIn, pathname + search).split("?") as [string, string];
        response = NextResponse.redirect(to);
      } else {
        const sent = new Headers(request.headers);
        if (setCookie.length) sent.set("cookie", cookie);
        response = NextResponse.next({ request: { headers: sent } });
      }
      for (const line of setCookie) response.headers.append("set-cookie", line);
      if (setCookie.length || site.guards(pathname)) response.headers.set("cache-control", PRIVATE); // caches must not give the response to other visitors
      return response;
    },

    async auth({ request, refresh } = {}) {
      const source = await incoming(request);
      if (!refresh) return server.verify(source);
      const jar = await cookies();
      // Only trying tells where cookies can be set: what is renewed and not kept is lost.
      const { setCookie, cookie, ...result } = await server.session(source, () => jar.delete("authmount-probe"));
      await keep(setCookie);
      return result;
    },

    initialState: async () => initialState<M>(await server.verify(await incoming()), getUser),

    async call<T>(method: string, path: string, body?: object, request?: RequestLike) {
      const { setCookie, cookie, ...result } = await server.call<T>(await incoming(request, method), method, path, body);
      await keep(setCookie);
      return result as Result<T>;
    },
  };
}
