import assert from "node:assert/strict";
import test from "node:test";
import { createElement as h, Fragment } from "react";
import { renderToString } from "react-dom/server";
import { AuthProvider, SignedIn, SignedOut, useAuth, useUser } from "authmount/react";
import { drawn, fakeClient, states } from "../lib/client.mjs";

const Page = () => h(Fragment, null, h(SignedIn, null, "in"), h(SignedOut, null, "out"));
const render = (client, initial, page = Page) => renderToString(h(AuthProvider, { client, initial }, h(page)));

test("a server draws what it was told, and never the client's own state: that is of no request", () => {
  for (const [name, initial] of Object.entries(states)) assert.equal(render(fakeClient(states.loading), initial), drawn[name], name);
  assert.equal(render(fakeClient(states.signedIn), undefined), "", "a client that is signed in, shared by mistake");
});

test("loading is never drawn as signed out, nor as signed in", () => {
  assert.equal(render(fakeClient(states.loading)), "");
});

test("two requests at once see their own state", async () => {
  const client = fakeClient(states.loading);
  const Who = () => useUser()?.email ?? "nobody";
  const [a, b] = await Promise.all([
    render(client, states.signedIn, Who),
    render(client, { ...states.signedIn, user: { id: "2", email: "bob@example.com" } }, Who),
  ]);
  assert.deepEqual([a, b], ["ada@example.com", "bob@example.com"]);
});

test("rendering on a server subscribes to nothing and asks nothing", () => {
  const client = fakeClient(states.loading);
  client.subscribe = () => assert.fail("subscribed");
  render(client, states.signedIn);
});

test("useAuth outside of a provider says what is missing", () => {
  assert.throws(() => renderToString(h(() => (useAuth(), null))), /AuthProvider/);
});
