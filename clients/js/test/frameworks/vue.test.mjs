import assert from "node:assert/strict";
import test from "node:test";
import { createSSRApp, h } from "vue";
import { renderToString } from "vue/server-renderer";
import { createAuth, SignedIn, SignedOut, useAuth, useUser } from "authmount/vue";
import { drawn, fakeClient, settled, states } from "../lib/client.mjs";

const Page = { render: () => [h(SignedIn, null, () => "in"), h(SignedOut, null, () => "out")] };
const text = (html) => html.replace(/<!--.*?-->/g, "");

test("a server draws what it was told; loading is neither signed in nor out", async () => {
  for (const [name, initial] of Object.entries(states)) {
    const client = fakeClient(states.loading);
    assert.equal(text(await renderToString(createSSRApp(Page).use(createAuth(client, initial)))), drawn[name], name);
    assert.equal(client.listeners.size, 0, "nothing is left behind by a rendering");
  }
});

test("refs follow the client in a browser, and stop with the application", async () => {
  globalThis.document = {};
  try {
    const client = fakeClient(states.loading);
    const app = createSSRApp({}).use(createAuth(client));
    const [auth, user] = app.runWithContext(() => [useAuth(), useUser()]);
    assert.equal(auth.status.value, "loading");
    client.set(states.signedIn);
    await settled();
    assert.equal(auth.status.value, "signed-in");
    assert.equal(user.value.email, "ada@example.com");
    client.set(states.signedOut);
    await settled();
    assert.equal(user.value, null);
    const warn = console.warn;
    console.warn = () => {}; // Vue warns of an application that was never mounted
    app.unmount();
    console.warn = warn;
    assert.equal(client.listeners.size, 0);
  } finally {
    delete globalThis.document;
  }
});

test("useAuth without the plugin says what is missing", () => {
  assert.throws(() => createSSRApp({}).runWithContext(() => useAuth()), /createAuth/);
});
