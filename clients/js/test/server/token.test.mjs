import assert from "node:assert/strict";
import test from "node:test";
import { createServerClient } from "authmount/server";

// A fake key server and a mint, so that each thing a token may lie about can be tried.
const issuer = "https://app.example.com/auth/v1";
const base64url = (data) => Buffer.from(typeof data === "string" ? data : JSON.stringify(data)).toString("base64url");
const kinds = {
  ES256: [{ name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" }],
  RS256: [{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) }],
  EdDSA: [{ name: "Ed25519" }],
};
async function mint(alg, kid = `${alg}-key`) {
  const [use] = kinds[alg];
  const { privateKey, publicKey } = await crypto.subtle.generateKey(use, true, ["sign", "verify"]);
  const jwk = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid, use: "sig", alg };
  delete jwk.key_ops;
  delete jwk.ext;
  return {
    jwk,
    async sign(claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const text = `${base64url({ alg, kid, typ: "at+jwt", ...header })}.${base64url({ iss: issuer, aud: "authenticated", sub: "u1", iat: now, exp: now + 900, ...claims })}`;
      return `${text}.${Buffer.from(await crypto.subtle.sign(use, privateKey, Buffer.from(text))).toString("base64url")}`;
    },
  };
}
/** A fetch that plays the key server, and counts. */
function keyServer(keys) {
  const server = { keys, asked: 0, down: false };
  server.fetch = async () => {
    server.asked++;
    if (server.down) throw new TypeError("fetch failed");
    return Response.json({ keys: server.keys });
  };
  return server;
}
const client = (server, more = {}) => createServerClient("https://app.example.com", { fetch: server.fetch, ...more });

for (const alg of Object.keys(kinds)) {
  test(`${alg} is verified, and what was changed after the signature is refused`, async () => {
    const m = await mint(alg);
    const auth = client(keyServer([m.jwk]));
    const token = await m.sign();
    assert.equal((await auth.verify(token)).data?.sub, "u1");
    const [head, , signature] = token.split(".");
    const other = base64url({ ...JSON.parse(Buffer.from(token.split(".")[1], "base64url")), sub: "somebody else" });
    assert.equal((await auth.verify(`${head}.${other}.${signature}`)).error?.code, "bad_token");
  });
}

test("issuer, audience, type and times are always checked", async () => {
  const m = await mint("ES256");
  const auth = client(keyServer([m.jwk]));
  const now = Math.floor(Date.now() / 1000);
  for (const [what, claims, header] of [
    ["another issuer", { iss: "https://other.example.com/auth/v1" }],
    ["no issuer", { iss: undefined }],
    ["another audience", { aud: "other" }],
    ["no audience", { aud: undefined }],
    ["expired", { exp: now - 31 }],
    ["no expiry", { exp: undefined }],
    ["an expiry that is no number", { exp: String(now + 900) }],
    ["of the future", { iat: now + 31 }],
    ["not good yet", { nbf: now + 31 }],
    ["no subject", { sub: undefined }],
    ["an ID token", {}, { typ: "JWT" }],
    ["no type", {}, { typ: undefined }],
    ["a critical extension", {}, { crit: ["b64"] }],
    ["no key id", {}, { kid: undefined }],
  ]) {
    assert.equal((await auth.verify(await m.sign(claims, header))).error?.code, "bad_token", what);
  }
  assert.ok((await auth.verify(await m.sign({ aud: ["other", "authenticated"], exp: now - 20, nbf: now + 20 }))).data, "within the leeway");
});

test("the algorithm is the key's: none, HS256 with the public key, and a swapped one are refused (RFC 8725)", async () => {
  const [es, rs] = [await mint("ES256"), await mint("RS256")];
  const auth = client(keyServer([es.jwk, rs.jwk]));
  const body = (await es.sign()).split(".")[1];
  for (const alg of ["none", "HS256", "RS256", "ES384", "constructor", "__proto__"]) {
    assert.equal((await auth.verify(await es.sign({}, { alg }))).error?.code, "bad_token", alg);
  }
  assert.equal((await auth.verify(`${base64url({ alg: "none", typ: "at+jwt", kid: es.jwk.kid })}.${body}.`)).error?.code, "bad_token");
  assert.equal((await auth.verify(await es.sign({}, { kid: rs.jwk.kid }))).error?.code, "bad_token");
});

test("what is no token is refused without asking for keys", async () => {
  const server = keyServer([]);
  const auth = client(server);
  for (const text of ["x", "a.b", "a.b.c", "é.é.é", "..", "e30.e30.e30", "bnVsbA.bnVsbA.AA", "x".repeat(20_000)]) {
    assert.equal((await auth.verify(text)).error?.code, "bad_token", text.slice(0, 20));
  }
  assert.equal((await auth.verify("")).error?.code, "missing_token");
  assert.equal(server.asked, 0);
});

test("keys are fetched once for many tokens", async () => {
  const m = await mint("ES256");
  const server = keyServer([m.jwk]);
  const auth = client(server);
  const token = await m.sign();
  for (const { error } of await Promise.all(Array.from({ length: 20 }, () => auth.verify(token)))) assert.equal(error, null);
  assert.equal(server.asked, 1);
});

test("the last good keys are kept in an outage; without any, the token is not said to be bad", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const m = await mint("ES256");
  const server = keyServer([m.jwk]);
  const auth = client(server);
  server.down = true;
  assert.equal((await auth.verify(await m.sign())).error?.code, "network_error");
  server.down = false;
  t.mock.timers.tick(1_000);
  assert.ok((await auth.verify(await m.sign())).data);
  server.down = true;
  t.mock.timers.tick(24 * 3600_000);
  assert.ok((await auth.verify(await m.sign())).data, "a day later");
  assert.equal(server.asked, 3);
});

test("an unknown key id asks once, and then not for ten seconds", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const [old, fresh] = [await mint("ES256", "old"), await mint("ES256", "new")];
  const server = keyServer([old.jwk]);
  const auth = client(server);
  await auth.verify(await old.sign());
  for (let i = 0; i < 50; i++) await auth.verify(await fresh.sign({}, { kid: `made-up-${i}` }));
  assert.equal(server.asked, 1, "asked a moment ago");
  t.mock.timers.tick(10_000);
  server.keys = [old.jwk, fresh.jwk];
  const rotated = await fresh.sign();
  const found = await Promise.all(Array.from({ length: 20 }, () => auth.verify(rotated)));
  assert.ok(found.every((f) => f.data), "the rotation is seen, by all that wait for it");
  assert.equal(server.asked, 2);
});

test("a withdrawn key is dropped once newer keys are there", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const [old, fresh] = [await mint("ES256", "old"), await mint("ES256", "new")];
  const server = keyServer([old.jwk]);
  const auth = client(server);
  await auth.verify(await old.sign());
  server.keys = [fresh.jwk];
  t.mock.timers.tick(600_000);
  assert.ok((await auth.verify(await old.sign())).data, "good while the newer ones are fetched");
  for (let i = 0; i < 20 && server.asked < 2; i++) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.equal((await auth.verify(await old.sign())).error?.code, "bad_token");
});

test("a set with a key that is unusable still serves the others", async () => {
  const m = await mint("ES256");
  const auth = client(keyServer([{ kty: "EC", crv: "P-256", kid: "broken", x: "AA", y: "AA" }, { kty: "oct", kid: "secret", k: "AA" }, m.jwk]));
  assert.ok((await auth.verify(await m.sign())).data);
});

test("a token that is about to expire: renewed beside cookies only, and good until then in an outage", async () => {
  const m = await mint("ES256");
  const server = keyServer([m.jwk]);
  const asked = [];
  const auth = client(server, {
    fetch: async (url, init) => {
      if (String(url).endsWith("jwks.json")) return server.fetch();
      asked.push(String(url));
      return Response.json({ code: "unavailable", message: "…" }, { status: 503 });
    },
  });
  const token = await m.sign({ exp: Math.floor(Date.now() / 1000) + 30 });
  const refresh = "__Host-authmount-refresh=v1.x";
  assert.ok((await auth.session({ headers: { authorization: `Bearer ${token}`, cookie: refresh } })).data);
  assert.deepEqual(asked, [], "the cookies may be somebody else's");
  assert.ok((await auth.session({ headers: { cookie: `__Host-authmount-access=${token}; ${refresh}` } })).data, "an outage");
  assert.equal(asked.length, 1);
});

test("no error holds the token", async () => {
  const m = await mint("ES256");
  const token = await m.sign({ iss: "x" });
  assert.ok(!JSON.stringify(await client(keyServer([m.jwk])).verify(token)).includes(token.split(".")[2]));
});

test("an answer without keys throws no good ones away, and is no refusal where there were none", async (t) => {
  const m = await mint("ES256");
  const server = keyServer([m.jwk]);
  const auth = client(server);
  const token = await m.sign({ exp: Math.floor(Date.now() / 1000) + 9000 });
  assert.ok((await auth.verify(token)).data);
  server.keys = [];
  const real = Date.now;
  t.after(() => (Date.now = real));
  Date.now = () => real() + 700_000;
  for (let i = 0; i < 3; i++) {
    assert.ok((await auth.verify(token)).data);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await client(keyServer([])).verify(token)).error?.code, "network_error");
});
