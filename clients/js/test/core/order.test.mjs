/** Answers that come late: what was done since then holds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bob, client, completePopup, createClient, fake, gate, json, origin, page, session, settle, signInWithPopup, sleep, storage, user } from "../lib/fake.mjs";

test("a sign-in that is answered after a sign-out signs nobody in", async (t) => {
  const held = gate();
  const kept = storage();
  const auth = client(t, fake({ "POST /login": () => held.opened.then(() => json(session(1))), "POST /logout": () => json(null, 204) }), { storage: kept });
  const late = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await settle();
  await auth.signOut();
  held.open();
  await late;
  await settle();
  assert.equal(auth.state.status, "signed-out");
  assert.equal(kept.kept.has("session"), false);
});

test("a step-up answered after a sign-out does not bring the session back", async (t) => {
  const held = gate();
  const kept = storage(session(1));
  const auth = client(t, fake({ "POST /2fa/verify": () => held.opened.then(() => json(session(2))), "POST /logout": () => json(null, 204) }), { storage: kept });
  await auth.getToken();
  const late = auth.mfa.verify({ totpCode: "123456" });
  await settle();
  await auth.signOut();
  held.open();
  await late;
  await settle();
  assert.equal(auth.state.status, "signed-out");
});

test("of two sign-ins, the one begun last holds", async (t) => {
  const held = gate();
  const auth = client(t, fake({ "POST /login": (init) => (JSON.parse(init.body).email.startsWith("ada") ? held.opened.then(() => json(session(1))) : json(session(2, 900, bob))) }));
  const late = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await settle();
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  assert.equal(auth.state.user.id, "2");
  held.open();
  await late;
  await settle();
  assert.equal(auth.state.user.id, "2");
});

test("a call that was refused is not repeated as somebody else", async (t) => {
  const kept = storage(session(1));
  const bearers = [];
  const auth = client(t, fake({ "DELETE /me": (init) => {
    bearers.push(init.headers.authorization);
    if (bearers.length === 1) {
      kept.setItem("session", JSON.stringify(session(2, 900, bob))); // another tab signed in meanwhile
      return json({ code: "token_stale", message: "" }, 401);
    }
    return json(null, 204);
  } }), { storage: kept });
  await auth.getToken();
  const { error } = await auth.deleteAccount();
  assert.deepEqual(bearers, ["Bearer access-1"], "Ada's deletion was sent as Bob");
});

test("auth.fetch that was refused is not repeated as somebody else", async (t) => {
  const kept = storage(session(1));
  const bearers = [];
  const auth = client(t, { fetch: async (r) => {
    bearers.push(r.headers.get("authorization"));
    if (bearers.length > 1) return json({});
    kept.setItem("session", JSON.stringify(session(2, 900, bob)));
    return json({ code: "token_stale" }, 401);
  } }, { storage: kept });
  await auth.getToken();
  await auth.fetch(`${origin}/api/pay`, { method: "POST", body: "all" });
  assert.deepEqual(bearers, ["Bearer access-1"]);
});

test("an expired token: what Ada asks for is not done as Bob who signed in elsewhere", async (t) => {
  const kept = storage(session(1, 60));
  const bearers = [];
  const auth = client(t, fake({ "DELETE /me": (init) => (bearers.push(init.headers.authorization), json(null, 204)) }), { storage: kept });
  await auth.getToken();
  assert.equal(auth.state.user.id, "1");
  const real = Date.now;
  Date.now = () => real() + 120_000;
  t.after(() => (Date.now = real));
  kept.setItem("session", JSON.stringify(session(2, 900, bob))); // this tab was frozen and heard nothing
  await auth.deleteAccount();
  assert.deepEqual(bearers, [], "Bob's account was deleted by a click on Ada's page");
});

test("two popups that come back at once each get their own answer", async (t) => {
  globalThis.location = new URL(`${origin}/x`);
  globalThis.open = () => {};
  globalThis.close = () => {};
  t.after(() => { delete globalThis.location; delete globalThis.open; delete globalThis.close; });
  const to = [], exchanged = [];
  const auth = createClient(origin, null, { storage: "memory", fetch: async (url, { body }) => {
    const u = new URL(url);
    if (u.pathname.endsWith("/oauth/google")) { to.push(u.searchParams.get("redirect_to")); return json({ url: "https://id.example.com/" }); }
    const { code } = JSON.parse(body);
    exchanged.push(code);
    await sleep(30);
    return json(session(code, 900, code === "one" ? user : bob));
  } });
  t.after(() => auth.dispose());
  const a = signInWithPopup(auth, { provider: "google" });
  while (to.length < 1) await sleep(1);
  const b = signInWithPopup(auth, { provider: "google" });
  while (to.length < 2) await sleep(1);
  await sleep(5);
  completePopup(`${to[0]}&code=one`);
  completePopup(`${to[1]}&code=two`);
  const [ra, rb] = await Promise.all([a, b]);
  assert.deepEqual(exchanged.sort(), ["one", "two"], "a code was never exchanged");
  assert.equal(rb.data.user.id, "2", "the second window was told the first one's user");
});

test("mfa_required that comes after another sign-in asks nobody for a factor", async (t) => {
  const held = gate();
  const server = fake({
    "POST /login": (init) => (JSON.parse(init.body).email.startsWith("ada") ? held.opened.then(() => json({ code: "mfa_required", message: "", mfa_token: "adas", expires_in: 300, factors: ["totp"] }, 403)) : json(session(2, 900, bob))),
    "POST /2fa/verify": () => json(session(3, 900, bob)),
  });
  const auth = client(t, server);
  const late = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await settle();
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  held.open();
  await late;
  assert.equal(auth.state.pending, undefined);
  await auth.mfa.verify({ totpCode: "123456" });
  const { body, init } = server.calls.at(-1);
  assert.deepEqual([body.mfa_token, init.headers.authorization], [undefined, "Bearer access-2"]);
});

test("mfa_required that comes after a sign-out asks nobody for a factor", async (t) => {
  const held = gate();
  const auth = client(t, fake({ "POST /login": () => held.opened.then(() => json({ code: "mfa_required", message: "", mfa_token: "adas", expires_in: 300, factors: ["totp"] }, 403)) }));
  const late = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await settle();
  await auth.signOut();
  held.open();
  await late;
  assert.equal(auth.state.status, "signed-out");
});

/** A tab whose session is in cookies, and another one that tells it of things. */
function tab(t, fetch) {
  globalThis.document = {};
  t.after(() => delete globalThis.document);
  const auth = createClient(origin, null, { cookies: true, storageKey: "k", fetch });
  const other = new BroadcastChannel("k");
  t.after(() => (auth.dispose(), other.close()));
  return { auth, other };
}

test("an answer to another tab's change that comes after a sign-out signs nobody in", async (t) => {
  let open; const held = new Promise((r) => (open = r));
  let hold = false, asked = 0;
  const { auth, other } = tab(t, async (u, i) => (i.method === "POST" ? json(null, 204) : (asked++, hold ? held.then(() => json(user)) : json(user))));
  await auth.getUser();
  hold = true; asked = 0;
  other.postMessage({});
  while (!asked) await sleep(2);
  await auth.signOut();
  assert.equal(auth.state.status, "signed-out");
  open();
  await sleep(30);
  assert.equal(auth.state.status, "signed-out", "signed in again, with no cookie");
});

test("nor after another tab's sign-out", async (t) => {
  let open; const held = new Promise((r) => (open = r));
  let hold = false, asked = 0;
  const { auth, other } = tab(t, async () => (asked++, hold ? held.then(() => json(user)) : json(user)));
  await auth.getUser();
  hold = true; asked = 0;
  other.postMessage({});
  while (!asked) await sleep(2);
  other.postMessage({ ended: null });
  await sleep(20);
  assert.equal(auth.state.status, "signed-out");
  open();
  await sleep(30);
  assert.equal(auth.state.status, "signed-out");
});

test("an answer about Ada that comes after another tab signed in as Bob does not show Ada", async (t) => {
  let open; const held = new Promise((r) => (open = r));
  let mode = "ada";
  const { auth, other } = tab(t, async () => (mode === "ada" ? json(user) : mode === "held" ? ((mode = "bob"), held.then(() => json({ ...user, full_name: "x" }))) : json(bob)));
  await auth.getUser();
  mode = "held";
  const late = auth.getUser();
  while (mode === "held") await sleep(2);
  other.postMessage({}); // Bob signed in there: the cookies are Bob's
  await sleep(30);
  assert.equal(auth.state.user.id, "2");
  open();
  await late;
  await sleep(10);
  assert.equal(auth.state.user.id, "2", "the page shows Ada while the cookies are Bob's");
});

test("messages of no shape are no error", async (t) => {
  const errors = [];
  const on = (e) => errors.push(e);
  process.on("uncaughtException", on);
  t.after(() => process.off("uncaughtException", on));
  const { auth, other } = tab(t, async () => json(user));
  await auth.getUser();
  for (const m of [null, undefined, 5, "x"]) other.postMessage(m);
  await sleep(30);
  assert.deepEqual(errors.map(String), []);
});

test("Ada's account, deleted slowly, does not sign out Bob who signed in meanwhile", async (t) => {
  const held = gate();
  const kept = storage(session(1));
  const auth = client(t, fake({ "DELETE /me": () => held.opened.then(() => json(null, 204)), "POST /login": () => json(session(2, 900, bob)) }), { storage: kept });
  await auth.getToken();
  const late = auth.deleteAccount();
  await settle();
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  held.open();
  await late;
  assert.deepEqual([auth.state.user?.id, kept.kept.has("session")], ["2", true]);
});

test("nor does Ada's session, ended slowly", async (t) => {
  const held = gate();
  const named = (s, id) => ({ ...s, access_token: `x.${btoa(JSON.stringify({ session_id: id }))}.y` });
  const kept = storage(named(session(1), "a"));
  const auth = client(t, fake({ "DELETE /sessions/a": () => held.opened.then(() => json(null, 204)), "POST /login": () => json(named(session(2, 900, bob), "b")) }), { storage: kept });
  await auth.getToken();
  const late = auth.sessions.end("a");
  await settle();
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  held.open();
  await late;
  assert.deepEqual([auth.state.user?.id, kept.kept.has("session")], ["2", true]);
});

test("a factor that was asked for is nobody's any more when another tab signs in as somebody else", async (t) => {
  globalThis.document = {};
  t.after(() => delete globalThis.document);
  const kept = storage(session(1));
  const server = fake({ "POST /login": () => json({ code: "mfa_required", message: "", mfa_token: "bobs", expires_in: 300, factors: ["totp"] }, 403), "POST /2fa/verify": () => json(session(3, 900, { id: "3" })) });
  const auth = client(t, server, { storage: kept });
  const other = new BroadcastChannel("session");
  t.after(() => other.close());
  await auth.getToken();
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  assert.ok(auth.state.pending);
  kept.setItem("session", JSON.stringify(session(3, 900, { id: "3" })));
  other.postMessage({});
  while (auth.state.user.id !== "3") await sleep(2);
  assert.equal(auth.state.pending, undefined);
  await auth.mfa.verify({ totpCode: "123456" });
  const { body, init } = server.calls.at(-1);
  assert.deepEqual([body.mfa_token, init.headers.authorization], [undefined, "Bearer access-3"]);
});

test("signed out of twice, a session is not brought back by a slower tab either", async (t) => {
  globalThis.document = {};
  t.after(() => delete globalThis.document);
  const kept = storage(session(1));
  const auth = client(t, fake({ "POST /logout": () => json(null, 204) }), { storage: kept });
  const other = new BroadcastChannel("session");
  t.after(() => other.close());
  await auth.getToken();
  await auth.signOut();
  await auth.signOut();
  kept.setItem("session", JSON.stringify(session(1)));
  other.postMessage({});
  await sleep(20);
  assert.equal(auth.state.status, "signed-out");
});

test("an invitation that a page begins with is accepted by who is signed in", async (t) => {
  const server = fake({ "POST /invitations/accept": () => json(session(2)) });
  const auth = client(t, server, { storage: storage(session(1)) });
  await auth.acceptInvitation({ token: "t" });
  assert.equal(server.calls[0].init.headers.authorization, "Bearer access-1");
});

test("cookies: a page that was loading when another tab spoke up does not load for ever", async (t) => {
  const held = gate();
  let asked = 0;
  const { auth, other } = tab(t, async (_, { method }) => {
    if (method === "POST") return json({ user: bob, expires_in: 900, expires_at: Date.now() / 1000 + 900 });
    if (++asked === 1) return held.opened.then(() => json(user));
    throw new TypeError("no network, for once");
  });
  while (!asked) await sleep(2);
  other.postMessage({});
  while (asked < 2) await sleep(2);
  held.open();
  await sleep(30);
  assert.deepEqual([auth.state.status, auth.state.user?.id], ["signed-in", "2"]);
});

test("a session whose refresh asks for a factor waits for it, and goes on", async (t) => {
  for (const [code, status, path, then] of [["mfa_required", "mfa", "/2fa/verify", "verify"], ["mfa_enrollment_required", "enroll", "/2fa/verify-and-enable", "enable"]]) {
    const kept = storage(session(1, -10));
    const server = fake({
      "POST /refresh": () => json({ code, message: "", mfa_token: "hers", expires_in: 300, ...(status === "mfa" && { factors: ["totp"] }) }, 403),
      ["POST " + path]: () => json({ ...session(2), recovery_codes: [] }),
    });
    const auth = client(t, server, { storage: kept });
    const { error } = await auth.getToken();
    assert.equal(error.code, code);
    assert.deepEqual([auth.state.status, auth.state.user], [status, null]);
    assert.equal(kept.kept.has("session"), true, "the session is gone");
    await sleep(700);
    assert.equal(server.count("POST /refresh"), 1, "it was asked again without anybody asking");
    await auth.mfa[then]({ totpCode: "123456" });
    assert.deepEqual([auth.state.status, auth.state.pending], ["signed-in", undefined]);
    assert.equal((await auth.getToken()).data, "access-2");
  }
});
