import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { AdminError, createAdminClient, lines } from "authmount/admin";
import { load } from "../lib/core.mjs";
import { call, person, startServer } from "../lib/server.mjs";

const key = "sk_test_0123456789abcdefghijklmnop";
const { operations } = await load("admin/operations");
let server, admin;
before(async () => {
  server = await startServer([], { AUTH_SECRET_KEY: `${key}=*,auth.users.delete` });
  admin = createAdminClient(server.url, key);
});
after(() => server.stop());

/** Data of a result that has to be one. */
const ok = async (result) => {
  const { data, error } = await result;
  assert.equal(error, null, error && `${error.code}: ${error.message}`);
  return data;
};
const flat = (table, at = "") => Object.entries(table).flatMap(([k, v]) => (typeof v === "string" ? [[at + k, v]] : flat(v, `${at}${k}.`)));
const fake = (answer, more) => createAdminClient("https://app.example.com", key, { fetch: answer, ...more });

test("every operation that a running server's document offers to secret keys has a method, and no other", async () => {
  const doc = (await call(server, "GET", "/openapi.json")).body;
  const there = Object.entries(doc.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((v) => /^(get|post|put|patch|delete)$/.test(v) && path.startsWith("/admin/") && (item[v].security ?? doc.security).some((s) => s["secret-key"]))
      .map((v) => `${v.toUpperCase()} ${path}`),
  );
  const here = flat(operations).map(([, spec]) => spec.split(" ").slice(0, 2).join(" "));
  assert.ok(there.length > 50);
  assert.deepEqual(here.sort(), there.sort());
  for (const [name] of flat(operations)) assert.equal(typeof name.split(".").reduce((at, k) => at[k], admin), "function", name);
});

test("every method calls the path, with the verb and where its input goes, that the document has", async () => {
  const doc = (await call(server, "GET", "/openapi.json")).body;
  let sent;
  const spy = fake(async (url, init) => ((sent = { url, init }), Response.json({ next_cursor: null })));
  for (const [name, spec] of flat(operations)) {
    const [verb, path] = spec.split(" ");
    const o = doc.paths[path][verb.toLowerCase()];
    const args = (path.match(/\{/g) ?? []).map((_, i) => `a/b ${i}`);
    if (o.requestBody?.content["application/x-ndjson"]) args.push([{ email: "x@example.com" }]);
    const parameters = (o.parameters ?? []).map((p) => (p.$ref ? doc.components.parameters[p.$ref.split("/").pop()] : p));
    const query = parameters.filter((p) => p.in === "query");
    const input = query[0] ? { [query[0].name]: "v" } : { x: 1 };
    const json = o.requestBody?.content["application/json"];
    if (json || query.length) args.push(input);
    await ok(name.split(".").reduce((at, k) => at[k], spy)(...args));
    assert.equal(sent.init.method, verb, name);
    const at = new URL(sent.url);
    assert.equal(at.pathname, "/auth/v1" + path.replace(/\{\w+\}/g, () => `a%2Fb%20${(at.i = (at.i ?? -1) + 1)}`), name);
    assert.equal(at.search, query.length && !json ? `?${query[0].name}=v` : "", name);
    assert.equal(sent.init.headers["content-type"], json ? "application/json" : o.requestBody ? "application/x-ndjson" : undefined, name);
    assert.equal(!!sent.init.headers["idempotency-key"], verb === "POST", name);
  }
});

test("accounts: create, read, change, ban, roles, sessions, delete", async () => {
  const made = await ok(admin.users.create({ email: "new@example.com", emailVerified: true, fullName: "New", appMetadata: { planName: "pro" } }));
  assert.deepEqual(made.app_metadata, { planName: "pro" }, "the application's own names stay as they are");
  assert.equal((await ok(admin.users.lookup({ email: "new@example.com" }))).id, made.id);
  const changed = await ok(admin.users.update(made.id, { fullName: "Newer" }, { ifMatch: made.revision }));
  assert.equal(changed.full_name, "Newer");
  assert.equal((await admin.users.update(made.id, { fullName: "Late" }, { ifMatch: made.revision })).error?.code, "precondition_failed");
  await ok(admin.users.ban(made.id, { reason: "test" }));
  assert.equal((await ok(admin.users.get(made.id))).status, "banned");
  await ok(admin.users.unban(made.id));
  assert.equal((await ok(admin.users.list({ q: made.id }))).matched, "id");
  assert.equal((await ok(admin.users.list({ metadata: { planName: "pro" } }))).users.length, 1);
  assert.equal((await ok(admin.users.list({ createdFrom: "2100-01-01T00:00:00Z" }))).users.length, 0);
  const p = await person(server, "session@example.com");
  assert.ok((await ok(admin.users.sessions(p.user.id))).sessions.length > 0);
  await ok(admin.users.endSessions(p.user.id, { reason: "test" }));
  assert.equal((await call(server, "GET", "/me", null, { authorization: `Bearer ${p.accessToken}` })).body.code, "session_ended");
  assert.equal(await ok(admin.users.delete(made.id, { reason: "test" })), null);
  assert.equal((await admin.users.get(made.id)).error?.code, "user_not_found");
  assert.ok((await ok(admin.audit.list({ user: made.id }))).events.length > 0);
});

test("what the server says is answered, not thrown, and tells the field", async () => {
  const { data, error } = await admin.users.create({ email: "no address" });
  assert.equal(data, null);
  assert.equal(error.code, "validation_failed");
  assert.equal(error.status, 422);
  assert.ok(error.details?.fields?.email);
  assert.ok(error.requestId);
});

test("a page never looks like all: the iterator goes on to the last", async () => {
  for (let i = 0; i < 7; i++) await ok(admin.users.create({ email: `page${i}@example.com`, appMetadata: { batch: "pages" } }));
  const query = { metadata: { batch: "pages" }, limit: 3 };
  const page = await ok(admin.users.list(query));
  assert.equal(page.users.length, 3);
  assert.ok(page.next_cursor);
  const seen = new Set();
  for await (const user of admin.users.list(query)) seen.add(user.id);
  assert.equal(seen.size, 7);
  const { users } = await ok(admin.users.list({ limit: 1 }));
  for await (const event of admin.users.events(users[0].id, { limit: 1 })) assert.ok(event.id);
  for await (const member of admin.roles.users("owner")) assert.fail(member);
});

test("an iterator that fails throws the server's code", async () => {
  const error = await (async () => {
    for await (const user of admin.users.list({ cursor: "made up" })) assert.fail(user);
  })().catch((e) => e);
  assert.ok(error instanceof AdminError);
  assert.equal(error.code, "validation_failed");
});

test("import of rows as they come, its results, and the export, as streams", async () => {
  async function* rows() {
    for (let i = 0; i < 5; i++) yield { email: `import${i}@example.com`, email_verified: true, app_metadata: { from: "import" } };
    yield { email: "no address" };
  }
  const { job_id } = await ok(admin.users.import(rows(), { onConflict: "skip" }));
  let job;
  for (let i = 0; i < 200; i++) {
    job = await ok(admin.jobs.get(job_id));
    if (!/^(queued|running|pending)$/.test(job.state)) break;
    await new Promise((resolve) => setTimeout(resolve, 25)); // it runs behind our back
  }
  const results = [];
  for await (const row of lines(await ok(admin.jobs.results(job_id)))) results.push(row);
  assert.equal(results.length, 6);
  const exported = [];
  for await (const row of lines(await ok(admin.users.export({ metadata: { from: "import" } })))) exported.push(row.email);
  assert.equal(exported.length, 5);
});

test("an iterator over pages that never end throws", async () => {
  let asked = 0;
  const users = fake(async () => (asked++, Response.json({ users: [{ id: "1" }], next_cursor: "the same" }))).users.list();
  await assert.rejects(async () => {
    for await (const _ of users) if (asked > 5) break;
  }, { name: "AdminError", code: "network_error" });
  assert.equal(asked, 2);
});

test("a lost answer is asked for once more, with the same idempotency key", async () => {
  const keys = [];
  const lossy = createAdminClient(server.url, key, {
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      keys.push(init.headers["idempotency-key"]);
      if (keys.length === 1) throw new TypeError("terminated"); // the server did it, nobody heard
      return response;
    },
  });
  await ok(lossy.users.create({ email: "once@example.com" }));
  assert.equal(keys.length, 2);
  assert.equal(keys[0], keys[1]);
  assert.equal((await ok(admin.users.list({ email: "once@example.com" }))).users.length, 1);
});

test("what may have been done and is not repeatable is not repeated; what was refused is", async () => {
  let asked = 0;
  const down = fake(async () => (asked++, Promise.reject(new TypeError("fetch failed"))));
  assert.equal((await down.users.update("1", {})).error.code, "network_error");
  assert.equal(asked, 1);
  asked = 0;
  const busy = fake(async () => (asked++ ? Response.json({}) : Response.json({ code: "overloaded", message: "" }, { status: 503 })));
  await ok(busy.users.update("1", {}));
  assert.equal(asked, 2);
  asked = 0;
  const long = fake(async () => (asked++, Response.json({ code: "rate_limited", message: "" }, { status: 429, headers: { "retry-after": "60" } })));
  assert.equal((await long.users.get("1")).error.retryAfter, 60);
  assert.equal(asked, 1, "a minute is for the caller to wait");
});

test("a signal gives up", async () => {
  const never = fake((url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))));
  const abort = new AbortController();
  const call = never.users.get("1", { signal: abort.signal });
  abort.abort();
  assert.equal((await call).error.code, "aborted");
});

test("an empty id is no other operation, and no id leaves its place in the path", () => {
  const spy = fake(() => assert.fail("asked"));
  for (const id of ["", ".", "..", undefined, null, 7]) assert.throws(() => spy.users.get(id), TypeError, String(id));
});

test("it throws in browsers, in workers of one, and on phones; and the key is never shown", () => {
  for (const [name, value] of [["document", {}], ["importScripts", () => {}]]) {
    const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    globalThis[name] = value;
    Object.defineProperty(globalThis, "navigator", { value: { userAgent: "Mozilla/5.0" }, configurable: true });
    try {
      assert.throws(() => createAdminClient("https://app.example.com", key), /for servers/, name);
    } finally {
      delete globalThis[name];
      if (navigator) Object.defineProperty(globalThis, "navigator", navigator);
      else delete globalThis.navigator;
    }
  }
  for (const bad of ["pk_public_key_text", "", undefined, "sk_with space"]) {
    assert.throws(() => createAdminClient("https://app.example.com", bad), (e) => e instanceof TypeError && !(bad && e.message.includes(bad)));
  }
  assert.throws(() => createAdminClient("app.example.com", key), TypeError);
});

test("the key is in one header, and in no error", async () => {
  const { error } = await createAdminClient(server.url, key.replace("0", "9")).me();
  assert.match(error.code, /^(bad_token|invalid_api_key)$/);
  assert.ok(!JSON.stringify(error).includes(key.slice(8)));
});
