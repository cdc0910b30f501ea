/** The rules that hold in every binding for a framework that renders on the server. test/apps/ssr.test.mjs walks through real applications. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { localPath } from "authmount/next";
import { bindings, newKey, next, origin } from "../lib/ssr.mjs";

const key = await newKey();
const token = await key.sign();
const names = { access: "__Host-authmount-access", refresh: "__Host-authmount-refresh" };
const line = (name, value, more = "") => `${names[name]}=${value}; Path=/; HttpOnly; Secure; SameSite=Lax${more}`;
const renewed = () => new Response(JSON.stringify({}), { headers: [["set-cookie", line("access", token, "; Max-Age=600")], ["set-cookie", line("refresh", "r2", "; Max-Age=9000")]] });
const ended = () => new Response(JSON.stringify({ code: "session_ended", message: "" }), { status: 401, headers: [["set-cookie", line("access", "", "; Max-Age=0")], ["set-cookie", line("refresh", "", "; Max-Age=0")]] });

/** A server: its keys, and the answer to a refresh; other calls are counted by their path. */
const serverOf = (refresh, calls = {}) => async (url, init = {}) => {
  const path = String(url).slice(`${origin}/auth/v1`.length);
  calls[path] = (calls[path] ?? 0) + 1;
  if (path === "/.well-known/jwks.json") return Response.json(key.jwks);
  if (path === "/refresh") return refresh(init);
  if (path === "/login") return new Response(JSON.stringify({}), { headers: [["set-cookie", line("access", token)], ["set-cookie", line("refresh", "new")]] });
  return Response.json({ id: "ada", email: "ada@example.com" });
};
const request = (path, cookie = "", { method = "GET", ...headers } = {}) => new Request(origin + path, { method, headers: { cookie, ...headers } });
const withSession = `${names.refresh}=r1`;
const account = async (auth) => new Response((await auth.requireUser()).sub, { headers: { "cache-control": "public, max-age=60" } });
const cookies = (response) => response.headers.getSetCookie().map((l) => l.split(";")[0]);
const each = (name, f, all = bindings) => {
  for (const [binding, make] of Object.entries(all)) test(`${binding}: ${name}`, () => f(make, binding));
};

each("a token counts only with the signature, issuer, audience, type and time that it should have", async (make) => {
  const other = await newKey();
  const now = Date.now() / 1000;
  const run = make({ fetch: serverOf(ended) });
  assert.equal(await (await run(request("/", `${names.access}=${token}`), account)).text(), "ada");
  for (const [why, bad] of Object.entries({
    "another key": await other.sign(),
    issuer: await key.sign({ iss: "https://evil.example.org/auth/v1" }),
    audience: await key.sign({ aud: "other" }),
    expired: await key.sign({ iat: now - 900, exp: now - 60 }),
    "not yet": await key.sign({ nbf: now + 300 }),
    type: await key.sign({}, { typ: "JWT" }),
    "no algorithm": await key.sign({}, { alg: "none" }),
    nothing: "",
  })) {
    const response = await run(request("/", `${names.access}=${bad}`), account);
    assert.ok(response.status === 303 || response.status === 401, why);
    assert.equal(await response.text(), "", why);
  }
});

each("the session is in the cookies alone, and only in those that no other host can set", async (make) => {
  const run = make({ fetch: serverOf(ended) });
  for (const r of [
    request("/", "", { authorization: `Bearer ${token}` }),
    request("/", `authmount-access=${token}`),
    request("/", `${names.access}=${token}; ${names.access}=${token}`),
    request(`/?access_token=${token}`),
  ])
    assert.notEqual((await run(r, account)).status, 200);
  const mixed = await run(request("/", `${names.access}=${token}`, { authorization: "Bearer x.y.z" }), account);
  assert.equal(mixed.status, 200, "a header takes nothing either");
});

each("requests of a session at once share a refresh, and each response has its cookies once", async (make) => {
  const calls = {};
  const run = make({ fetch: serverOf(() => new Promise((done) => setTimeout(done, 50)).then(renewed), calls) });
  const responses = await Promise.all(Array.from({ length: 8 }, () => run(request("/", withSession), account)));
  assert.equal(calls["/refresh"], 1);
  for (const response of responses) {
    assert.equal(await response.text(), "ada");
    assert.deepEqual(cookies(response).sort(), [`${names.access}=${token}`, `${names.refresh}=r2`]);
    assert.equal(response.headers.get("cache-control"), "private, no-store");
  }
  await Promise.all([run(request("/", withSession), account), run(request("/", `${names.refresh}=another`), account)]);
  assert.equal(calls["/refresh"], 3, "neither a later request nor another session");
});

each("a post of another site joins no refresh", async (make) => {
  const run = make({ fetch: serverOf(() => new Promise((done) => setTimeout(done, 50)).then(renewed)) });
  const [, theirs] = await Promise.all([run(request("/", withSession), account), run(request("/", withSession, { method: "POST", "sec-fetch-site": "cross-site" }), account)]);
  assert.notEqual(theirs.status, 200);
  assert.deepEqual(cookies(theirs), []);
});

each("another browser with the same cookie joins no refresh", async (make) => {
  const calls = {};
  const run = make({ forwardedFor: true, fetch: serverOf(() => new Promise((done) => setTimeout(done, 50)).then(renewed), calls) });
  const others = [{ "user-agent": "thief" }, { "x-forwarded-for": "203.0.113.9" }];
  await Promise.all([{}, {}, ...others].map((headers) => run(request("/", withSession, headers), account)));
  assert.equal(calls["/refresh"], 3, "the server has to judge each of them");
});

each("an ended session loses its cookies, once", async (make) => {
  const response = await make({ protect: ["/account"], fetch: serverOf(ended) })(request("/account?tab=1", withSession), account);
  assert.deepEqual([response.status, response.headers.get("location")], [303, "/sign-in?return_to=%2Faccount%3Ftab%3D1"]);
  assert.deepEqual(cookies(response).sort(), [`${names.access}=`, `${names.refresh}=`]);
  assert.equal(response.headers.get("cache-control"), "private, no-store");
});

const outages = {
  "no answer": () => Promise.reject(new TypeError("fetch failed")),
  503: () => Response.json({ code: "unavailable", message: "" }, { status: 503 }),
  429: () => Response.json({ code: "rate_limited", message: "" }, { status: 429 }),
  "a proxy's 502": () => new Response("<html>", { status: 502 }),
  "a proxy's 401": () => new Response("<html>", { status: 401 }),
};
each("an outage takes no cookie and sends nobody to the sign-in page", async (make) => {
  for (const [why, answer] of Object.entries(outages)) {
    const response = await make({ protect: ["/account"], fetch: serverOf(answer) })(request("/account", withSession), account);
    assert.equal(response.status, 503, why);
    assert.deepEqual(cookies(response), [], why);
  }
});

each("what depends on cookies is in no cache, what does not is the application's", async (make) => {
  const run = make({ fetch: serverOf(renewed) });
  const signedIn = `${names.access}=${token}; ${names.refresh}=r1`;
  const plain = (control) => async () => new Response("", { headers: { "cache-control": control } });
  const read = (control) => async (auth) => (await auth.verify(), new Response("", { headers: { "cache-control": control } }));
  const control = async (cookie, page) => (await run(request("/", cookie), page)).headers.get("cache-control");
  assert.equal(await control(signedIn, plain("public, max-age=60")), "public, max-age=60");
  assert.equal(await control(withSession, plain("public, max-age=60")), "private, no-store");
  assert.equal(await control(withSession, plain("private, max-age=60")), "private, no-store");
  assert.equal(await control(signedIn, read("public, max-age=60")), "private, no-store");
  assert.equal(await control("", read("public, max-age=60")), "private, no-store");
  assert.equal(await control(signedIn, read("private, max-age=60")), "private, max-age=60");
  const guarded = make({ protect: ["/account"], fetch: serverOf(renewed) });
  assert.equal((await guarded(request("/account", signedIn), plain("public, max-age=60"))).headers.get("cache-control"), "private, no-store");
});

test("next: a protected page is in no cache", async () => {
  const at = async (path) => (await next({ protect: ["/account"], fetch: serverOf(renewed) })(request(path, `${names.access}=${token}; ${names.refresh}=r1`))).headers.get("cache-control");
  assert.deepEqual([await at("/account"), await at("/")], ["private, no-store", null]);
});

each("a response whose headers are fixed gets the cookies, too", async (make) => {
  const response = await make({ fetch: serverOf(renewed) })(request("/", withSession), async () => Response.redirect(`${origin}/next`));
  assert.equal(response.headers.get("location"), `${origin}/next`);
  assert.equal(cookies(response).length, 2);
}, { "tanstack-start": bindings["tanstack-start"], nuxt: bindings.nuxt }); // SvelteKit sets cookies itself

each("a sign-in after a refresh: its cookies alone, and the same request knows", async (make) => {
  const response = await make({ fetch: serverOf(renewed) })(request("/", withSession, { method: "POST", "sec-fetch-site": "same-origin" }), async (auth) => {
    await auth.call("POST", "/login", { email: "ada@example.com", password: "p" });
    return account(auth);
  });
  assert.equal(await response.text(), "ada");
  assert.deepEqual(cookies(response).sort(), [`${names.access}=${token}`, `${names.refresh}=new`]);
});

test("nuxt: requests that a page makes while it is drawn have the new cookies", async () => {
  let seen;
  await bindings.nuxt({ fetch: serverOf(renewed) })(request("/", `theme=dark; ${withSession}`), async (_, cookie) => new Response((seen = cookie)));
  assert.equal(seen, `theme=dark; ${names.access}=${token}; ${names.refresh}=r2`);
});

each("a protected page is protected in each spelling", async (make) => {
  const run = make({ protect: ["/account", "/Über"], fetch: serverOf(ended) });
  const at = async (path, more) => (await run(request(path, "", more), async () => new Response("page"))).status;
  for (const path of ["/account", "/account/", "/account/keys?x=1", "/Account", "/%61ccount", "/%2561ccount", "//account", "/x/../account", "/x/%2e%2e/account", "/account%2Fkeys", "/account/%E0%A4%A", "/%C3%BCber"]) assert.notEqual(await at(path), 200, path);
  for (const path of ["/", "/accounts", "/my/account"]) assert.equal(await at(path), 200, path);
  assert.equal(await at("/account", { method: "POST" }), 200, "a form is the application's");
  assert.throws(() => make({ protect: ["account"] }), TypeError);
}, { ...bindings, next });

each("the server is below its path on the application's origin, without headers that visitors invent", async (make) => {
  const seen = [];
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    seen.push({ method: req.method, url: req.url, headers: req.headers, body });
    res.writeHead(302, { location: `${origin}/x`, "set-cookie": ["a=1", "b=2"], "content-encoding": "gzip" }).end(gzipSync("there"));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const internalUrl = `http://127.0.0.1:${server.address().port}`;
  try {
    const response = await make({ internalUrl })(request("/auth/v1/confirm/?t=1", "c=3", { "x-forwarded-for": "203.0.113.9", forwarded: "for=203.0.113.9", "x-real-ip": "203.0.113.9", "sec-fetch-site": "same-origin", connection: "close" }), () => assert.fail("no page"));
    assert.deepEqual([response.status, response.headers.get("location"), await response.text(), response.headers.get("content-encoding"), response.headers.getSetCookie()], [302, `${origin}/x`, "there", null, ["a=1", "b=2"]]);
    const { method, url, headers } = seen[0];
    assert.deepEqual([method, url, headers.cookie, headers["sec-fetch-site"]], ["GET", "/auth/v1/confirm/?t=1", "c=3", "same-origin"]);
    for (const name of ["x-forwarded-for", "forwarded", "x-real-ip"]) assert.equal(headers[name], undefined, name);
    await make({ internalUrl, forwardedFor: true })(request("/auth/v1/me", "", { "x-forwarded-for": "203.0.113.9" }));
    assert.equal(seen[1].headers["x-forwarded-for"], "203.0.113.9");
    for (const path of ["/auth/v1", "/auth/v2/me", "/auth/v1x", "/auth/v1/../admin", "/auth/v1/%2e%2e/admin"]) assert.equal(await (await make({ internalUrl })(request(path), async () => new Response("page"))).text(), path === "/auth/v1" ? "there" : "page", path);
  } finally {
    server.close();
  }
  assert.equal((await make({ internalUrl })(request("/auth/v1/me"))).status, 502, "it is away");
});

test("a redirect leads to a path of the application, or home", () => {
  for (const path of ["/", "/account", "/a/b?c=d&e=/f#g", "/a//b", "/?to=//x", "/a%2F%2Fb"]) assert.equal(localPath(path), path);
  for (const bad of ["", "account", "https://evil.example.org/", "//evil.example.org", "/\\evil.example.org", "\\\\evil.example.org", "/\t/evil.example.org", "/\n/evil.example.org", "/.//evil.example.org", "/x/..//evil.example.org", "/%2e//evil.example.org", " /a", "javascript:alert(1)", "//[", null, undefined, ["/a"], { toString: () => "/a" }])
    assert.equal(localPath(bad), "/", String(bad));
  assert.equal(localPath("//evil.example.org", "/home"), "/home");
});
