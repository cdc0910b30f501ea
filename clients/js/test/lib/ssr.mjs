/** The bindings for server-rendering frameworks, each as its framework calls it, with one request and one response of the Fetch API. */
import { IncomingMessage, ServerResponse } from "node:http";
import { createNextAuth } from "authmount/next";
import { createNuxtAuth } from "authmount/nuxt";
import { createSvelteKitAuth } from "authmount/sveltekit";
import { createStartAuth } from "authmount/tanstack-start";
import { NextRequest } from "next/server.js";

export const origin = "https://app.example.com";

/** What a binding makes of a request: `run(request, page)`, where page draws the response with the request's authentication. */
export const bindings = {
  sveltekit(options) {
    const { handle } = createSvelteKitAuth(origin, options);
    return async (request, page) => {
      const set = new Map();
      const event = { request, url: new URL(request.url), locals: {}, isDataRequest: false, isRemoteRequest: false, cookies: { set: (name, value, { maxAge }) => set.set(name, `${name}=${value}${maxAge === undefined ? "" : `; Max-Age=${maxAge}`}`) } };
      try {
        return await handle({
          event,
          async resolve() {
            const response = await page(event.locals.auth);
            for (const line of set.values()) response.headers.append("set-cookie", line);
            return response;
          },
        });
      } catch (thrown) {
        if (!thrown.status) throw thrown; // SvelteKit makes responses of redirect() and error()
        return new Response(null, { status: thrown.status, headers: thrown.location ? { location: thrown.location } : {} });
      }
    };
  },
  "tanstack-start"(options) {
    const { middleware } = createStartAuth(origin, options);
    return async (request, page) => {
      const result = await middleware({ request, handlerType: "router" }, async ({ auth }) => ({ response: await page(auth).catch((e) => (e instanceof Response ? Promise.reject(e) : new Response(null, { status: 500 }))) }));
      return result instanceof Response ? result : result.response;
    };
  },
  nuxt(options) {
    const auth = createNuxtAuth(origin, options);
    return async (request, page) => {
      const req = new IncomingMessage(null);
      Object.assign(req, { method: request.method, url: request.url.slice(origin.length), headers: Object.fromEntries(request.headers) });
      const res = new ServerResponse(req);
      const event = { method: request.method, node: { req, res } };
      let response = await auth.middleware(event);
      try {
        response ??= await page(auth(event), req.headers.cookie);
      } catch (thrown) {
        response = new Response(null, { status: thrown.statusCode ?? 500 });
      }
      for (const [name, value] of response.headers) name === "set-cookie" ? res.appendHeader(name, value) : res.setHeader(name, value);
      res.writeHead(response.status);
      const headers = new Headers();
      for (const [name, value] of Object.entries(res.getHeaders())) for (const v of [value].flat()) headers.append(name, v);
      return new Response(response.body, { status: response.status, headers });
    };
  },
};

/** Next's middleware is no place for a page: this is all that a request without one shows. */
export const next = (options) => {
  const { middleware } = createNextAuth(origin, options);
  return async (request) => middleware(new NextRequest(request));
};

const encode = (object) => Buffer.from(JSON.stringify(object)).toString("base64url");

/** A key of a server, and the tokens that it signs. */
export async function newKey(kid = "k") {
  const { publicKey, privateKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const jwks = { keys: [{ ...(await crypto.subtle.exportKey("jwk", publicKey)), kid, alg: "ES256", use: "sig" }] };
  const now = Math.floor(Date.now() / 1000);
  return {
    jwks,
    async sign(claims = {}, header = {}) {
      const text = `${encode({ alg: "ES256", typ: "at+jwt", kid, ...header })}.${encode({ iss: `${origin}/auth/v1`, aud: "authenticated", sub: "ada", iat: now, exp: now + 600, ...claims })}`;
      return `${text}.${Buffer.from(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, Buffer.from(text))).toString("base64url")}`;
    },
  };
}
