import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../lib/core.mjs";
import { password, startServer } from "../lib/server.mjs";

const { createClient, followAppState, nativeStorage } = await load("index", "native");

/** A SecureStore that refuses the keys that the real one refuses. */
function secureStore() {
  const values = new Map();
  const checked = (key) => {
    assert.match(key, /^[\w.-]+$/);
    return key;
  };
  return {
    values,
    getItemAsync: async (key) => values.get(checked(key)) ?? null,
    setItemAsync: async (key, value) => void values.set(checked(key), value),
    deleteItemAsync: async (key) => void values.delete(checked(key)),
  };
}

function asyncStorage() {
  const values = new Map();
  return {
    values,
    getItem: async (key) => values.get(key) ?? null,
    setItem: async (key, value) => void values.set(key, value),
    removeItem: async (key) => void values.delete(key),
  };
}

for (const [name, make] of Object.entries({ secureStore, asyncStorage })) {
  test(`${name}: of a session the refresh token alone is on the device, and a start needs no more`, async (t) => {
    const server = await startServer();
    t.after(() => server.stop());
    const store = make();
    const paths = [];
    const client = () => createClient(server.url, null, { storage: nativeStorage(store), debug: (e) => paths.push(`${e.method} ${e.path}`) });

    const first = client();
    assert.equal((await first.signUp({ email: "ada@example.com", password })).error, null);
    const written = [...store.values.values()].filter((value) => value.includes("refresh_token")).map((value) => Object.keys(JSON.parse(value)));
    assert.deepEqual(written, [["refresh_token"]]);
    // What is in memory is used: a storage that keeps less is no other session.
    assert.equal((await first.getToken()).error, null);
    assert.equal((await first.updateUser({ fullName: "Ada" })).error, null);
    assert.equal((await first.getToken()).error, null);
    assert.equal((await first.getUser()).error, null);
    assert.deepEqual(paths, ["POST /signup", "PATCH /me", "GET /me"]);
    first.dispose();

    paths.length = 0;
    const second = client();
    assert.equal((await second.getToken()).error, null);
    assert.equal(second.state.user.full_name, "Ada");
    assert.deepEqual(paths, ["POST /refresh"]);
    await second.signOut();
    assert.ok(![...store.values.values()].some((value) => value.includes("refresh_token")), "nothing of a session is left");
    second.dispose();
  });
}

test("followAppState asks for a token when the app comes to the front, and only of who is signed in", () => {
  let listener;
  let removed = false;
  let asked = 0;
  const auth = { state: { user: null }, getToken: async () => void asked++ };
  const end = followAppState(auth, { addEventListener: (type, f) => (assert.equal(type, "change"), (listener = f), { remove: () => (removed = true) }) });
  listener("active");
  assert.equal(asked, 0);
  auth.state.user = {};
  listener("background");
  assert.equal(asked, 0);
  listener("active");
  assert.equal(asked, 1);
  end();
  assert.ok(removed);
});
