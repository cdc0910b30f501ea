/** Links, pages and servers that mean ill. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { client, createClient, fake, json, origin, page, session, signInWithPopup, sleep, storage } from "../lib/fake.mjs";

test("Retry-After of a month is no storm", async (t) => {
  let n = 0;
  const auth = client(t, { fetch: async () => (n++, json({ code: "overloaded" }, 503, { "retry-after": String(30 * 86400) })) }, { storage: storage(session(1, -10)) });
  process.removeAllListeners("warning");
  await auth.getToken();
  await sleep(300);
  assert.ok(n <= 2, `${n} requests in 300 ms`);
});

test("Retry-After as a date, the local clock a year behind, Date not readable (CORS)", async (t) => {
  let n = 0;
  const real = Date.now;
  const when = new Date(real() + 5000).toUTCString();
  Date.now = () => real() - 365 * 864e5;
  t.after(() => (Date.now = real));
  const s = session(1, -10);
  const auth = client(t, { fetch: async () => (n++, new Response(JSON.stringify({ code: "overloaded" }), { status: 503, headers: { "retry-after": when } })) }, { storage: storage(s) });
  await auth.getToken();
  await sleep(300);
  assert.ok(n <= 2, `${n} requests in 300 ms`);
});

test("a link's error text is not shown as the client's own", async (t) => {
  page(t, `${origin}/?am_flow=made-up&error=x&error_code=user_banned&error_description=Call+0900-1234+to+unlock+your+account`);
  const auth = createClient(origin, "pk_test", { fetch: fake({}).fetch, storageKey: "session" });
  t.after(() => auth.dispose());
  const { error } = await auth.completeRedirect();
  assert.doesNotMatch(error.message, /0900/);
  assert.notEqual(error.code, "user_banned");
});

test("a page at //evil.example comes back to this origin", async (t) => {
  page(t, `${origin}//evil.example/x`);
  const seen = [];
  const auth = createClient(origin, "pk_test", { fetch: async (u) => (seen.push(new URL(u).searchParams.get("redirect_to")), json({ url: "https://id.example.com/" })), storageKey: "session" });
  t.after(() => auth.dispose());
  await auth.oauthURL({ provider: "google" });
  assert.equal(new URL(seen[0]).origin, origin, seen[0]);
});

test("the server's url to go to is http(s)", async (t) => {
  const { assigned } = page(t);
  const auth = createClient(origin, "pk_test", { fetch: async () => json({ url: "javascript:alert(document.domain)" }), storageKey: "session" });
  t.after(() => auth.dispose());
  await auth.signInWithOAuth({ provider: "google" });
  assert.deepEqual(assigned, []);
});

test("sibling paths by ids: sessions.end('..'), unlinkIdentity('..'), provider '..'", async (t) => {
  const urls = [];
  const auth = client(t, { fetch: async (u) => (urls.push(new URL(u).pathname), json({})) }, { storage: storage(session(1)) });
  await auth.getToken();
  for (const f of [() => auth.sessions.end(".."), () => auth.sessions.end("."), () => auth.unlinkIdentity({ provider: ".." }), () => auth.unlinkIdentity({ provider: "." }), () => auth.oauthURL({ provider: ".." }), () => auth.signInWithIdToken({ provider: "..", idToken: "x" })]) await f().catch(() => {});
  assert.deepEqual(urls.filter((u) => u !== "/auth/v1/me"), []);
});

test("cookies: true at a server with cookies off says so, and nobody seems signed in", async (t) => {
  const auth = client(t, fake({ "GET /me": () => json({ code: "missing_token" }, 401), "POST /refresh": () => json({ code: "validation_failed" }, 422), "POST /login": () => json(session(1)) }), { cookies: true });
  const { error } = await auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  assert.deepEqual([error?.code, error?.message], ["bad_response", "The server has cookies off."]);
  assert.equal(auth.state.status, "signed-out");
});

test("a key that is secret, or that no header can carry, is refused when the client is made", () => {
  for (const key of ["sk_live", "pk_…", "pk_a b", "pk_a\nx"]) assert.throws(() => createClient(origin, key), { name: "TypeError", message: "not a public API key" }, key);
  for (const key of ["", null, undefined]) createClient(origin, key).dispose();
});

test("a sign-out forgets to whom a code was sent", async (t) => {
  const kept = storage(session(1));
  const auth = client(t, fake({ "POST /otp/send": { request_id: "r" }, "POST /logout": () => json(null, 204) }), { storage: kept });
  await auth.getToken();
  await auth.signInWithOtp({ phone: "+4930123456" });
  assert.match([...kept.kept.values()].join(), /4930123456/);
  assert.equal((await auth.signOut()).error, null);
  assert.doesNotMatch([...kept.kept.values()].join(), /4930123456/);
});

test("a sign-out holds where storage takes nothing", async (t) => {
  const kept = storage(session(1));
  const auth = client(t, fake({ "POST /logout": () => json(null, 204) }), { storage: { ...kept, setItem: () => { throw new Error("full"); } } });
  await auth.getToken();
  assert.equal((await auth.signOut()).error, null);
  assert.deepEqual([auth.state.status, kept.kept.has("session")], ["signed-out", false]);
});

test("a server that answers with a URL of script opens no window", async (t) => {
  page(t);
  const opened = [];
  globalThis.open = (url) => void opened.push(url);
  t.after(() => delete globalThis.open);
  const auth = createClient(origin, "pk_test", { fetch: async () => json({ url: "javascript:alert(1)" }), storageKey: "session" });
  t.after(() => auth.dispose());
  const { error } = await signInWithPopup(auth, { provider: "google" }, { signal: AbortSignal.timeout(50) });
  assert.deepEqual([error?.code, opened], ["aborted", []]);
});

test("an element of the page, named as a client is, is no client (DOM clobbering)", async (t) => {
  page(t);
  const name = `session${origin}/auth/v1`;
  const element = { href: "https://evil.example/" };
  globalThis[name] = element;
  t.after(() => delete globalThis[name]);
  const made = () => createClient(origin, "pk_test", { fetch: fake({}).fetch, storageKey: "session" });
  const auth = made();
  t.after(() => auth.dispose());
  assert.notEqual(auth, element);
  assert.equal(made(), auth, "a second call, as after a hot reload, returns the same client");
  auth.dispose();
  assert.equal(globalThis[name], element);
});
