/** For how long fetched keys are fresh; older ones are used while newer ones are fetched. */
const FRESH = 600_000;
/** After an unknown key id, or a failure, nothing is asked for this long. */
const PAUSE = 10_000;

/** What each algorithm needs of a key, and how WebCrypto calls it (RFC 7518, RFC 8037). */
const ways: [alg: string, kty: string, crv: string | undefined, name: string][] = [
  ["ES256", "EC", "P-256", "ECDSA"],
  ["RS256", "RSA", undefined, "RSASSA-PKCS1-v1_5"],
  ["EdDSA", "OKP", "Ed25519", "Ed25519"],
];

/** Checks a signature. Rejects if the keys could not be fetched. */
export type CheckSignature = (alg: string, kid: string, signature: BufferSource, signed: BufferSource) => Promise<boolean>;

/**
 * The public keys of a server (RFC 7517), fetched when the first token comes. A failure keeps
 * the last good ones; an unknown key id asks again, at most once every ten seconds, so that
 * nobody can make this server ask in a loop by inventing ids.
 */
export function keySet(get: () => Promise<Response>): CheckSignature {
  let keys: Map<string, { alg: string; use: AlgorithmIdentifier; key: CryptoKey }> | undefined;
  let fetchedAt = 0;
  let askedAt = 0;
  let asking: Promise<void> | undefined;
  const passed = (since: number, wait: number) => Math.abs(Date.now() - since) >= wait; // the clock may be set back

  const load = async (): Promise<void> => {
    askedAt = Date.now();
    const response = await get();
    const found: typeof keys = new Map();
    for (const jwk of (await response.json()).keys) {
      // The key says what it is for, never the token (RFC 8725, section 3.1).
      for (const [alg, kty, namedCurve, name] of ways) {
        if (jwk.kty !== kty || jwk.crv !== namedCurve || (jwk.alg ?? alg) !== alg) continue;
        const use = { name, namedCurve, hash: "SHA-256" } as EcKeyImportParams; // each takes of it what it knows
        const key = await crypto.subtle.importKey("jwk", jwk, use, false, ["verify"]).catch(() => null);
        if (key) found.set(jwk.kid, { alg, use, key });
      }
    }
    if (found.size) keys = found; // none at all is a fault of the server's
    fetchedAt = askedAt;
  };
  // A Cloudflare worker may not wait for what another request began.
  const renew = () => (globalThis.navigator?.userAgent === "Cloudflare-Workers" ? load() : (asking ??= load().finally(() => (asking = undefined))));

  return async (alg, kid, signature, signed) => {
    if (!keys) await renew();
    else if (!keys.has(kid) || passed(fetchedAt, FRESH)) {
      // What is there is good until something newer is.
      const asked = (asking || passed(askedAt, PAUSE)) && renew().catch(() => {});
      if (!keys.has(kid)) await asked;
    }
    const known = keys!.get(kid);
    return known?.alg === alg && crypto.subtle.verify(known.use, known.key, signature, signed);
  };
}
