/**
 * Bindings for SvelteKit with sessions in cookies.
 *
 * ```ts
 * // src/lib/server/auth.ts
 * export const { handle } = createSvelteKitAuth("https://app.example.com", { internalUrl: "http://127.0.0.1:8080", protect: ["/account"] });
 * // src/hooks.server.ts
 * export { handle } from "$lib/server/auth";
 * // src/routes/account/+page.server.ts
 * export const load = async ({ locals }) => ({ email: (await locals.auth.requireUser()).email });
 * ```
 *
 * `handle` passes requests below the mount path on to the Authmount server, refreshes sessions, redirects
 * visitors of `protect`, and sets `locals.auth`. It is not a security boundary, because remote functions and
 * endpoints have other paths than the page that uses them: code that returns a user's data calls
 * `locals.auth.requireUser()`.
 *
 * @module
 */
import { error, redirect } from "@sveltejs/kit";
import type { ServerClient } from "../server/index.js";
import { createSite, type SiteOptions } from "../ssr/core.js";
import { createProxy } from "../ssr/proxy.js";
import { parseSetCookie, type SessionCookie } from "../ssr/set-cookie.js";
import { visit, type RequestAuth } from "../ssr/visit.js";

export type { Claims, Failure, Result, ServerClient, ServerOptions } from "../server/index.js";
export type { RequestAuth } from "../ssr/visit.js";
export { localPath } from "../ssr/core.js";

/** Options of {@link createSvelteKitAuth}. */
export interface SvelteKitOptions extends SiteOptions {}

/** The part of SvelteKit's `RequestEvent` that this module uses. */
export interface RequestEventLike {
  request: Request;
  url: URL;
  locals: object;
  cookies: { set(name: string, value: string, options: Omit<SessionCookie, "name" | "value"> & { encode(value: string): string }): void };
  isDataRequest: boolean;
  isRemoteRequest: boolean;
}

/** The functions that an application uses, see {@link createSvelteKitAuth}. */
export interface SvelteKitAuth {
  /** The underlying client of `authmount/server`. */
  server: ServerClient;
  /** The server hook. Combine it with other hooks by `sequence`, before those that read cookies. */
  handle<E extends RequestEventLike>(input: { event: E; resolve(event: E): Promise<Response> | Response }): Promise<Response>;
}

/**
 * Creates the server hook of an application. Call it once, at module level.
 *
 * @param url the project URL: the application's own origin
 * @throws TypeError if the URL or a path in `protect` is invalid
 */
export function createSvelteKitAuth(url: string, options: SvelteKitOptions = {}): SvelteKitAuth {
  const site = createSite(url, options);
  const pass = createProxy(site.server.url, options);

  return {
    server: site.server,

    async handle({ event, resolve }) {
      const { request, url, cookies } = event;
      if (site.owns(url.pathname)) return pass({ method: request.method, target: url.pathname + url.search, headers: request.headers, body: request.body, signal: request.signal });
      const v = visit(site, request, event.isRemoteRequest ? "" : url.pathname + url.search, {
        signIn: (location) => redirect(303, location),
        unavailable: () => error(503, "The sign-in service does not respond"),
        // SvelteKit's own cookies, because requests of `event.fetch` send them.
        keep: (lines) => {
          for (const { name, value, ...attributes } of lines.map(parseSetCookie)) cookies.set(name, value, { ...attributes, encode: String });
        },
      });
      (event.locals as { auth: RequestAuth }).auth = v.auth;
      const location = await v.open();
      if (location && event.isDataRequest) redirect(303, location); // SvelteKit answers its own navigation in JSON
      if (location) return v.leave(location);
      return v.finish(await resolve(event));
    },
  };
}
