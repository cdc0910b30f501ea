/**
 * Bindings for TanStack Start with sessions in cookies.
 *
 * ```ts
 * // src/start.ts
 * const auth = createStartAuth("https://app.example.com", { internalUrl: "http://127.0.0.1:8080", protect: ["/account"] });
 * const session = createMiddleware().server(({ next, ...input }) => auth.middleware(input, (context) => next({ context })));
 * export const startInstance = createStart(() => ({ requestMiddleware: [session] }));
 * // src/routes/account.tsx
 * const account = createServerFn().handler(async ({ context }) => (await context.auth.requireUser()).email);
 * ```
 *
 * The middleware passes requests below the mount path on to the Authmount server, refreshes sessions,
 * redirects visitors of `protect`, and adds `auth` to the context. It is not a security boundary, because
 * server functions have other paths than the page that calls them: code that returns a user's data calls
 * `context.auth.requireUser()`.
 *
 * @module
 */
import type { ServerClient } from "../server/index.js";
import { createSite, type SiteOptions } from "../ssr/core.js";
import { createProxy } from "../ssr/proxy.js";
import { visit, type RequestAuth } from "../ssr/visit.js";
import type { Metadata } from "../types.js";

export type { Claims, Failure, Result, ServerClient, ServerOptions } from "../server/index.js";
export type { RequestAuth } from "../ssr/visit.js";
export { localPath } from "../ssr/core.js";

/** Options of {@link createStartAuth}. */
export interface StartOptions extends SiteOptions {}

/** What the middleware adds to the context of routes and server functions. */
export interface StartContext<M extends Metadata = {}> {
  auth: RequestAuth<M>;
}

/** The functions that an application uses, see {@link createStartAuth}. */
export interface StartAuth<M extends Metadata = {}> {
  /** The underlying client of `authmount/server`. */
  server: ServerClient;
  /** For a request middleware: `({ next, ...input }) => auth.middleware(input, (context) => next({ context }))`. Put it after the CSRF middleware and before those that read cookies. */
  middleware<R extends { response: Response }>(input: { request: Request; handlerType: "serverFn" | "router" }, respond: (context: StartContext<M>) => Promise<R> | R): Promise<R | Response>;
}

/** A redirect as TanStack Router throws it: a response with the options of its navigation. */
const redirect = (href: string) => Object.assign(new Response(null, { status: 303, headers: { location: href } }), { options: { href, statusCode: 303 } });

/**
 * Creates the request middleware of an application. Call it once, at module level.
 *
 * @typeParam M the shape of the users' metadata, as for `createClient`
 * @param url the project URL: the application's own origin
 * @throws TypeError if the URL or a path in `protect` is invalid
 */
export function createStartAuth<M extends Metadata = {}>(url: string, options: StartOptions = {}): StartAuth<M> {
  const site = createSite(url, options);
  const pass = createProxy(site.server.url, options);

  return {
    server: site.server,

    async middleware({ request, handlerType }, respond) {
      const { pathname, search } = new URL(request.url);
      if (site.owns(pathname)) return pass({ method: request.method, target: pathname + search, headers: request.headers, body: request.body, signal: request.signal });
      let outage = false;
      const v = visit<M>(site, request, handlerType === "serverFn" ? "" : pathname + search, {
        signIn: (location) => {
          throw redirect(location);
        },
        unavailable: () => {
          outage = true;
          throw new Error("The sign-in service does not respond");
        },
      });
      const location = await v.open();
      if (location) return v.leave(location);
      try {
        const result = await respond({ auth: v.auth });
        const { response } = result; // of an error in a loader it has the status 500
        return { ...result, response: v.finish(outage && response.status === 500 ? new Response(response.body, { status: 503, headers: response.headers }) : response) };
      } catch (thrown) {
        if (thrown instanceof Response) return v.finish(thrown);
        throw thrown;
      }
    },
  };
}
