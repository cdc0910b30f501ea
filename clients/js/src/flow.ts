import type { Core } from "./core.js";
import { AuthError } from "./error.js";
import { parsed } from "./send.js";
import type { Options } from "./types.js";

/** What is remembered of a flow between its begin and its end in a redirect. */
export interface Flow {
  verifier: string;
  /** An identity is linked to who is signed in. */
  link?: boolean;
}

const base64url = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** A verifier and its challenge by S256 (RFC 7636 section 4). */
export async function pkce(): Promise<[verifier: string, challenge: string]> {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)).buffer);
  return [verifier, base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)))];
}

/** Where to come back to: this page by default. Throws for another's origin that is not allowed. */
export function redirectURL(redirectTo: string | undefined, { redirectOrigins }: Options): URL | undefined {
  const here = globalThis.location as Location | undefined;
  if (!redirectTo) return here && new URL(here.origin + here.pathname);
  try {
    const url = new URL(redirectTo, here?.href);
    if (url.origin === here?.origin || (redirectOrigins ? redirectOrigins.some((o) => o === url.origin || o === url.protocol) : !here)) return url;
  } catch {
    // not a URL
  }
  throw new AuthError("redirect_not_allowed", "redirectTo is not in redirectOrigins");
}

/** What flows by redirect need: each has a verifier of its own, kept under the name that comes back in the URL. */
export function createFlows({ storage, storageKey }: Core, options: Options) {
  const prefix = `${storageKey}.flow.`;

  return {
    /** Begins a flow: its name, and what its request carries. */
    async begin(redirectTo?: string, link?: boolean): Promise<[id: string, fields: Record<string, string>]> {
      const url = redirectURL(redirectTo, options);
      const [verifier, code_challenge] = await pkce();
      const id = `${Date.now().toString(36)}-${verifier.slice(0, 8)}`; // 8 of 43 characters: 208 bits stay unknown
      // Flows that nobody came back from are forgotten after a day.
      for (const key of Object.keys(storage)) if (key.startsWith(prefix) && parseInt(key.slice(prefix.length), 36) < Date.now() - 864e5) storage.removeItem(key);
      await storage.setItem(prefix + id, JSON.stringify({ verifier, link }));
      url?.searchParams.set("am_flow", id);
      return [id, { code_challenge, code_challenge_method: "S256", ...(url && { redirect_to: url.href }) }];
    },
    /** The flow of a name, if it began here. */
    async find(id: string | undefined): Promise<Flow | null> {
      return parsed(await storage.getItem(prefix + id));
    },
    /** Forgets it. */
    end: async (id: string | undefined) => void (await storage.removeItem(prefix + id)),
  };
}
