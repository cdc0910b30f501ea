import assert from "node:assert/strict";
import test from "node:test";
import { derived, get } from "svelte/store";
import { authStore, userStore } from "authmount/svelte";
import { fakeClient, settled, states } from "../lib/client.mjs";

test("a store by Svelte's contract: the value at once, then changes, each once", async () => {
  globalThis.document = {};
  try {
    const client = fakeClient(states.loading);
    const seen = [];
    const stop = authStore(client).subscribe((s) => seen.push(s.status));
    assert.deepEqual(seen, ["loading"]);
    await settled();
    client.set(states.signedIn);
    await settled();
    client.set(states.signedIn);
    await settled();
    assert.deepEqual(seen, ["loading", "signed-in"]);
    stop();
    client.set(states.signedOut);
    await settled();
    assert.equal(seen.length, 2);
    assert.equal(client.listeners.size, 0);
  } finally {
    delete globalThis.document;
  }
});

test("works with derived and get, and begins with what the server rendered", () => {
  const client = fakeClient(states.loading);
  assert.equal(get(derived(authStore(client, states.signedIn), (s) => s.status)), "signed-in");
  assert.equal(get(userStore(client, states.signedIn)).email, "ada@example.com");
  assert.equal(get(userStore(client)), null);
  assert.equal(client.listeners.size, 0, "nothing is left behind by a rendering on a server");
});
