/**
 * Next.js, App Router, sessions in cookies. The server is on the origin of the application
 * (`rewrites` of next.config lead there), so that its cookies come along.
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
 * The middleware renews sessions and spares visitors a page they may not see. It protects
 * nothing: what is protected asks `auth()`, which verifies by itself (CVE-2025-29927 went
 * around every middleware).
 *
 * @module
 */
import { cookies, headers } from "next/headers.js";
import { NextResponse, type NextRequest } from "next/server.js";
import { createServerClient, type Claims, type Failure, type RequestLike, type Result, type ServerClient, type ServerOptions } from "../server/index.js";
import type { State, User } from "../types.js";
import { parseSetCookie } from "./set-cookie.js";

export type { Claims, Failure, Result, ServerClient, ServerOptions } from "../server/index.js";

/** What {@link createNextAuth} may be told. */
export interface NextOptions extends ServerOptions {
  /** Paths for which, and below which, the middleware sends visitors to sign in. */
  protect?: string[];
  /** The page to sign in on; gets `?return_to=`, a path. Default "/sign-in". */
  signIn?: string;
}

/** Who is there, in an application. */
export interface NextAuth {
  /** What all this rests on. */
  server: ServerClient;
  /** Renews sessions in cookies, and sends visitors of protected paths to sign in. */
  middleware(request: NextRequest): Promise<NextResponse>;
  /**
   * Who sent the request, in a server component, action or route handler. It verifies by itself.
   *
   * A route handler that changes something by cookie gives its `request`, so that those of other
   * sites are refused. With `refresh` an expired session is renewed, in actions and route handlers:
   * server components cannot set cookies, and there it throws as Next.js does, with nothing renewed.
   *
   * Errors: those of `ServerClient.verify`, and with refresh of `ServerClient.session`.
   */
  auth(options?: { request?: RequestLike; refresh?: boolean }): Promise<Result<Claims>>;
  /** The user as the server has it now, see `ServerClient.getUser`. */
  getUser(): Promise<Result<User>>;
  /** The state to render with, for `<AuthProvider initial>`; "loading" in an outage, never "signed-out". */
  initialState(): Promise<State>;
  /**
   * Calls an endpoint in an action or route handler, and sets the cookies it answers with:
   * `call("POST", "/login", { email, password })`.
   *
   * @param request of a route handler; without, what changes something counts as a post, which another site may not make
   */
  call<T = unknown>(method: string, path: string, body?: object, request?: RequestLike): Promise<Result<T>>;
}

/** Sets cookies that the server sent, where Next.js lets one. */
async function keep(lines: string[]): Promise<void> {
  if (!lines.length) return;
  const jar = await cookies();
  for (const { name, value, attributes: a } of lines.map(parseSetCookie)) {
    jar.set({
      name,
      value,
      path: "/",
      httpOnly: true,
      secure: "secure" in a,
      sameSite: "lax",
      ...("max-age" in a ? { maxAge: Number(a["max-age"]) } : {}),
    });
  }
}

/**
 * Makes what an application asks who is there; once, at module level.
 *
 * @param url the project URL: the application's own origin
 * @throws TypeError for a URL that is none
 */
export function createNextAuth(url: string, { protect = [], signIn = "/sign-in", ...options }: NextOptions = {}): NextAuth {
  const server = createServerClient(url, options);
  const mount = new URL(server.url).pathname;
  const below = (path: string, at: string) => (path + "/").startsWith(at.replace(/\/*$/, "/"));
  /** Whether the server has said that nobody is signed in: a proxy that refuses has not. */
  const refused = ({ code, status }: Failure) => code !== "network_error" && status >= 400 && status < 429;
  for (const path of protect) if (!path.startsWith("/")) throw new TypeError(`protect: ${path} does not begin with a slash`);
  const incoming = async (): Promise<RequestLike> => ({ headers: await headers() });
  const getUser = async () => server.getUser<User>(await incoming());

  return {
    server,
    getUser,

    async middleware(request) {
      const path = request.nextUrl.pathname;
      if (below(path, mount)) return NextResponse.next(); // the server's own business
      const { error, setCookie, cookie } = await server.session(request);
      const away = error && refused(error) && /^(GET|HEAD)$/.test(request.method) && protect.some((p) => below(path, p));
      let response;
      if (away) {
        const to = request.nextUrl.clone();
        to.search = `?return_to=${encodeURIComponent(path + to.search)}`;
        to.pathname = signIn;
        response = NextResponse.redirect(to);
      } else {
        const sent = new Headers(request.headers);
        if (setCookie.length) sent.set("cookie", cookie);
        response = NextResponse.next({ request: { headers: sent } });
      }
      for (const line of setCookie) response.headers.append("set-cookie", line);
      if (setCookie.length) response.headers.set("cache-control", "private, no-store"); // nobody else may be given it
      return response;
    },

    async auth({ request, refresh } = {}) {
      const source = request ?? (await incoming());
      if (!refresh) return server.verify(source);
      const jar = await cookies();
      // Only trying tells where cookies can be set: what is renewed and not kept is lost.
      const { setCookie, cookie, ...result } = await server.session(source, () => jar.delete("authmount-probe"));
      await keep(setCookie);
      return result;
    },

    async initialState() {
      const known = await server.verify(await incoming());
      const { data, error } = known.data ? await getUser() : known;
      if (!error) return { status: "signed-in", user: data, session: null };
      const out = error.code !== "token_stale" && refused(error);
      return { status: out ? "signed-out" : "loading", user: null, session: null };
    },

    async call<T>(method: string, path: string, body?: object, request?: RequestLike) {
      const { setCookie, cookie, ...result } = await server.call<T>(request ?? { ...(await incoming()), method }, method, path, body);
      await keep(setCookie);
      return result as Result<T>;
    },
  };
}
