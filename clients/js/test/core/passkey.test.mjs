/** Passkeys with a browser that is told what to answer. test/browser/passkey.test.mjs has a real one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../lib/core.mjs";
import { fake, gate, json, origin, session, settle, storage, user } from "../lib/fake.mjs";

const passkeys = await load("index", "passkey"); // one bundle, as the package has one AuthError
const { createClient } = passkeys;
const failed = (name, message = "The browser's text.") => Object.assign(new Error(message), { name });
const refusal = (code, status, more = {}) => json({ code, message: "…", ...more }, status);
const request = (n = 1) => ({ public_key: { challenge: `c${n}`, rpId: "app.example.com" }, expires_in: 300, request_id: `r${n}` });
const creation = { public_key: { challenge: "c1", rp: { id: "app.example.com" } }, expires_in: 300 };
const one = { id: "p1", name: "Laptop", credential_id: "Y3JlZA", second_factor: false };
const all = { passkeys: [one, { ...one, id: "p2", credential_id: "b3RoZXI" }], rp_id: "app.example.com", user_handle: "aGFuZGxl" };
const ada = { ...user, full_name: null, phone: null };

/**
 * A browser. `answer` gets the options of each prompt, and returns a credential or throws; by default it waits for the
 * options' signal, as a prompt that nobody answers.
 */
function browser(t, { answer = pending, without = [], conditional = true } = {}) {
  const prompts = [], signals = [];
  const ask = (kind) => (options) => {
    prompts.push({ kind, ...options });
    return new Promise((resolve, reject) => {
      options.signal.addEventListener("abort", () => reject(failed("AbortError")));
      Promise.resolve().then(() => answer(options)).then(resolve, reject);
    });
  };
  class PublicKeyCredential {
    static parseCreationOptionsFromJSON = (o) => ({ parsed: o });
    static parseRequestOptionsFromJSON = (o) => ({ parsed: o });
    static isConditionalMediationAvailable = async () => conditional;
    static getClientCapabilities = async () => ({ conditionalCreate: conditional });
    toJSON() {
      return { id: "Y3JlZA", rawId: "Y3JlZA", type: "public-key", response: {} };
    }
  }
  for (const name of ["signalUnknownCredential", "signalAllAcceptedCredentials", "signalCurrentUserDetails"])
    PublicKeyCredential[name] = async (details) => void signals.push([name, details]);
  for (const name of without) delete (name === "toJSON" ? PublicKeyCredential.prototype : PublicKeyCredential)[name];
  const globals = { PublicKeyCredential, navigator: { credentials: without.includes("credentials") ? undefined : { get: ask("get"), create: ask("create") } } };
  for (const [name, value] of Object.entries(globals)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    t.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  return { prompts, signals, credential: () => new PublicKeyCredential(), PublicKeyCredential };
}
const pending = () => new Promise(() => {});
const picks = () => new globalThis.PublicKeyCredential();

function scene(t, routes, options = {}) {
  const server = fake({ "POST /passkeys/sign-in/begin": request(), "POST /passkeys/sign-in/finish": session(1, 900, ada), ...routes });
  const auth = createClient(origin, "pk_test", { fetch: server.fetch, storage: storage(options.from), storageKey: "session", ...options });
  t.after(() => auth.dispose());
  return { auth, server, sent: (name) => server.calls.filter((c) => c.name === name) };
}
const signedIn = (t, routes) => scene(t, { "GET /me": ada, ...routes }, { from: session(1, 900, ada) });
const code = (result) => result.error?.code ?? null;

test("a browser that lacks a function has no passkeys, and calls say so without a request", async (t) => {
  assert.equal(passkeys.isAvailable(), false, "on a server");
  for (const name of ["parseCreationOptionsFromJSON", "parseRequestOptionsFromJSON", "toJSON", "credentials"])
    await t.test(name, async (t) => {
      browser(t, { without: [name] });
      const { auth, server } = scene(t);
      assert.equal(passkeys.isAvailable(), false);
      for (const call of ["signIn", "register", "verify", "confirm"]) assert.equal(code(await passkeys[call](auth)), "passkey_unavailable", call);
      assert.deepEqual(server.calls, []);
    });
});

test("a sign-in in bearer mode brings the request_id back", async (t) => {
  const { prompts } = browser(t, { answer: picks });
  assert.equal(passkeys.isAvailable(), true);
  const { auth, sent } = scene(t);
  const { data, error } = await passkeys.signIn(auth, { remember: false });
  assert.equal(error, null);
  assert.equal(data.user.email, ada.email);
  assert.equal(data.session.access_token, "access-1");
  assert.equal(auth.state.status, "signed-in");
  assert.equal(prompts.length, 1);
  assert.deepEqual(prompts[0].publicKey, { parsed: request().public_key });
  assert.ok(!("mediation" in prompts[0]), "a prompt");
  const [{ body, init }] = sent("POST /passkeys/sign-in/finish");
  assert.deepEqual(body, { credential: picks().toJSON(), request_id: "r1", remember: false });
  assert.equal(init.headers.authorization, undefined);
});

test("an acceptance sends the link's token with the password and the assertion", async (t) => {
  browser(t, { answer: picks });
  const { auth, sent } = scene(t, { "POST /2fa/passkey": request(), "POST /invitations/accept": session(1, 900, ada) });
  const { data, error } = await passkeys.acceptInvitation(auth, { token: "link", password: "a long password" });
  assert.equal(error, null);
  assert.equal(data.user.email, ada.email);
  assert.deepEqual(sent("POST /2fa/passkey")[0].body, { invitation_token: "link" });
  assert.deepEqual(sent("POST /invitations/accept")[0].body, { token: "link", password: "a long password", passkey: picks().toJSON() });
});

test("a sign-in in cookie mode has no request_id", async (t) => {
  browser(t, { answer: picks });
  const { request_id, ...begun } = request();
  const { auth, sent } = scene(
    t,
    { "POST /passkeys/sign-in/begin": begun, "GET /me": () => refusal("missing_token", 401), "POST /refresh": () => refusal("validation_failed", 422), "POST /passkeys/sign-in/finish": { ...session(1, 900, ada), access_token: null, refresh_token: null } },
    { cookies: true },
  );
  assert.equal(code(await passkeys.signIn(auth)), null);
  const [{ body, init }] = sent("POST /passkeys/sign-in/finish");
  assert.deepEqual(Object.keys(body), ["credential"]);
  assert.equal(init.headers["x-session-transport"], "cookie");
  assert.equal(auth.state.status, "signed-in");
});

test("the browser's errors have codes", async (t) => {
  const expected = { NotAllowedError: "passkey_cancelled", AbortError: "aborted", OperationError: "aborted", SecurityError: "passkey_unavailable", NotSupportedError: "passkey_unavailable", InvalidStateError: "passkey_unavailable" };
  for (const [name, is] of Object.entries(expected)) {
    browser(t, { answer: () => { throw failed(name); } });
    const { auth, server } = scene(t);
    const { error } = await passkeys.signIn(auth);
    assert.equal(error.code, is, name);
    if (is === "passkey_unavailable") assert.equal(error.message, "The browser's text.");
    assert.equal(error.status, 0);
    assert.equal(server.count("POST /passkeys/sign-in/finish"), 0);
  }
  browser(t, { answer: () => ({}) }); // a password manager's own credential, without toJSON
  assert.equal(code(await passkeys.signIn(scene(t).auth)), "passkey_unavailable");
});

test("a server that has no passkeys answers before a prompt", async (t) => {
  const { prompts } = browser(t, { answer: picks });
  const { auth } = scene(t, { "POST /passkeys/sign-in/begin": () => refusal("method_disabled", 403) });
  assert.equal(code(await passkeys.signIn(auth)), "method_disabled");
  assert.deepEqual(prompts, []);
});

test("a signal ends a prompt, also of a browser that ignores it", async (t) => {
  const { prompts } = browser(t);
  const { auth, server } = scene(t);
  const control = new AbortController();
  const waiting = passkeys.signIn(auth, { signal: control.signal });
  await settle();
  assert.equal(prompts.length, 1);
  control.abort();
  assert.equal(code(await waiting), "aborted");
  assert.equal(prompts[0].signal.aborted, true);
  navigator.credentials.get = pending;
  const again = new AbortController();
  const ignored = passkeys.signIn(auth, { signal: again.signal });
  await settle();
  again.abort();
  assert.equal(code(await ignored), "aborted");
  assert.equal(code(await passkeys.signIn(auth, { signal: AbortSignal.abort() })), "aborted");
  assert.equal(server.count("POST /passkeys/sign-in/finish"), 0);
});

test("autofill waits for a choice, and every later prompt ends it", async (t) => {
  const { prompts } = browser(t);
  const { auth } = signedIn(t, { "POST /me/passkeys/begin": creation, "POST /2fa/passkey": request() });
  let waiting = passkeys.signIn(auth, { conditional: true });
  await settle();
  assert.equal(prompts[0].mediation, "conditional");
  for (const start of [() => passkeys.signIn(auth, { conditional: true }), () => passkeys.signIn(auth), () => passkeys.register(auth), () => passkeys.verify(auth), () => passkeys.confirm(auth)]) {
    void start();
    assert.equal(code(await waiting), "aborted");
    await settle();
    assert.equal(prompts.filter((p) => p.mediation).at(-1).signal.aborted, prompts.at(-1).mediation === undefined);
    waiting = passkeys.signIn(auth, { conditional: true });
    await settle();
  }
  void passkeys.signIn(auth);
  assert.equal(code(await waiting), "aborted");
});

test("a choice in autofill is not undone by a prompt that opens while it is sent", async (t) => {
  browser(t, { answer: ({ mediation }) => (mediation ? picks() : pending()) });
  const held = gate();
  const { auth, sent } = scene(t, { "POST /passkeys/sign-in/finish": () => held.opened });
  const chosen = passkeys.signIn(auth, { conditional: true });
  await settle();
  assert.equal(sent("POST /passkeys/sign-in/finish").length, 1);
  void passkeys.signIn(auth);
  held.open(json(session(1, 900, ada)));
  assert.equal(code(await chosen), null);
  assert.equal(auth.state.status, "signed-in");
});

test("a browser without autofill, or without silent creation, says so without a request", async (t) => {
  browser(t, { conditional: false });
  const { auth, server } = signedIn(t);
  assert.equal(code(await passkeys.signIn(auth, { conditional: true })), "passkey_unavailable");
  assert.equal(code(await passkeys.register(auth, { conditional: true })), "passkey_unavailable");
  browser(t, { without: ["isConditionalMediationAvailable", "getClientCapabilities"] });
  assert.equal(code(await passkeys.signIn(auth, { conditional: true })), "passkey_unavailable");
  assert.equal(code(await passkeys.register(auth, { conditional: true })), "passkey_unavailable");
  assert.deepEqual(server.calls, []);
});

test("autofill has a new challenge every four minutes, and keeps the old one while the server does not answer", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  let picked;
  const { prompts, credential } = browser(t, { answer: () => new Promise((resolve) => (picked = resolve)) });
  let n = 0;
  const { auth, server, sent } = scene(t, { "POST /passkeys/sign-in/begin": () => (++n === 2 ? refusal("unavailable", 503) : json(request(n))) });
  const waiting = passkeys.signIn(auth, { conditional: true });
  await settle();
  t.mock.timers.tick(239_999);
  await settle();
  assert.equal(n, 1);
  t.mock.timers.tick(1);
  await settle();
  assert.deepEqual([n, prompts.length, prompts[0].signal.aborted], [2, 1, false], "no new challenge: the old one is kept");
  t.mock.timers.tick(240_000);
  await settle();
  assert.deepEqual([n, prompts.length, prompts[0].signal.aborted], [3, 2, true]);
  assert.equal(prompts[1].publicKey.parsed.challenge, "c3");
  picked(credential());
  assert.equal(code(await waiting), null);
  assert.equal(sent("POST /passkeys/sign-in/finish")[0].body.request_id, "r3");
  t.mock.timers.tick(1_000_000);
  await settle();
  assert.equal(server.count("POST /passkeys/sign-in/begin"), 3, "nothing is renewed afterwards");
});

test("a renewal needs no answer of the browser, and none follows an end", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const { prompts } = browser(t);
  const { auth, server } = scene(t);
  const control = new AbortController();
  const ask = navigator.credentials.get;
  navigator.credentials.get = (options) => (void ask(options).catch(() => {}), pending()); // it ignores the signal
  const waiting = passkeys.signIn(auth, { conditional: true, signal: control.signal });
  await settle();
  t.mock.timers.tick(240_000);
  await settle();
  assert.equal(prompts.length, 2);
  prompts[1].signal.addEventListener("abort", () => control.abort());
  t.mock.timers.tick(240_000);
  assert.equal(code(await waiting), "aborted");
  await settle();
  assert.deepEqual([prompts.length, server.count("POST /passkeys/sign-in/begin")], [2, 3]);
});

test("only passkey_removed has the authenticator forget a passkey", async (t) => {
  const { signals, PublicKeyCredential } = browser(t, { answer: picks });
  for (const [is, status] of [["invalid_passkey", 422], ["rate_limited", 429], ["user_banned", 403], ["unavailable", 503], ["passkey_not_found", 404]]) {
    const { auth } = scene(t, { "POST /passkeys/sign-in/finish": () => refusal(is, status) });
    assert.equal(code(await passkeys.signIn(auth)), is);
  }
  await settle();
  assert.deepEqual(signals, []);
  const gone = () => scene(t, { "POST /passkeys/sign-in/finish": () => refusal("passkey_removed", 422) }).auth;
  assert.equal(code(await passkeys.signIn(gone())), "passkey_removed");
  assert.deepEqual(signals, [["signalUnknownCredential", { rpId: "app.example.com", credentialId: "Y3JlZA" }]]);
  PublicKeyCredential.signalUnknownCredential = async () => { throw failed("SecurityError"); };
  assert.equal(code(await passkeys.signIn(gone())), "passkey_removed");
  delete PublicKeyCredential.signalUnknownCredential;
  assert.equal(code(await passkeys.signIn(gone())), "passkey_removed");
});

const waits = { code: "mfa_required", mfa_token: "m", expires_in: 300, factors: ["passkey", "recovery_code"] };

test("a passkey is the second factor of a sign-in, and raises a session", async (t) => {
  browser(t, { answer: picks });
  const { auth, sent } = scene(t, { "POST /login": () => json({ message: "…", ...waits }, 403), "POST /2fa/passkey": request(), "POST /2fa/verify": session(2, 900, ada) });
  await auth.signInWithPassword({ email: ada.email, password: "p" });
  assert.deepEqual(auth.state.pending.factors, ["passkey", "recovery_code"]);
  assert.equal(code(await passkeys.verify(auth, { remember: false })), null);
  assert.equal(auth.state.status, "signed-in");
  const [begun] = sent("POST /2fa/passkey"), [verified] = sent("POST /2fa/verify");
  assert.deepEqual([begun.body, begun.init.headers.authorization], [{ mfa_token: "m" }, undefined]);
  assert.deepEqual([verified.body, verified.init.headers.authorization], [{ passkey: picks().toJSON(), mfa_token: "m", remember: false }, undefined]);

  assert.equal(code(await passkeys.verify(auth)), null);
  const [, again] = sent("POST /2fa/passkey"), [, raised] = sent("POST /2fa/verify");
  assert.deepEqual([again.body, again.init.headers.authorization], [{}, "Bearer access-2"]);
  assert.deepEqual([raised.body, raised.init.headers.authorization], [{ passkey: picks().toJSON() }, "Bearer access-2"]);
});

test("a passkey that counts as one factor leads to the second", async (t) => {
  browser(t, { answer: picks });
  const { auth } = scene(t, { "POST /passkeys/sign-in/finish": () => json({ message: "…", ...waits, factors: ["totp"] }, 403) });
  assert.equal(code(await passkeys.signIn(auth)), "mfa_required");
  assert.equal(auth.state.status, "mfa");
});

test("a passkey authenticates again", async (t) => {
  browser(t, { answer: picks });
  const { auth, sent } = signedIn(t, { "POST /2fa/passkey": request(), "POST /me/confirm": session(2, 900, ada) });
  const { data } = await passkeys.confirm(auth);
  assert.equal(data.session.access_token, "access-2");
  assert.deepEqual(sent("POST /me/confirm").map(({ body, init }) => [body, init.headers.authorization]), [[{ passkey: picks().toJSON() }, "Bearer access-1"]]);
  const out = scene(t).auth;
  assert.equal(code(await passkeys.confirm(out)), "missing_token");
});

test("a registration returns the passkey, the session and the recovery codes", async (t) => {
  const { prompts } = browser(t, { answer: picks });
  const { auth, sent } = signedIn(t, { "POST /me/passkeys/begin": creation, "POST /me/passkeys": { ...session(2, 900, ada), passkey: one, recovery_codes: ["a", "b"] } });
  const { data, error } = await passkeys.register(auth, { name: "Laptop", secondFactor: true, remember: false });
  assert.equal(error, null);
  assert.deepEqual([data.passkey, data.recovery_codes, data.session.access_token, "access_token" in data], [one, ["a", "b"], "access-2", false]);
  assert.deepEqual([prompts[0].kind, prompts[0].publicKey, "mediation" in prompts[0]], ["create", { parsed: creation.public_key }, false]);
  assert.deepEqual(sent("POST /me/passkeys/begin").map(({ body, init }) => [body, init.headers.authorization]), [[{}, "Bearer access-1"]]);
  assert.deepEqual(sent("POST /me/passkeys")[0].body, { credential: picks().toJSON(), name: "Laptop", second_factor: true, remember: false });
});

test("a sign-in that needs a second factor first can set up a passkey", async (t) => {
  browser(t, { answer: picks });
  const { auth, sent } = scene(t, { "POST /login": () => refusal("mfa_enrollment_required", 403, { mfa_token: "m", expires_in: 300 }), "POST /me/passkeys/begin": creation, "POST /me/passkeys": { ...session(2, 900, ada), passkey: one, recovery_codes: [] } });
  await auth.signInWithPassword({ email: ada.email, password: "p" });
  assert.equal(auth.state.status, "enroll");
  assert.equal(code(await passkeys.register(auth)), null);
  assert.equal(auth.state.status, "signed-in");
  for (const name of ["POST /me/passkeys/begin", "POST /me/passkeys"]) assert.equal(sent(name)[0].init.headers.authorization, "Bearer m");
});

test("a registration has codes for what the browser and the server refuse, and tells authenticators nothing", async (t) => {
  for (const [name, is] of [["InvalidStateError", "passkey_already_exists"], ["NotAllowedError", "passkey_cancelled"], ["SecurityError", "passkey_unavailable"]]) {
    browser(t, { answer: () => { throw failed(name); } });
    assert.equal(code(await passkeys.register(signedIn(t, { "POST /me/passkeys/begin": creation }).auth)), is);
  }
  const { prompts, signals } = browser(t, { answer: picks });
  assert.equal(code(await passkeys.register(signedIn(t, { "POST /me/passkeys/begin": () => refusal("reauthentication_needed", 403) }).auth)), "reauthentication_needed");
  assert.deepEqual(prompts, []);
  assert.equal(code(await passkeys.register(signedIn(t, { "POST /me/passkeys/begin": creation, "POST /me/passkeys": () => refusal("invalid_passkey", 422) }).auth)), "invalid_passkey");
  await settle();
  assert.deepEqual(signals, []);
});

test("silent creation gives up after four minutes", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { prompts } = browser(t);
  const { auth, sent } = signedIn(t, { "POST /me/passkeys/begin": creation });
  const waiting = passkeys.register(auth, { conditional: true });
  await settle();
  assert.equal(prompts[0].mediation, "conditional");
  assert.deepEqual(sent("POST /me/passkeys/begin")[0].body, { conditional: true });
  t.mock.timers.tick(240_000);
  assert.equal(code(await waiting), "aborted");
  assert.equal(prompts[0].signal.aborted, true);
});

const accepted = ["signalAllAcceptedCredentials", { rpId: "app.example.com", userId: "aGFuZGxl", allAcceptedCredentialIds: ["Y3JlZA", "b3RoZXI"] }];
const details = ["signalCurrentUserDetails", { rpId: "app.example.com", userId: "aGFuZGxl", name: ada.email, displayName: ada.email }];

test("the list is read and changed, and authenticators hear of it", async (t) => {
  const { signals } = browser(t);
  const changed = { passkey: { ...one, name: "Phone" }, recovery_codes: ["a"] };
  const { auth, sent, server } = signedIn(t, { "GET /me/passkeys": all, "PATCH /me/passkeys/p1": changed, "DELETE /me/passkeys/p1": {}, "GET /me": { ...ada, mfa_enabled: true } });
  await auth.getToken();
  assert.deepEqual(await passkeys.list(auth), { data: all.passkeys, error: null });
  assert.deepEqual(signals.splice(0), [accepted, details]);

  assert.deepEqual((await passkeys.rename(auth, "p1", "Phone")).data, changed.passkey);
  await settle();
  assert.deepEqual(signals.splice(0), [accepted, details]);

  assert.deepEqual((await passkeys.useAsSecondFactor(auth, "p1")).data, changed);
  assert.equal(auth.state.user.mfa_enabled, true, "the user is read again");
  await passkeys.useAsSecondFactor(auth, "p1", false);
  assert.deepEqual(sent("PATCH /me/passkeys/p1").map((c) => c.body), [{ name: "Phone" }, { second_factor: true }, { second_factor: false }]);

  await settle();
  signals.splice(0);
  assert.deepEqual(await passkeys.remove(auth, "p1"), { data: null, error: null });
  await settle();
  assert.deepEqual(signals, [accepted, details]);
  assert.equal(server.count("DELETE /me/passkeys/p1"), 1);
});

test("authenticators hear nothing of a change that failed, of another user, or without a user handle", async (t) => {
  const { signals } = browser(t);
  const refused = signedIn(t, { "DELETE /me/passkeys/p1": () => refusal("last_sign_in_method", 409), "GET /me/passkeys": () => refusal("session_ended", 401), "POST /refresh": () => refusal("session_ended", 400) });
  await refused.auth.getToken();
  assert.equal(code(await passkeys.remove(refused.auth, "p1")), "last_sign_in_method");
  assert.equal(code(await passkeys.remove(refused.auth, "")), "validation_failed");
  assert.equal(code(await passkeys.list(refused.auth)), "session_ended");

  const none = signedIn(t, { "GET /me/passkeys": { ...all, user_handle: "" } });
  await none.auth.getToken();
  assert.equal(code(await passkeys.list(none.auth)), null);

  const held = gate();
  const other = signedIn(t, { "GET /me/passkeys": () => held.opened, "POST /login": session(2, 900, { ...ada, id: "2", email: "bob@example.com" }) });
  await other.auth.getToken();
  const listed = passkeys.list(other.auth);
  await settle();
  await other.auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  held.open(json(all));
  await listed;
  await settle();
  assert.deepEqual(signals, []);
});

test("a browser without signals has a list all the same, and reads it once", async (t) => {
  browser(t, { without: ["signalAllAcceptedCredentials", "signalCurrentUserDetails"] });
  const { auth, server } = signedIn(t, { "GET /me/passkeys": all, "PATCH /me/passkeys/p1": { passkey: one, recovery_codes: [] } });
  await auth.getToken();
  assert.equal(code(await passkeys.list(auth)), null);
  assert.equal(code(await passkeys.rename(auth, "p1", "Phone")), null);
  await settle();
  assert.equal(server.count("GET /me/passkeys"), 1);
});
