import { failed, ok, type Core } from "./core.js";
import type { Options, Result } from "./types.js";

/** What is remembered of a flow between its begin and its end in a redirect. */
interface Flow {
  verifier: string;
  /** An identity is linked to who is signed in. */
  link?: boolean | undefined;
}

const base64url = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

/** A verifier and its challenge by S256 (RFC 7636 section 4). */
export async function pkce(): Promise<[verifier: string, challenge: string]> {
  if (!globalThis.crypto?.subtle) throw new Error("PKCE needs WebCrypto, which browsers have on https and localhost only.");
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  return [verifier, base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))))];
}

/** What flows by redirect need: each has a verifier of its own, kept under the name that comes back in the URL. */
export function createFlows(core: Core, { redirectOrigins = [] }: Options) {
  const { storage, storageKey } = core;
  const prefix = `${storageKey}.flow.`;
  const page = () => globalThis.location as Location | undefined;

  /** Where to come back to; an error if that is another's. */
  function target(redirectTo: string | undefined): Result<URL | null> {
    const here = page()?.href;
    if (!redirectTo && !here) return ok(null);
    try {
      const url = new URL(redirectTo ?? "", here);
      if (!redirectTo) url.search = url.hash = "";
      if (!here || url.origin === page()!.origin || redirectOrigins.some((o) => o === url.origin || o === url.protocol)) return ok(url);
    } catch {
      // not a URL
    }
    return failed("redirect_not_allowed", "redirectTo is of another origin, which redirectOrigins does not have.");
  }

  /** Begins a flow: what its request carries. */
  async function begin(redirectTo: string | undefined, more: Partial<Flow> = {}): Promise<Result<{ id: string; verifier: string; fields: Record<string, string> }>> {
    const { data: url, error } = target(redirectTo);
    if (error) return { data: null, error };
    const [verifier, challenge] = await pkce();
    const id = `${Date.now().toString(36)}-${verifier.slice(0, 8)}`; // eight of 43 characters: 208 bits stay unknown
    // Flows that nobody came back from are forgotten after a day.
    for (const key of Object.keys(storage)) if (key.startsWith(prefix) && parseInt(key.slice(prefix.length), 36) < Date.now() - 864e5) storage.removeItem(key);
    await storage.setItem(prefix + id, JSON.stringify({ verifier, ...more }));
    url?.searchParams.set("am_flow", id);
    return ok({ id, verifier, fields: { code_challenge: challenge, code_challenge_method: "S256", ...(url && { redirect_to: url.href }) } });
  }

  /** The flow of that name, which is over with this. */
  async function take(id: string): Promise<Flow | null> {
    const text = await storage.getItem(prefix + id);
    if (!text) return null;
    await storage.removeItem(prefix + id);
    return JSON.parse(text);
  }

  return { target, begin, take };
}
