/** Passes requests on to the Authmount server, so that it is on the application's origin, where its cookies work. */
import type { ServerOptions } from "../server/index.js";

/** Headers of one connection (RFC 9110, section 7.6.1), those that only a proxy in front may set, and encodings, which fetch negotiates itself. */
const DROPPED = /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-length|forwarded|x-forwarded-.*|x-real-ip|accept-encoding)$/;

/** The parts of a request that are passed on. */
export interface Passing {
  method: string;
  /** Path and query. */
  target: string;
  headers: Headers;
  body?: unknown; // of the Fetch API, or Node's request
  signal?: AbortSignal;
}

/** Returns a function that passes a request on, and returns 502 if the server does not respond. */
export function createProxy(url: string, { internalUrl, forwardedFor, fetch: ask = fetch }: ServerOptions) {
  const { origin } = new URL(internalUrl ?? url);
  return async ({ method, target, headers: received, body, signal }: Passing): Promise<Response> => {
    const headers = new Headers();
    for (const [name, value] of received) if (!DROPPED.test(name) || (forwardedFor && name === "x-forwarded-for")) headers.append(name, value);
    try {
      const init = { method, headers, redirect: "manual", duplex: "half", ...(signal && { signal }), ...(!/^(GET|HEAD)$/.test(method) && { body }) } as RequestInit;
      const answer = await ask(origin + target, init);
      const sent = new Headers(answer.headers);
      for (const name of ["connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length"]) sent.delete(name); // fetch has decoded the body
      return new Response(answer.body, { status: answer.status, headers: sent });
    } catch {
      return new Response(null, { status: 502, headers: { "cache-control": "no-store" } });
    }
  };
}
