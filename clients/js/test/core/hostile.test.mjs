/** Links, pages and servers that mean ill. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { client, createClient, fake, json, origin, page, session, sleep, storage } from "../lib/fake.mjs";

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
