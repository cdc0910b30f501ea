/** Storage that is slow, out of order or holds nonsense, and answers that say nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bob, client, createClient, fake, gate, json, origin, page, session, settle, sleep, storage, user } from "../lib/fake.mjs";

/** A storage as on a device: writing takes longer than removing. */
function slow(first, writing = 40, removing = 5) {
  const s = storage(first);
  return { kept: s.kept, getItem: async (k) => (await sleep(1), s.getItem(k)), setItem: async (k, v) => (await sleep(writing), s.setItem(k, v)), removeItem: async (k) => (await sleep(removing), s.removeItem(k)) };
}

for (const body of [{}, { status: "maintenance" }, null])
  test(`a refresh answered 200 ${JSON.stringify(body)} keeps the session`, async (t) => {
    const kept = storage(session(1, 5));
    const auth = client(t, fake({ "POST /refresh": () => json(body) }), { storage: kept });
    await auth.getToken().catch((e) => assert.fail(`thrown: ${e}`));
    await settle();
    assert.equal(JSON.parse(kept.kept.get("session") ?? "null")?.refresh_token, "refresh-1", "the refresh token is gone");
  });

test("a sign-in answered 200 null, or {} , is an error, not a throw nor a success", async (t) => {
  for (const body of [null, {}, 5, "x", { access_token: "a" }]) {
    const auth = client(t, fake({ "POST /login": () => json(body) }));
    const r = await auth.signInWithPassword({ email: "a@b.c", password: "p" }).catch((e) => ({ thrown: e }));
    assert.equal(r.thrown, undefined, `${JSON.stringify(body)} threw ${r.thrown}`);
    assert.ok(r.error, `${JSON.stringify(body)} was taken for a session: ${JSON.stringify(r)}`);
  }
});

for (const text of ["5", "\"x\"", "[]", "{}", "true", "{\"user\":1}", "{\"refresh_token\":{}}", "{", "null", "{\"__proto__\":{\"user\":{\"id\":1}}}"])
  test(`storage holding ${text} is signed out, not loading for ever`, async (t) => {
    const kept = storage();
    kept.setItem("session", text);
    const auth = client(t, fake({ "POST /refresh": () => json({ code: "validation_failed" }, 422) }), { storage: kept });
    await auth.getToken();
    await settle();
    assert.equal(auth.state.status, "signed-out");
  });

test("async storage: a profile update that is being stored when one signs out leaves nothing", async (t) => {
  const kept = slow(session(1));
  const changed = gate();
  const auth = client(t, fake({ "GET /me": () => (changed.open(), json({ ...user, email: "new@example.com" })), "POST /logout": () => Promise.reject(new TypeError("offline")) }), { storage: kept });
  await auth.getToken();
  const late = auth.getUser();
  await changed.opened;
  await sleep(15); // it is being written
  await auth.signOut();
  await late;
  await sleep(100);
  assert.equal(auth.state.status, "signed-out");
  assert.equal(kept.kept.has("session"), false, "the session is in storage after the sign-out: a restart signs in again");
});

test("async storage: a user change that is being stored does not undo a refresh", async (t) => {
  const kept = slow(session(1));
  const changed = gate();
  const sent = [];
  const auth = client(t, fake({ "GET /me": () => (changed.open(), json({ ...user, email: "new@example.com" })), "POST /refresh": (i) => (sent.push(JSON.parse(i.body).refresh_token), json(session(sent.length + 1))) }), { storage: kept });
  await auth.getToken();
  const late = auth.getUser();
  await changed.opened;
  await sleep(10);
  await Promise.all([auth.refresh(), late]);
  await sleep(120);
  assert.equal(JSON.parse(kept.kept.get("session")).refresh_token, "refresh-2", "storage has a spent refresh token");
  await auth.refresh();
  assert.deepEqual(sent, ["refresh-1", "refresh-2"], "a spent refresh token was used again");
});

test("ordered async storage (a queue): likewise", async (t) => {
  const s = storage(session(1));
  let queue = Promise.resolve();
  const inTurn = (f) => (queue = queue.then(() => sleep(20)).then(f));
  const kept = { kept: s.kept, getItem: (k) => inTurn(() => s.getItem(k)), setItem: (k, v) => inTurn(() => s.setItem(k, v)), removeItem: (k) => inTurn(() => s.removeItem(k)) };
  const sent = [];
  for (let pause = 0; pause <= 120; pause += 10) {
    s.kept.set("session", JSON.stringify(session(1)));
    sent.length = 0;
    const changed = gate();
    const auth = client(t, fake({ "GET /me": () => (changed.open(), json({ ...user, email: `new${pause}@example.com` })), "POST /refresh": (i) => (sent.push(JSON.parse(i.body).refresh_token), json(session(sent.length + 1))) }), { storage: kept });
    await auth.getToken();
    const late = auth.getUser();
    await changed.opened;
    await sleep(pause);
    await Promise.all([auth.refresh(), late]);
    await sleep(150);
    assert.equal(JSON.parse(s.kept.get("session")).refresh_token, "refresh-2", `pause ${pause}: storage has a spent refresh token`);
    await auth.refresh();
    assert.deepEqual(sent, ["refresh-1", "refresh-2"], `pause ${pause}: a spent refresh token was used again`);
    auth.dispose();
  }
});

test("async storage: of two sign-ins the one that holds is the one that is stored", async (t) => {
  const s = storage();
  const kept = { getItem: async (k) => s.getItem(k), setItem: async (k, v) => (await sleep(v.includes("ada") ? 60 : 5), s.setItem(k, v)), removeItem: async (k) => s.removeItem(k) };
  const auth = client(t, fake({ "POST /login": (i) => json(JSON.parse(i.body).email.startsWith("ada") ? session(1) : session(2, 900, bob)) }), { storage: kept });
  const a = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await sleep(10);
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  await a;
  await sleep(100);
  assert.equal(auth.state.user.id, JSON.parse(s.kept.get("session")).user.id);
});

test("malformed notes of flows and codes in storage are no throw", async (t) => {
  page(t, `${origin}/?am_flow=f&code=c`);
  localStorage.setItem("session.flow.f", "{");
  localStorage.setItem("session.sent", "{");
  const auth = createClient(origin, "pk_test", { fetch: fake({ "POST /magic-link/verify": () => json(session(1)) }).fetch, storageKey: "session" });
  t.after(() => auth.dispose());
  await auth.completeRedirect().catch((e) => assert.fail(`completeRedirect threw ${e}`));
  await auth.verifyOtp({ email: "a@b.c", code: "1" }).catch((e) => assert.fail(`verifyOtp threw ${e}`));
});

for (const ordered of [true, false])
test(`async storage${ordered ? ", in order" : ""}: a user who is answered while a refresh is being stored does not bring the spent token back`, { timeout: 60_000 }, async (t) => {
  const bad = [];
  for (let pause = 0; pause <= 60; pause += 3) {
    const s = storage(session(1));
    let queue = Promise.resolve();
    const inTurn = (f, ms = 20) => (ordered ? (queue = queue.then(() => sleep(ms)).then(f)) : sleep(ms).then(f));
    const kept = { getItem: (k) => inTurn(() => s.getItem(k), 2), setItem: (k, v) => inTurn(() => s.setItem(k, v)), removeItem: (k) => inTurn(() => s.removeItem(k)) };
    const sent = [];
    const me = gate(), asked = gate();
    const auth = client(t, fake({ "PATCH /me": () => (asked.open(), me.opened.then(() => json({ ...user, full_name: "A" }))), "POST /refresh": (i) => (sent.push(JSON.parse(i.body).refresh_token), json(session(sent.length + 1))) }), { storage: kept });
    await auth.getToken();
    const late = auth.updateUser({ fullName: "A" });
    await asked.opened;
    const renewed = auth.refresh();
    await sleep(pause);
    me.open();
    await Promise.all([renewed, late]);
    await sleep(100);
    const inStore = JSON.parse(s.kept.get("session")).refresh_token;
    const inMemory = auth.state.session.access_token;
    await auth.refresh();
    if (sent[1] !== "refresh-2") bad.push(`${pause} ms: stored ${inStore}, memory ${inMemory}, next refresh sent ${sent[1]}`);
    auth.dispose();
  }
  assert.deepEqual(bad, []);
});

for (const first of [undefined, session(1)])
  test(`async storage: what was read before a sign-in is not taken after it, ${first ? "over another session" : "over none"}`, async (t) => {
    const s = storage(first);
    const asked = gate(), held = gate();
    let hold = false;
    const kept = { ...s, getItem: async (k) => {
      const text = s.getItem(k);
      if (hold && k === "session") hold = (asked.open(), await held.opened, false);
      return text;
    } };
    const auth = client(t, fake({ "POST /login": () => json(session(2, 900, bob)), "GET /me": () => json(user) }), { storage: kept });
    await auth.getToken();
    hold = true;
    const late = first ? auth.getUser() : auth.refresh();
    await asked.opened;
    hold = false;
    await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
    held.open();
    await late;
    await settle();
    assert.deepEqual([auth.state.user?.id, (await auth.getToken()).data], ["2", "access-2"]);
  });

test("async storage: a sign-in that is overtaken while it is stored does not return another's session", async (t) => {
  const s = storage();
  const kept = { ...s, setItem: async (k, v) => (await sleep(v.includes("ada") ? 40 : 5), s.setItem(k, v)) };
  const auth = client(t, fake({ "POST /login": (i) => json(JSON.parse(i.body).email.startsWith("ada") ? session(1) : session(2, 900, bob)) }), { storage: kept });
  const late = auth.signInWithPassword({ email: "ada@example.com", password: "p" });
  await sleep(15);
  await auth.signInWithPassword({ email: "bob@example.com", password: "p" });
  const { data, error } = await late;
  assert.deepEqual([data, error?.code], [null, "aborted"]);
  assert.equal(auth.state.user.id, "2");
});
