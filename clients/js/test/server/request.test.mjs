import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { createServerClient } from "authmount/server";
import { call, person, startServer } from "../lib/server.mjs";

let server, auth, ada, bob;
before(async () => {
  server = await startServer(["-cookies"]);
  auth = createServerClient(server.url);
  ada = await person(server, "ada@example.com");
  bob = await person(server, "bob@example.com");
});
after(() => server.stop());

const request = (headers, method = "GET") => new Request("https://app.example.com/", { method, headers });
const withoutAccess = (cookie) => cookie.split("; ").filter((c) => !c.includes("-access=")).join("; ");

test("who sent a request: by token, by header, by cookie, in Fetch's headers and Node's", async () => {
  for (const source of [
    ada.accessToken,
    request({ authorization: `Bearer ${ada.accessToken}` }),
    { headers: { authorization: `bearer ${ada.accessToken}` } },
    request({ cookie: ada.cookie }),
    { method: "GET", headers: { cookie: `theme=dark; ${ada.cookie}` } },
  ]) {
    const { data, error } = await auth.verify(source);
    assert.equal(error, null);
    assert.equal(data.sub, ada.user.id);
    assert.equal(data.email, "ada@example.com");
  }
});

test("a bearer token that is refused never falls back on the cookies", async () => {
  const headers = { authorization: "Bearer x.y.z", cookie: ada.cookie };
  assert.equal((await auth.verify(request(headers))).error.code, "bad_token");
  assert.equal((await auth.session(request(headers))).setCookie.length, 0);
});

test("another scheme beside the cookies keeps nobody out", async () => {
  assert.equal((await auth.verify(request({ authorization: "Basic YTpi", cookie: ada.cookie }))).data?.sub, ada.user.id);
});

test("of two cookies of one name none is believed: one may be planted", async () => {
  const two = request({ cookie: `${bob.cookie}; ${ada.cookie}` });
  assert.equal((await auth.verify(two)).error.code, "missing_token");
  assert.equal((await auth.session(two)).error.code, "missing_token");
});

test("on https only the __Host- cookies count, which no other host can plant", async () => {
  const https = createServerClient("https://app.example.com", { fetch: () => assert.fail("asked") });
  assert.equal((await https.verify(request({ cookie: ada.cookie }))).error.code, "missing_token");
});

test("a post of another site is refused, also of a neighbouring subdomain", async () => {
  for (const headers of [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site", origin: "https://blog.example.com" },
    { "sec-fetch-site": "none", origin: "https://evil.example.org" },
    { origin: "https://evil.example.org", host: "app.example.com" },
    { origin: "null", host: "app.example.com" },
  ]) {
    const source = { method: "POST", headers: { ...headers, cookie: ada.cookie } };
    for (const f of [auth.verify, auth.session]) assert.equal((await f(source)).error?.code, "cross_site_request", JSON.stringify(headers));
    assert.equal((await auth.call(source, "POST", "/logout")).error?.code, "cross_site_request");
    assert.ok((await auth.verify({ ...source, method: "GET" })).data, "a link from there is fine");
  }
  for (const headers of [{}, { "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "none" }, { origin: "https://app.example.com", host: "app.example.com" }]) {
    assert.ok((await auth.verify({ method: "POST", headers: { ...headers, cookie: ada.cookie } })).data, JSON.stringify(headers));
  }
});

test("a session whose access token is gone is renewed, and the cookies handed back", async () => {
  const p = await person(server, "renew@example.com");
  const source = request({ cookie: `theme=dark; ${withoutAccess(p.cookie)}` });
  assert.equal((await auth.verify(source)).error.code, "token_stale", "verify renews nothing, and signs nobody out");
  const { data, setCookie, cookie } = await auth.session(source);
  assert.equal(data?.sub, p.user.id);
  assert.deepEqual(setCookie.map((l) => l.split("=")[0]).sort(), ["authmount-access", "authmount-refresh"]);
  assert.ok(setCookie.every((l) => /; HttpOnly/.test(l)));
  assert.match(cookie, /^theme=dark; /);
  assert.ok((await auth.verify(request({ cookie }))).data, "what runs later in the same request knows");
});

test("a session that is good is left alone", async () => {
  const { data, setCookie } = await auth.session(request({ cookie: ada.cookie }));
  assert.equal(data?.sub, ada.user.id);
  assert.deepEqual(setCookie, []);
});

test("no session is ever shared between requests: two users in one process, interleaved", async () => {
  const people = await Promise.all([1, 2].map((n) => person(server, `crowd${n}@example.com`)));
  const found = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const p = people[i % 2];
      const { data, cookie } = await auth.session(request({ cookie: i % 3 ? p.cookie : withoutAccess(p.cookie) }));
      const me = await auth.getUser(request({ cookie }));
      return data?.sub === p.user.id && me.data?.id === p.user.id;
    }),
  );
  assert.ok(found.every(Boolean));
});

test("an ended session: its cookies go, and the error says so", async () => {
  const p = await person(server, "ended@example.com");
  await call(server, "POST", "/logout", null, { cookie: p.cookie });
  assert.equal((await auth.getUser(request({ cookie: p.cookie }))).error?.code, "session_ended", "the server knows at once");
  const { data, error, setCookie, cookie } = await auth.session(request({ cookie: withoutAccess(p.cookie) }));
  assert.equal(data, null);
  assert.equal(error.code, "session_ended");
  assert.ok(setCookie.length > 0 && setCookie.every((l) => /^[\w-]+=;/.test(l)));
  assert.ok(!cookie.includes("-refresh="));
});

test("an outage is no sign-out: no cookie is touched, the error says what it was", async () => {
  for (const answer of [
    () => Promise.reject(new TypeError("fetch failed")),
    () => Response.json({ code: "unavailable", message: "…" }, { status: 503, headers: { "retry-after": "7" } }),
    () => Response.json({ code: "rate_limited", message: "…" }, { status: 429, headers: { "retry-after": "7" } }),
    () => new Response("<h1>Bad gateway</h1>", { status: 502 }),
    () => new Response("<h1>Bad request</h1>", { status: 400 }),
  ]) {
    const out = createServerClient(server.url, { fetch: async (url, init) => (String(url).endsWith("/refresh") ? answer() : fetch(url, init)) });
    const { data, error, setCookie } = await out.session(request({ cookie: withoutAccess(bob.cookie) }));
    assert.equal(data, null);
    assert.deepEqual(setCookie, []);
    assert.match(error.code, /^(network_error|unavailable|rate_limited)$/);
    if (error.status === 503) assert.equal(error.retryAfter, 7);
  }
});

test("only the server's own cookies go to the server, and the visitor's user agent", async () => {
  let sent;
  const spy = createServerClient(server.url, {
    apiKey: "pk_test",
    fetch: async (url, init) => {
      if (!String(url).endsWith("jwks.json")) sent = new Headers(init.headers);
      return fetch(url, init);
    },
  });
  await spy.getUser(request({ cookie: `analytics=secret; ${ada.cookie}`, "user-agent": "Mozilla/5.0 test", "x-forwarded-for": "203.0.113.9" }));
  assert.ok(!sent.get("cookie").includes("analytics"));
  assert.equal(sent.get("user-agent"), "Mozilla/5.0 test");
  assert.equal(sent.get("apikey"), "pk_test");
  assert.equal(sent.get("x-forwarded-for"), null, "anybody can write that header");
});

test("a form on the server signs a browser in and out, in cookies", async () => {
  const form = { method: "POST", headers: { "sec-fetch-site": "same-origin" } };
  const wrong = await auth.call(form, "POST", "/login", { email: ada.email, password: "not it at all" });
  assert.equal(wrong.error.code, "invalid_credentials");
  const { data, cookie, setCookie } = await auth.call(form, "POST", "/login", { email: ada.email, password: "correct horse battery staple" });
  assert.equal(data.user.id, ada.user.id);
  assert.equal(data.access_token, null, "no token in reach of scripts");
  assert.ok(setCookie.length >= 2);
  const out = await auth.call({ method: "POST", headers: { cookie } }, "POST", "/logout");
  assert.equal(out.error, null);
  assert.equal(out.cookie.includes("-refresh="), false);
});

test("another URL inside, a path of one's own, and what is no URL", async () => {
  const inside = createServerClient("https://app.example.com", { internalUrl: server.url, issuer: `${server.url}/auth/v1` });
  assert.equal((await inside.verify(ada.accessToken)).data?.sub, ada.user.id);
  assert.equal(createServerClient("https://app.example.com/").url, "https://app.example.com/auth/v1");
  assert.equal(createServerClient("https://app.example.com/login/").url, "https://app.example.com/login");
  assert.equal(createServerClient("https://app.example.com", { path: "/x" }).url, "https://app.example.com/x");
  for (const bad of ["app.example.com", "ftp://x", "https://x?y", ""]) assert.throws(() => createServerClient(bad), TypeError, bad);
});
