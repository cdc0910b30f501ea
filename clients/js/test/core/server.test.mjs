/** The core against a real examples/server: every flow that needs no browser. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { mail } from "../lib/browser.mjs";
import { load } from "../lib/core.mjs";
import { startPostgres } from "../lib/postgres.mjs";
import { freePorts } from "../lib/ports.mjs";
import { password, startServer, totp } from "../lib/server.mjs";

const { createClient } = await load("index");
let server, strict, postgres;
let number = 0;

before(async () => {
  server = await startServer(["-account-deletion", "-cookies"]);
  strict = await startServer(["-require-confirmation", "-api-key", "pk_of_these_tests"]);
});
after(async () => {
  await server?.stop();
  await strict?.stop();
  await postgres?.stop();
});

const address = () => `person${++number}@example.com`;
function storage() {
  const kept = new Map();
  return { kept, getItem: async (k) => kept.get(k) ?? null, setItem: async (k, v) => void kept.set(k, v), removeItem: async (k) => void kept.delete(k) };
}
const client = (t, options = {}, at = server, key) => {
  const made = createClient(at.url, key, { storage: storage(), ...options });
  t.after(() => made.dispose());
  return made;
};
/** What a call returned, which has to be no error. */
const good = async (call) => {
  const { data, error } = await call;
  assert.equal(error, null, error && `${error.code}: ${error.message}`);
  return data;
};
const refused = async (call, code) => {
  const { data, error } = await call;
  assert.equal(data, null);
  assert.equal(error.code, code);
  return error;
};
async function person(t, options) {
  const auth = client(t, options);
  const email = address();
  await good(auth.signUp({ email, password, fullName: "Ada" }));
  return { auth, email };
}
/** The next time step's code: one is good once. */
const later = (secret, steps) => totp(secret, Date.now() + steps * 30_000);

test("sign up, sign out, sign in, and be somebody", async (t) => {
  const { auth, email } = await person(t);
  assert.equal(auth.state.status, "signed-in");
  assert.equal(auth.state.user.full_name, "Ada");
  assert.equal(auth.state.session.aal, "aal1");
  assert.match(auth.state.session.id, /^[0-9a-f-]{36}$/);
  assert.equal((await good(auth.getUser())).email, email);
  await good(auth.signOut());
  assert.deepEqual(auth.state, { status: "signed-out", user: null, session: null });
  await refused(auth.signInWithPassword({ email, password: "wrong wrong wrong" }), "invalid_credentials");
  await good(auth.signInWithPassword({ email, password }));
  const token = await good(auth.getToken());
  assert.equal((await good(client(t).getUser(token))).email, email, "anybody may ask whose a token is");
  await refused(client(t).signUp({ email, password }), "user_already_exists");
  const weak = await refused(client(t).signUp({ email: address(), password: "short" }), "weak_password");
  assert.deepEqual(weak.details.reasons, ["length"]);
});

test("where an address has to be confirmed: by the code, and by the link's token", async (t) => {
  for (const by of ["code", "token"]) {
    const auth = client(t, {}, strict, "pk_of_these_tests");
    const email = address();
    assert.equal((await good(auth.signUp({ email, password }))).session, null);
    assert.equal(auth.state.status, "confirm");
    await refused(client(t, {}, strict, "pk_of_these_tests").signInWithPassword({ email, password }), "invalid_credentials");
    const sent = await mail(strict, email, "verify_email", 2); // the sign-in sent another one, which is good alone
    if (by === "code") await good(auth.verifyOtp({ email, code: sent.code }));
    else await good(auth.verifyOtp({ token: new URL(sent.link).searchParams.get("token"), type: "email" }));
    assert.equal(auth.state.status, "signed-out");
    const { user } = await good(auth.signInWithPassword({ email, password }));
    assert.equal(user.email_verified, true);
  }
  await refused(client(t, {}, strict).settings(), "invalid_api_key");
});

test("a sign-up form sent twice keeps its password", async (t) => {
  const auth = client(t, {}, strict, "pk_of_these_tests");
  const email = address();
  await good(auth.signUp({ email, password }));
  await good(auth.signUp({ email, password }));
  await good(auth.verifyOtp({ email, code: (await mail(strict, email, "verify_email")).code }));
  await good(auth.signInWithPassword({ email, password }));
});

test("an address is confirmed while signed in, and its new proof drops nothing", async (t) => {
  const { auth, email } = await person(t);
  await good(auth.verifyOtp({ email, code: (await mail(server, email, "verify_email")).code }));
  assert.equal(auth.state.status, "signed-in");
  assert.equal(auth.state.user.email_verified, true);
  await good(client(t).signInWithPassword({ email, password }));
});

test("a link and a code by mail, for somebody new", async (t) => {
  const auth = client(t);
  const email = address();
  assert.equal(typeof (await good(auth.signInWithOtp({ email }))).request_id, "string");
  const { code } = await mail(server, email, "magic_link");
  await refused(auth.verifyOtp({ email, code: code === "000000" ? "111111" : "000000" }), "invalid_code");
  await good(auth.verifyOtp({ email, code }));
  assert.equal(auth.state.user.email, email);
  assert.equal(auth.state.user.email_verified, true);
});

test("a magic link's token is good where it was asked for, and spends nothing elsewhere", async (t) => {
  const kept = storage();
  const auth = client(t, { storage: kept });
  const email = address();
  await good(auth.signInWithOtp({ email }));
  const sent = await mail(server, email, "magic_link");
  const token = new URL(sent.link).searchParams.get("token");
  await refused(client(t).verifyOtp({ token }), "bad_code_verifier");
  await good(auth.verifyOtp({ email, code: sent.code }));
  assert.deepEqual([...kept.kept.keys()].filter((k) => k.includes(".flow.")), [], "the verifier is deleted");
});

test("a text message's code, and a new number", async (t) => {
  const phone = "+4930" + String(Date.now()).slice(-7);
  const auth = client(t);
  await good(auth.signInWithOtp({ phone }));
  await good(auth.verifyOtp({ phone, code: (await mail(server, phone, "phone_code")).code }));
  assert.equal(auth.state.user.phone_verified, true);

  const { auth: other, email } = await person(t);
  await good(other.verifyOtp({ email, code: (await mail(server, email, "verify_email")).code }));
  const number = phone.slice(0, -1) + ((Number(phone.at(-1)) + 1) % 10);
  await good(other.updateUser({ phone: number }));
  await good(other.confirmPhone({ phone: number, code: (await mail(server, number, "phone_code")).code }));
  assert.equal(other.state.user.phone, number);
});

/** The code that the page of a link to a new address shows in another browser. */
async function shownCode({ link }) {
  const url = new URL(link);
  const answer = await fetch(url.origin + url.pathname, {
    method: "POST",
    headers: { accept: "text/html", origin: url.origin },
    body: new URLSearchParams({ token: url.searchParams.get("token"), show_code: "1" }),
  });
  return /class="code">(\d{6})</.exec(await answer.text())[1];
}

test("a new address holds once its code is typed", async (t) => {
  const { auth, email } = await person(t);
  await good(auth.verifyOtp({ email, code: (await mail(server, email, "verify_email")).code }));
  const next = address();
  await good(auth.updateUser({ email: next, userMetadata: { theme: "dark" } }));
  assert.equal(auth.state.user.email, email);
  assert.deepEqual(auth.state.user.user_metadata, { theme: "dark" });
  const code = await shownCode(await mail(server, next, "change_email"));
  await good(auth.verifyOtp({ email: next, code }));
  assert.equal(auth.state.user.email, next);
});

test("the second factor: enrolment, sign-in by code and by recovery code, step-up, and its end", async (t) => {
  const { auth, email } = await person(t);
  const { secret, uri, qr_code } = await good(auth.mfa.enroll());
  assert.match(uri, /^otpauth:/);
  assert.match(qr_code, /^data:image\/png/);
  const { recovery_codes } = await good(auth.mfa.enable({ totpCode: later(secret, -1) }));
  assert.equal(recovery_codes.length, 10);
  assert.equal(auth.state.session.aal, "aal2");
  assert.equal(auth.state.user.mfa_enabled, true);

  const other = client(t);
  await refused(other.signInWithPassword({ email, password }), "mfa_required");
  assert.equal(other.state.status, "mfa");
  assert.deepEqual(other.state.pending.factors, ["totp", "recovery_code"]);
  assert.equal(JSON.stringify(other.state).includes("mfa_token"), false);
  await good(other.mfa.verify({ totpCode: later(secret, 0) }));
  assert.equal(other.state.session.aal, "aal2");
  await good(other.signOut());
  await refused(other.signInWithPassword({ email, password }), "mfa_required");
  assert.equal((await good(other.mfa.verify({ recoveryCode: recovery_codes[0] }))).recovery_codes_left, 9);
  await good(other.mfa.recoveryCodes());
  await good(other.mfa.disable());
  assert.equal(other.state.user.mfa_enabled, false);
});

test("a second factor that everybody has to have is set up before the first session", async (t) => {
  const forced = await startServer(["-require-mfa"]);
  t.after(() => forced.stop());
  const auth = client(t, {}, forced);
  await refused(auth.signUp({ email: address(), password }), "mfa_enrollment_required");
  assert.equal(auth.state.status, "enroll");
  const { secret } = await good(auth.mfa.enroll());
  assert.equal((await good(auth.mfa.enable({ totpCode: totp(secret) }))).recovery_codes.length, 10);
  assert.equal(auth.state.status, "signed-in");
});

test("sessions: listed, ended elsewhere, and the one that was ended finds out", async (t) => {
  const { auth, email } = await person(t);
  const other = client(t);
  await good(other.signInWithPassword({ email, password }));
  const list = await good(auth.sessions.list());
  assert.equal(list.length, 2);
  assert.equal(list.find((s) => s.current).id, auth.state.session.id);
  await good(auth.sessions.end(other.state.session.id));
  await refused(other.getUser(), "session_ended");
  assert.equal(other.state.status, "signed-out");
  await refused(auth.sessions.end("01900000-0000-7000-8000-000000000000"), "session_not_found");
  await good(auth.sessions.end());
  await good(auth.signOut({ scope: "global" }));
  assert.equal(auth.state.status, "signed-out");
});

test("passwords: changed, forgotten, chosen anew", async (t) => {
  const { auth, email } = await person(t);
  await refused(auth.changePassword({ current: "wrong wrong wrong", next: "another good password" }), "invalid_credentials");
  assert.equal(auth.state.status, "signed-in");
  await good(auth.changePassword({ current: password, next: "another good password" }));
  await good(auth.confirm({ password: "another good password" }));
  await good(auth.resetPasswordForEmail(email));
  const sent = await mail(server, email, "reset_password");
  const token = new URL(sent.link).searchParams.get("token");
  await refused(auth.resetPassword({ token, newPassword: "short" }), "weak_password");
  await good(auth.resetPassword({ token, newPassword: "a third good password" }));
  await refused(auth.resetPassword({ token, newPassword: "a fourth good password" }), "invalid_token");
  await good(client(t).signInWithPassword({ email, password: "a third good password" }));
});

test("everything that is held, what the server offers, and the end of an account", async (t) => {
  const { auth, email } = await person(t);
  assert.equal((await good(auth.exportData())).user.email, email);
  assert.equal((await good(auth.settings())).methods.password, true);
  await good(auth.deleteAccount());
  assert.equal(auth.state.status, "signed-out");
  await refused(client(t).signInWithPassword({ email, password }), "invalid_credentials");
});

test("a second start takes what the first one kept; the storage is one's own", async (t) => {
  const kept = storage();
  const { auth, email } = await person(t, { storage: kept });
  auth.dispose();
  const again = client(t, { storage: kept });
  await good(again.getToken());
  assert.equal(again.state.user.email, email);
  const before = again.state.session.access_token;
  await good(again.refresh());
  assert.notEqual(again.state.session.access_token, before);
});

test("two people in one process: no session is another's", async (t) => {
  const [a, b] = [createClient(server.url), createClient(server.url)];
  t.after(() => (a.dispose(), b.dispose()));
  assert.notEqual(a, b);
  const emails = [address(), address()];
  await Promise.all([good(a.signUp({ email: emails[0], password })), good(b.signUp({ email: emails[1], password }))]);
  for (let i = 0; i < 5; i++) {
    const users = await Promise.all([good(a.getUser()), good(b.getUser())]);
    assert.deepEqual(users.map((u) => u.email), emails);
  }
  const c = createClient(server.url);
  t.after(() => c.dispose());
  await refused(c.getToken(), "missing_token");
});

test("the server is killed and comes back: offline, and then as before", async (t) => {
  postgres = await startPostgres();
  const [port] = await freePorts(1);
  const args = ["-database-url", postgres.url, "-secret", "secret-of-these-tests-that-is-long-enough", "-addr", `127.0.0.1:${port}`];
  let running = await startServer(args);
  t.after(() => running.stop());
  let shift = 0;
  const realNow = Date.now;
  Date.now = () => realNow() + shift;
  t.after(() => (Date.now = realNow));
  const kept = storage();
  const auth = client(t, { storage: kept }, running);
  const seen = [];
  auth.subscribe(({ status }) => seen.at(-1) === status || seen.push(status));
  await good(auth.signUp({ email: address(), password }));
  await running.stop();
  await refused(auth.getUser(), "network_error");
  assert.equal(auth.state.status, "signed-in", "its token is good for now");
  shift = 901_000;
  await refused(auth.getToken(), "network_error");
  assert.equal(auth.state.status, "offline");
  assert.ok(auth.state.user);
  running = await startServer(args);
  shift += 120_000;
  await good(auth.getToken());
  assert.equal(auth.state.status, "signed-in");
  await good(auth.getUser());
  assert.ok(!seen.slice(seen.indexOf("signed-in")).includes("signed-out"), String(seen));
});

test("limits are told with their wait", async (t) => {
  const strictly = await startServer(["-no-rate-limit=false"]);
  t.after(() => strictly.stop());
  const auth = client(t, {}, strictly);
  const email = address();
  await good(auth.signInWithOtp({ email }));
  const error = await refused(auth.signInWithOtp({ email }), "rate_limited");
  assert.equal(error.status, 429);
  assert.ok(error.retryAfter >= 1 && error.retryAfter <= 60, String(error.retryAfter));
  assert.ok(error.requestId);
});
