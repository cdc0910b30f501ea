import assert from "node:assert/strict";
import test from "node:test";
import { createComponent } from "solid-js";
import { renderToString } from "solid-js/web";
import { AuthProvider, SignedIn, SignedOut, useAuth } from "authmount/solid";
import { drawn, fakeClient, states } from "../lib/client.mjs";

test("a server draws what it was told; loading is neither signed in nor out", () => {
  for (const [name, initial] of Object.entries(states)) {
    const client = fakeClient(states.loading);
    const html = renderToString(() =>
      createComponent(AuthProvider, {
        client,
        initial,
        get children() {
          return [createComponent(SignedIn, { children: "in" }), createComponent(SignedOut, { children: "out" })];
        },
      }),
    );
    assert.equal(html.replace(/<!--.*?-->/g, ""), drawn[name], name);
    assert.equal(client.listeners.size, 0, "nothing is left behind by a rendering");
  }
});

test("useAuth outside of a provider says what is missing", () => {
  assert.throws(() => renderToString(() => (useAuth(), "")), /AuthProvider/);
});
