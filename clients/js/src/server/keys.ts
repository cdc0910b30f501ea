/** Milliseconds for which fetched keys are fresh. Older ones are used while newer ones are fetched. */
const FRESH = 600_000;
/** Milliseconds between fetches after an unknown key id or a failure. */
const PAUSE = 10_000;

/** The key type of each algorithm (RFC 7518, RFC 8037), and its name in WebCrypto. */
const ways: [alg: string, kty: string, crv: string | undefined, name: string][] = [
  ["ES256", "EC", "P-256", "ECDSA"],
  ["RS256", "RSA", undefined, "RSASSA-PKCS1-v1_5"],
  ["EdDSA", "OKP", "Ed25519", "Ed25519"],
];

/** Verifies a signature. Rejects if the keys could not be fetched. */
export type CheckSignature = (alg: string, kid: string, signature: BufferSource, signed: BufferSource) => Promise<boolean>;

/**
 * Caches the public keys of a server (RFC 7517), fetched with the first token. After a failed
 * fetch the previous keys stay in use. An unknown key id causes a new fetch at most once every ten
 * seconds, so that tokens with invented ids cannot cause a flood of requests.
 */
export function keySet(get: () => Promise<Response>): CheckSignature {
  let keys: Map<string, { alg: string; use: AlgorithmIdentifier; key: CryptoKey }> | undefined;
  let fetchedAt = 0;
  let askedAt = 0;
  let asking: Promise<void> | undefined;
  const passed = (since: number, wait: number) => Math.abs(Date.now() - since) >= wait; // abs, because the clock may be set back

  const load = async (): Promise<void> => {
    askedAt = Date.now();
    const response = await get();
    const found: typeof keys = new Map();
    for (const jwk of (await response.json()).keys) {
      // The key determines the algorithm, never the token (RFC 8725, section 3.1).
      for (const [alg, kty, namedCurve, name] of ways) {
        if (jwk.kty !== kty || jwk.crv !== namedCurve || (jwk.alg ?? alg) !== alg) continue;
        const use = { name, namedCurve, hash: "SHA-256" } as EcKeyImportParams; // each algorithm ignores the other members
        const key = await crypto.subtle.importKey("jwk", jwk, use, false, ["verify"]).catch(() => null);
        if (key) found.set(jwk.kid, { alg, use, key });
      }
    }
    if (found.size) keys = found; // an empty set is an error of the server
    fetchedAt = askedAt;
  };
  // A Cloudflare worker must not await a promise of another request.
  const renew = () => (globalThis.navigator?.userAgent === "Cloudflare-Workers" ? load() : (asking ??= load().finally(() => (asking = undefined))));

  return async (alg, kid, signature, signed) => {
    if (!keys) await renew();
    else if (!keys.has(kid) || passed(fetchedAt, FRESH)) {
      // Use the cached keys until newer ones are loaded.
      const asked = (asking || passed(askedAt, PAUSE)) && renew().catch(() => {});
      if (!keys.has(kid)) await asked;
    }
    const known = keys!.get(kid);
    return known?.alg === alg && crypto.subtle.verify(known.use, known.key, signature, signed);
  };
}
