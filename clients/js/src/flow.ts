import { AuthError } from "./error.js";
import { attempt } from "./send.js";
import type { Options } from "./types.js";

/** What is remembered of a flow between its begin and its end in a redirect. */
export interface Flow {
  verifier: string;
  /** An identity is linked to who is signed in. */
  link?: boolean;
}

/** Where to come back to: this page by default. Throws for another's origin that is not allowed. */
export function redirectURL(redirectTo: string | undefined, { redirectOrigins }: Options): URL | undefined {
  const here = globalThis.location as Location | undefined;
  if (!redirectTo) return here && new URL(here.origin + here.pathname);
  const url = attempt(() => new URL(redirectTo, here?.href));
  if (url && (url.origin === here?.origin || (redirectOrigins ? redirectOrigins.some((o) => o === url.origin || o === url.protocol) : !here))) return url;
  throw new AuthError("redirect_not_allowed", "redirectTo is not in redirectOrigins");
}

/** A verifier of 244 random bits, and its challenge by S256 (RFC 7636 section 4). */
export async function pkce(): Promise<[verifier: string, challenge: string]> {
  const verifier = crypto.randomUUID() + crypto.randomUUID();
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return [verifier, btoa(String.fromCharCode(...new Uint8Array(digest))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "")];
}
