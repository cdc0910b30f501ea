import type { Claims } from "./claims.js";
import type { CheckSignature } from "./keys.js";

/** Allowed clock difference in seconds; the Authmount server uses the same. */
const LEEWAY = 30;
/** The `typ` of access tokens (RFC 9068). Other kinds of JWT are rejected. */
const TYPE = "at+jwt";

const bytes = (text: string) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const json = (text: string) => JSON.parse(new TextDecoder().decode(bytes(text)));

/** The required issuer and audience of a token. */
export interface Expected {
  issuer: string;
  audience: string;
}

/**
 * Returns the claims of an access token if it is valid now and from this server, else null
 * (RFC 7519, section 7.2; RFC 8725). Rejects if the keys could not be fetched.
 */
export async function checkToken(token: string, expected: Expected, check: CheckSignature): Promise<Claims | null> {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null;
  const [head, body, signature] = token.split(".") as [string, string, string];
  let header, claims, signed;
  try {
    [header, claims, signed] = [json(head), json(body), bytes(signature)];
  } catch {
    return null;
  }
  if (header?.typ !== TYPE || "crit" in header) return null;
  const now = Date.now() / 1000;
  const { iss, sub, aud, exp, iat, nbf = iat } = claims ?? {};
  const until = (time: unknown, sign: number) => typeof time === "number" && sign * (time - now) <= LEEWAY;
  if (iss !== expected.issuer || ![aud].flat().includes(expected.audience) || typeof sub !== "string" || !until(exp, -1) || !until(iat, 1) || !until(nbf, 1))
    return null; // checked before the keys, so that tokens of other issuers cause no fetch
  return (await check(header.alg, header.kid, signed, new TextEncoder().encode(`${head}.${body}`))) ? claims : null;
}
