import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { load } from "../lib/core.mjs";
import { password, startServer } from "../lib/server.mjs";

const { createClient, fileStorage, nativeStorage } = await load("index", "node/index", "native");

function directory(t) {
  const dir = mkdtempSync(join(tmpdir(), "authmount-files-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return join(dir, "deep", "session");
}
const filesOf = (dir) => readdirSync(dir).map((name) => join(dir, name));

/** Runs a program in a process of its own, with the same modules. */
async function program(t, code, ...args) {
  const file = join(mkdtempSync(join(tmpdir(), "authmount-program-")), "program.mjs");
  t.after(() => rmSync(join(file, ".."), { recursive: true, force: true }));
  writeFileSync(file, `import { load } from ${JSON.stringify(new URL("../lib/core.mjs", import.meta.url).href)};\nconst { createClient, fileStorage } = await load("index", "node/index");\nconst args = process.argv.slice(2);\n${code}`);
  return () => promisify(execFile)(process.execPath, [file, ...args]);
}

test("a file storage stores, overwrites and removes values of any key", async (t) => {
  const dir = directory(t);
  const storage = fileStorage(dir);
  for (const key of ["authmount:https://app.example.com/auth/v1", "../../outside", "a", "A", "", "k".repeat(5000)]) {
    assert.equal(await storage.getItem(key), null);
    await storage.setItem(key, `1 ${key}`);
    await storage.setItem(key, `2 ${key}`);
    assert.equal(await fileStorage(dir).getItem(key), `2 ${key}`);
  }
  assert.equal(await storage.getItem("a"), "2 a");
  assert.equal(readdirSync(dir).length, 6);
  await storage.removeItem("a");
  await storage.removeItem("a");
  assert.equal(await storage.getItem("a"), null);
  assert.equal(await storage.getItem("A"), "2 A");
});

test("its files are for the user alone, whatever the umask", async (t) => {
  const dir = directory(t);
  const before = process.umask(0);
  try {
    const storage = fileStorage(dir);
    await storage.setItem("a", "1");
    await storage.setItem("a", "2");
  } finally {
    process.umask(before);
  }
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.deepEqual(filesOf(dir).map((file) => statSync(file).mode & 0o777), [0o600]);
  chmodSync(dir, 0o777);
  assert.throws(() => fileStorage(dir), /others can write/);
});

test("parallel writes take effect in their order, and a read sees those before it", async (t) => {
  const dir = directory(t);
  for (let round = 0; round < 20; round++) {
    const [one, two] = [fileStorage(dir), fileStorage(dir)];
    const calls = [];
    for (let i = 0; i < 20; i++) calls.push((i % 2 ? one : two).setItem("k", `${i}`.repeat(1 + (19 - i) * 5000)), (i % 2 ? two : one).getItem("k"));
    const read = (await Promise.all(calls)).filter((_, i) => i % 2);
    assert.deepEqual(read.map((text, i) => text === `${i}`.repeat(1 + (19 - i) * 5000)), Array(20).fill(true));
    one.setItem("k", "last");
    await two.removeItem("k");
    assert.equal(await one.getItem("k"), null);
  }
  assert.deepEqual(readdirSync(dir), [], "no temporary file is left");
});

test("a write that fails is reported, leaves nothing and stops no later one", async (t) => {
  const dir = directory(t);
  const storage = fileStorage(dir);
  rmSync(dir, { recursive: true });
  await assert.rejects(storage.setItem("k", "1"), { code: "ENOENT" });
  fileStorage(dir);
  await storage.setItem("k", "2");
  assert.equal(await storage.getItem("k"), "2");
  assert.equal(readdirSync(dir).length, 1);
});

test("nativeStorage keeps the order of writes on a device that does not", async () => {
  const values = new Map();
  let slow = 30;
  const later = (run) => new Promise((done) => setTimeout(() => done(run()), (slow -= 10)));
  const storage = nativeStorage({ getItem: async (k) => values.get(k) ?? null, setItem: (k, v) => later(() => values.set(k, v)), removeItem: (k) => later(() => values.delete(k)) });
  await Promise.all([storage.setItem("k", "1"), storage.setItem("k", "2"), storage.removeItem("k")]);
  assert.equal(values.get("k"), undefined);
});

test("a reader in another process sees whole values only", async (t) => {
  const dir = directory(t);
  await fileStorage(dir).setItem("k", "a".repeat(1e6));
  const writer = await program(t, `const s = fileStorage(args[0]); for (let i = 0; i < 60; i++) await s.setItem("k", "abcdef"[i % 6].repeat(1e6));`, dir);
  let running = true;
  const [file] = filesOf(dir);
  const both = [writer(), writer()];
  const ended = Promise.all(both).finally(() => (running = false));
  let reads = 0;
  while (running) {
    const text = readFileSync(file, "utf8");
    assert.ok(text.length === 1e6 && text === text[0].repeat(1e6), `${text.length} characters`);
    reads++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  assert.ok(reads > 10);
});

test("several processes share a session, and refresh it at once", { timeout: 120_000 }, async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const dir = directory(t);
  const auth = createClient(server.url, null, { storage: fileStorage(dir) });
  t.after(() => auth.dispose());
  assert.equal((await auth.signUp({ email: "ada@example.com", password })).error, null);
  const refresh = await program(
    t,
    `const auth = createClient(args[0], null, { storage: fileStorage(args[1]) });
for (let i = 0; i < 4; i++) {
  await new Promise((done) => setTimeout(done, 2000 - (Date.now() % 2000))); // all processes at the same time
  const { error } = await auth.refresh();
  if (error) throw error;
}
const { data, error } = await auth.getUser();
if (error) throw error;
console.log(data.email);`,
    server.url,
    dir,
  );
  for (const { stdout } of await Promise.all([refresh(), refresh(), refresh()])) assert.equal(stdout.trim(), "ada@example.com");
  assert.equal((await auth.refresh()).error, null);

  const out = await program(t, `const { error } = await createClient(args[0], null, { storage: fileStorage(args[1]) }).signOut(); if (error) throw error;`, server.url, dir);
  await out();
  assert.equal((await auth.refresh()).error?.code, "missing_token");
  assert.equal(auth.state.status, "signed-out");
  assert.ok(!filesOf(dir).some((file) => readFileSync(file, "utf8").includes("refresh_token")), "nothing of a session is left");
});
