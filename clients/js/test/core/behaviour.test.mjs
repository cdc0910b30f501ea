/** What the core must not do, each with a server whose answers the test holds in its hand. */
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import { client, createClient, fake, gate, json, origin, page, session, settle, storage, user } from "../lib/fake.mjs";

test("every call from inside a listener comes to its end: no lock is held while listeners run", { timeout: 10_000 }, async (t) => {
  const server = fake({
    "POST /login": () => json(session(1)), "POST /refresh": () => json(session(2)), "GET /me": user, "PATCH /me": user, "GET /sessions": { sessions: [] }, "DELETE /sessions": () => json(null, 204),
    "GET /settings": {}, "POST /me/confirm": () => json(session(3)), "POST /me/password": {}, "POST /2fa/verify": () => json(session(3)), "POST /2fa/setup-totp": {}, "POST /2fa/disable": {}, "POST /2fa/recovery-codes": {},
    "POST /2fa/verify-and-enable": () => json({ ...session(4), recovery_codes: [] }), "GET /me/export": {}, "POST /verify-email": {}, "POST /magic-link/send": { request_id: "r" }, "POST /forgot-password": {}, "POST /reset-password": {}, "POST /logout": () => json(null, 204), "DELETE /me": () => json(null, 204),
  });
  const auth = client(t, server);
  const results = [];
  let ran = false;
  const all = new Promise((done) => {
    auth.subscribe((state) => {
      if (state.status !== "signed-in" || ran) return;
      ran = true;
      const calls = [
        () => auth.getToken(), () => auth.getUser(), () => auth.refresh(), () => auth.updateUser({ fullName: "A" }), () => auth.confirm({ password: "p" }), () => auth.changePassword({ next: "n" }),
        () => auth.sessions.list(), () => auth.sessions.end(), () => auth.settings(), () => auth.mfa.verify({ totpCode: "1" }), () => auth.mfa.enroll(), () => auth.mfa.enable({ totpCode: "1" }), () => auth.mfa.disable(), () => auth.mfa.recoveryCodes(),
        () => auth.exportData(), () => auth.signInWithOtp({ email: "a@example.com" }), () => auth.resetPasswordForEmail("a@example.com"), () => auth.resetPassword({ token: "t", newPassword: "n" }), () => auth.signInWithPassword({ email: "a@example.com", password: "p" }), () => auth.signOut({ scope: "others" }), () => auth.signOut(),
      ];
      done((async () => { for (const call of calls) results.push(await call()); })());
    });
  });
  await auth.signInWithPassword({ email: "a@example.com", password: "p" });
  await all;
  assert.deepEqual(results.map((r) => r.error), results.map(() => null));
  assert.equal(auth.state.status, "signed-out");
});

test("a listener that throws, or never ends, stops nobody", async (t) => {
  const reported = [];
  globalThis.reportError = (error) => reported.push(error.message);
  t.after(() => delete globalThis.reportError);
  const kept = storage();
  const same = session(1);
  const auth = client(t, fake({ "POST /login": () => json(same) }), { storage: kept });
  const seen = [];
  let stored;
  auth.subscribe(({ status }) => { if (status === "signed-in") stored ??= kept.kept.has("session"); });
  auth.subscribe(() => { throw new Error("thrown"); });
  auth.subscribe(async () => { throw new Error("rejected"); });
  auth.subscribe(() => new Promise(() => {}));
  const stop = auth.subscribe(({ status }) => seen.push(status));
  assert.deepEqual(seen, [], "a listener is not called from inside of subscribe");
  assert.equal((await auth.signInWithPassword({ email: "a@example.com", password: "p" })).error, null);
  await settle();
  assert.equal(seen.at(-1), "signed-in");
  assert.ok(reported.includes("thrown") && reported.includes("rejected"));
  assert.equal(stored, true, "what a listener is told is stored already");
  await auth.signInWithPassword({ email: "a@example.com", password: "p" });
  await settle();
  assert.equal(seen.filter((s) => s === "signed-in").length, 1, "the same session again is no change");
  stop();
});

test("a sign-in of another tab is seen though its message comes before storage has it", async (t) => {
  const { kept } = page(t);
  const listeners = new Map();
  globalThis.addEventListener = (name, listener, { signal } = {}) => {
    listeners.set(name, listener);
    signal?.addEventListener("abort", () => listeners.delete(name)); // as the platform has it
  };
  globalThis.removeEventListener = (name) => listeners.delete(name);
  const auth = createClient(origin, "pk_test", { fetch: fake({}).fetch, storageKey: "session" });
  t.after(() => {
    auth.dispose();
    assert.equal(listeners.size, 0, "a client that is over listens to nothing");
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
  });
  await settle();
  assert.equal(auth.state.status, "signed-out");
  const other = new BroadcastChannel("session");
  other.postMessage({});
  other.close();
  await settle();
  kept.set("session", JSON.stringify(session(1)));
  listeners.get("storage")({ key: "another" });
  await settle();
  assert.equal(auth.state.status, "signed-out");
  listeners.get("storage")({ key: "session" });
  await settle();
  assert.equal(auth.state.status, "signed-in");
});

test("a sign-out while a refresh is under way wins", async (t) => {
  const { open, opened } = gate();
  const kept = storage(session(1, -10));
  const server = fake({ "POST /refresh": async () => (await opened, json(session(2))), "POST /logout": () => json(null, 204) });
  const auth = client(t, server, { storage: kept });
  const token = auth.getToken();
  await settle();
  const out = auth.signOut();
  open();
  assert.equal((await token).error.code, "missing_token");
  assert.equal((await out).error, null);
  assert.equal(auth.state.status, "signed-out");
  assert.equal(kept.kept.has("session"), false, "the answer that came late is kept nowhere");
});

test("a slow answer does not take the place of what another tab has stored since", async (t) => {
  const { open, opened } = gate();
  const kept = storage(session(1, -10));
  const auth = client(t, fake({ "POST /refresh": async () => (await opened, json(session(2))) }), { storage: kept });
  const token = auth.getToken();
  await settle();
  kept.setItem("session", JSON.stringify(session(3)));
  open();
  assert.equal((await token).data, "access-3");
  assert.match(kept.getItem("session"), /refresh-3/);
});

test("a storage that refuses is no failure: the session lives in memory", async (t) => {
  const no = () => { throw new Error("QuotaExceededError"); };
  const auth = client(t, fake({ "POST /login": () => json(session(1)) }), { storage: { getItem: no, setItem: no, removeItem: no } });
  assert.equal((await auth.signInWithPassword({ email: "a@example.com", password: "p" })).error, null);
  assert.equal((await auth.getToken()).data, "access-1");
});

for (const [how, no] of Object.entries({
  "at once": () => { throw new Error("QuotaExceededError"); },
  later: async () => { throw new Error("QuotaExceededError"); },
}))
  test(`a storage that refuses ${how} makes no call throw, signed in or not`, async (t) => {
    const server = { calls: [], fetch: async (url, init) => (server.calls.push(url), /signup|otp.send|link.send/.test(url) ? json({ request_id: "r" }) : /login/.test(url) ? json(session(1)) : /me$/.test(url) ? json(user) : json({ url: "app:x", sessions: [] })) };
    const kind = { email: "a@example.com", password: "p", provider: "google", code: "123456", token: "t", current: "a", next: "b" };
    for (const one of ["getItem", "setItem", "removeItem", "all"])
      for (const inside of [false, true]) {
        const working = storage();
        const auth = client(t, server, { storage: Object.fromEntries(["getItem", "setItem", "removeItem"].map((name) => [name, one === name || one === "all" ? no : working[name]])) });
        const groups = { auth, mfa: auth.mfa, sessions: auth.sessions };
        let tried = 0;
        for (const [group, calls] of Object.entries(groups))
          for (const name of Object.keys(calls).filter((n) => typeof calls[n] === "function" && !["subscribe", "dispose", "onAuthStateChange", "fetch"].includes(n))) {
            if (inside) await auth.signInWithPassword(kind);
            const args = { resetPasswordForEmail: ["a@example.com"], completeRedirect: [`${origin}/?code=c&am_flow=f`], end: ["1"], getUser: [], getToken: [], settings: [] }[name] ?? [kind];
            const result = await calls[name](...args).catch((e) => assert.fail(`${group}.${name}, ${one} fails: threw ${e}`));
            assert.deepEqual(Object.keys(result), ["data", "error"], name);
            tried++;
          }
        assert.ok(tried > 25, `${tried} calls`);
      }
  });

test("in browsers a second client of the same URL is the first one; after dispose, a new one", (t) => {
  page(t);
  const server = fake({});
  const one = createClient(origin, "pk_test", { fetch: server.fetch });
  assert.equal(createClient(`${origin}/auth/v1`), one);
  assert.notEqual(createClient(origin, null, { storageKey: "other", fetch: server.fetch }), one);
  one.dispose();
  const two = createClient(origin, "pk_test", { fetch: server.fetch });
  assert.notEqual(two, one);
  two.dispose();
  createClient(origin, null, { storageKey: "other" }).dispose();
});

test("on servers nothing is fetched or known until something is asked for, and nothing is shared", async (t) => {
  const server = fake({ "POST /login": () => json(session(1)) });
  const [a, b] = [0, 1].map(() => createClient(origin, null, { fetch: server.fetch, cookies: false }));
  t.after(() => (a.dispose(), b.dispose()));
  await settle();
  assert.deepEqual([server.calls.length, a.state.status], [0, "loading"], "a rendering does not draw somebody as signed out");
  await a.signInWithPassword({ email: "a@example.com", password: "p" });
  assert.equal((await b.getToken()).error.code, "missing_token");
  assert.equal("getSession" in a, false, "nothing unverified is handed out under that name");
});

test("with an initial state nothing is fetched, and nothing flashes", async (t) => {
  page(t);
  const server = fake({});
  const auth = client(t, server, { cookies: true, storage: undefined, initial: { status: "signed-in", user, session: null } });
  const seen = [];
  auth.subscribe((state) => seen.push(state.status));
  await settle();
  assert.deepEqual([server.calls.length, seen], [0, ["signed-in"]]);
});

test("a redirect ends the flow that it began, once, and leaves nothing in the address bar", async (t) => {
  const { replaced, assigned, kept } = page(t, `${origin}/here?tab=1#top`);
  const server = fake({ "GET /oauth/google": { url: "https://accounts.example/" }, "POST /exchange": () => json(session(1)) });
  const auth = client(t, server, { storage: undefined });
  assert.equal((await auth.completeRedirect()).data, null, "a page without a code");
  await auth.signInWithOAuth({ provider: "google" });
  await auth.oauthURL({ provider: "google", redirectTo: "/other" }); // another one, at once
  assert.deepEqual(assigned, ["https://accounts.example/"]);
  const query = new URL(server.calls[0].url).searchParams;
  assert.equal(query.get("code_challenge_method"), "S256");
  const back = new URL(query.get("redirect_to"));
  assert.equal(back.origin + back.pathname, `${origin}/here`);
  back.searchParams.set("code", "c0de");
  location.href = back.href;
  const [one, two] = await Promise.all([auth.completeRedirect(), auth.completeRedirect()]); // StrictMode runs effects twice
  assert.equal(one.error, null);
  assert.equal(two.error, null);
  assert.equal(server.count("POST /exchange"), 1);
  assert.equal(auth.state.status, "signed-in");
  assert.deepEqual(replaced, [`${origin}/here`]);
  const { code_verifier } = server.calls.find((c) => c.name === "POST /exchange").body;
  const digest = Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(code_verifier))).toString("base64url");
  assert.equal(digest, query.get("code_challenge"));
  assert.equal([...kept.values()].some((v) => v.includes(code_verifier)), false, "the verifier is gone");
});

test("a link of another browser is not used up; an error of the provider is told", async (t) => {
  page(t, `${origin}/here?am_flow=unknown&code=c0de`);
  const server = fake({});
  const auth = client(t, server, { storage: undefined });
  assert.equal((await auth.completeRedirect()).error.code, "other_browser");
  assert.equal(server.calls.length, 0);
  localStorage.setItem("session.flow.x", JSON.stringify({ verifier: "v" }));
  const { error } = await auth.completeRedirect(`${origin}/here?am_flow=x&error=access_denied&error_code=oauth_denied&error_description=No.`);
  assert.deepEqual([error.code, error.message], ["oauth_denied", "No."]);
  assert.deepEqual(await auth.completeRedirect(`${origin}/here?code=of-somebody-else`), { data: null, error: null }, "a code of no flow of ours is left alone: nobody is signed in by a link that they were sent");
});

test("redirectTo leads to this origin, or one that is listed", async (t) => {
  page(t);
  const server = fake({ "GET /oauth/google": { url: "https://accounts.example/" } });
  const auth = client(t, server, { redirectOrigins: ["https://other.example", "myapp:"] });
  for (const redirectTo of ["https://evil.example/", "//evil.example", "javascript:alert(1)", "https://app.example.com.evil.example/"]) {
    assert.equal((await auth.oauthURL({ provider: "google", redirectTo })).error?.code, "redirect_not_allowed", redirectTo);
  }
  for (const redirectTo of ["/welcome", "https://other.example/x", "myapp://done"]) assert.equal((await auth.oauthURL({ provider: "google", redirectTo })).error, null, redirectTo);
});

test("no secret is in errors, states or what the debug hook is told", async (t) => {
  const told = [];
  const server = fake({
    "POST /login": () => json({ code: "mfa_required", message: "A second factor is needed.", request_id: "r", mfa_token: "mfa-secret", expires_in: 300, factors: ["totp"] }, 403),
    "POST /2fa/verify": () => json(session("secret")), "POST /logout": () => json(null, 204),
  });
  const auth = client(t, server, { debug: (event) => told.push(event) });
  const { error } = await auth.signInWithPassword({ email: "a@example.com", password: "pass-secret" });
  const { data } = await auth.mfa.verify({ totpCode: "123-secret" });
  assert.equal(JSON.stringify(data).includes("refresh-secret"), false);
  await auth.signOut();
  for (const shown of [inspect(error, { depth: 9 }), JSON.stringify(error), JSON.stringify(told), String(error.stack)]) assert.equal(shown.includes("secret"), false, shown);
  assert.deepEqual(told.map(({ method, path, status }) => [method, path, status]), [["POST", "/login", 403], ["POST", "/2fa/verify", 200], ["POST", "/logout", 204]]);
  for (const { url } of server.calls) assert.equal(url.includes("secret"), false, url);
});

test("a call that is given up says so, and does not sign in later", async (t) => {
  const { open, opened } = gate();
  const auth = client(t, fake({ "POST /login": async () => (await opened, json(session(1))) }));
  const control = new AbortController();
  const call = auth.signInWithPassword({ email: "a@example.com", password: "p" }, { signal: control.signal });
  await settle();
  control.abort();
  assert.equal((await call).error.code, "aborted");
  open();
  await settle();
  assert.equal(auth.state.status, "signed-out");
  auth.dispose();
  assert.equal((await auth.settings()).error.code, "aborted");
});

test("a slow server is no answer, in time", async (t) => {
  const auth = client(t, fake({ "GET /settings": () => new Promise(() => {}) }), { timeout: 20 });
  assert.equal((await auth.settings()).error.code, "network_error");
});

test("a URL that is none, and a secret key, are mistakes of the program", () => {
  for (const url of ["", "app.example.com", "ftp://app.example.com", "https://user@app.example.com", "https://app.example.com/?a=1", "https://app.example.com/#a"]) assert.throws(() => createClient(url), TypeError, url);
  assert.throws(() => createClient(origin, "sk_live"), TypeError);
  assert.equal(createClient(origin).url, `${origin}/auth/v1`);
  assert.equal(createClient(`${origin}/`, null, { path: "/login/" }).url, `${origin}/login`);
  assert.equal(createClient(`${origin}/a/b/`).url, `${origin}/a/b`);
});

test("events come on change only, and by their names", async (t) => {
  const server = fake({ "POST /login": () => json(session(1)), "POST /refresh": () => json(session(2)), "GET /me": () => json({ ...user, full_name: "Ada" }), "POST /logout": () => json(null, 204) });
  const auth = client(t, server);
  const events = [];
  auth.onAuthStateChange((event, session) => events.push([event, session?.access_token ?? null]));
  await settle();
  await auth.signInWithPassword({ email: "a@example.com", password: "p" });
  await auth.getToken();
  await auth.refresh();
  await auth.getUser();
  await auth.getUser();
  await auth.signOut();
  await settle();
  assert.deepEqual(events, [["INITIAL_SESSION", null], ["SIGNED_IN", "access-1"], ["TOKEN_REFRESHED", "access-2"], ["USER_UPDATED", "access-2"], ["SIGNED_OUT", null]]);
});

test("a signal that lives as long as the page keeps nothing of the calls that are over", async (t) => {
  const auth = client(t, fake({ "GET /settings": { enabled: true }, "GET /sessions": { sessions: [] } }), { storage: storage(session(1)) });
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => (listeners++, addEventListener.apply(signal, args));
  signal.removeEventListener = (...args) => (listeners--, removeEventListener.apply(signal, args));
  for (let i = 0; i < 5; i++) await Promise.all([auth.settings({ signal }), auth.sessions.list({ signal }), auth.getToken({ signal })]);
  await settle();
  assert.equal(listeners, 0);
});
