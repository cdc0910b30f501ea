/**
 * Bindings for the server of Nuxt with sessions in cookies.
 *
 * ```ts
 * // server/utils/auth.ts
 * export const auth = createNuxtAuth("https://app.example.com", { internalUrl: "http://127.0.0.1:8080", protect: ["/account"] });
 * // server/middleware/auth.ts
 * export default defineEventHandler(auth.middleware);
 * // server/api/account.get.ts
 * export default defineEventHandler(async (event) => ({ email: (await auth(event).requireUser()).email }));
 * ```
 *
 * The middleware passes requests below the mount path on to the Authmount server, refreshes sessions, and
 * redirects visitors of `protect`. It is not a security boundary, because data comes from handlers with other
 * paths than the page: code that returns a user's data calls `auth(event).requireUser()`.
 *
 * @module
 */
import type { ServerClient } from "../server/index.js";
import { createSite, PRIVATE, type SiteOptions } from "../ssr/core.js";
import { createProxy } from "../ssr/proxy.js";
import { merge } from "../ssr/set-cookie.js";
import { visit, type RequestAuth, type Visit } from "../ssr/visit.js";
import type { Metadata } from "../types.js";

export type { Claims, Failure, Result, ServerClient, ServerOptions } from "../server/index.js";
export type { RequestAuth } from "../ssr/visit.js";
export { localPath } from "../ssr/core.js";

/** Options of {@link createNuxtAuth}. */
export interface NuxtOptions extends SiteOptions {}

/** The part of h3's `H3Event` that this module uses. */
export interface EventLike {
  method: string;
  node: {
    req: { url?: string; originalUrl?: string; method?: string; headers: Record<string, string | string[] | undefined> };
    res: {
      getHeader(name: string): number | string | string[] | undefined;
      setHeader(name: string, value: string | string[]): unknown;
      writeHead: (...all: never[]) => unknown;
    };
  };
}

/** The functions that an application uses, see {@link createNuxtAuth}. */
export interface NuxtAuth<M extends Metadata = {}> {
  /** Returns the authentication of a request. */
  (event: EventLike): RequestAuth<M>;
  /** The underlying client of `authmount/server`. */
  server: ServerClient;
  /** The function of a server middleware. Nuxt runs middleware by file name: it goes before those that read cookies. */
  middleware(event: EventLike): Promise<Response | undefined>;
}

/** An error that ends a request with its status. h3 knows errors by this mark, also those of other copies of itself. */
class HTTPError extends Error {
  static __h3_error__ = true;
  fatal = false;
  unhandled = false;
  statusMessage: string;
  constructor(readonly statusCode: number, message: string) {
    super(message);
    this.statusMessage = message;
  }
  toJSON() {
    return { message: this.message, statusCode: this.statusCode, statusMessage: this.statusMessage };
  }
}

/**
 * Creates the authentication functions of an application. Call it once, at module level.
 *
 * @typeParam M the shape of the users' metadata, as for `createClient`
 * @param url the project URL: the application's own origin
 * @throws TypeError if the URL or a path in `protect` is invalid
 */
export function createNuxtAuth<M extends Metadata = {}>(url: string, options: NuxtOptions = {}): NuxtAuth<M> {
  const site = createSite(url, options);
  const pass = createProxy(site.server.url, options);
  const visits = new WeakMap<object, Visit<M>>();
  const target = ({ node: { req } }: EventLike) => req.originalUrl ?? req.url ?? "/"; // as the browser sent it: h3 decodes event.path

  const visitOf = (event: EventLike): Visit<M> => {
    const known = visits.get(event.node.req);
    if (known) return known;
    const { req, res } = event.node;
    let set = false;
    const isPrivate = () => {
      if (set || !/\b(private|no-store)\b/.test(String(res.getHeader("cache-control") ?? ""))) res.setHeader("cache-control", PRIVATE);
    };
    let varies = false;
    const v: Visit<M> = visit<M>(site, { method: event.method, headers: req.headers }, target(event), {
      signIn: () => {
        throw new HTTPError(401, "Sign in first");
      },
      unavailable: () => {
        throw new HTTPError(503, "The sign-in service does not respond");
      },
      vary: () => {
        isPrivate();
        if (varies) return;
        varies = true;
        // Again when the headers are sent, because a handler may have set others.
        const write = res.writeHead;
        res.writeHead = (...all) => {
          isPrivate();
          return write.apply(res, all);
        };
      },
      keep: (lines) => {
        set = true;
        res.setHeader("set-cookie", merge([res.getHeader("set-cookie") ?? []].flat().map(String), lines));
        req.headers.cookie = v.cookie(); // requests of useRequestFetch send it
      },
    });
    visits.set(req, v);
    return v;
  };

  return Object.assign((event: EventLike) => visitOf(event).auth, {
    server: site.server,

    async middleware(event: EventLike) {
      const { req } = event.node;
      const { pathname, search } = new URL(target(event), site.server.url);
      if (site.owns(pathname)) return pass({ method: event.method, target: pathname + search, headers: headersOf(req.headers), body: req });
      const location = await visitOf(event).open();
      return location ? new Response(null, { status: 303, headers: { location } }) : undefined;
    },
  });
}

/** The headers of Node's request as those of the Fetch API. */
function headersOf(from: EventLike["node"]["req"]["headers"]): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(from)) for (const v of [value ?? []].flat()) headers.append(name, v);
  return headers;
}
