import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { load } from "../lib/core.mjs";

const { completePopup, createClient, signInWithPopup } = await load("index", "popup");
const page = "https://app.example.com/sign-in?next=1";
const user = { id: "1", email: "ada@example.com" };

let giveUp; // ends what a test that fails leaves waiting
beforeEach(() => (giveUp = new AbortController()));
afterEach(() => {
  giveUp.abort();
  delete globalThis.location;
  delete globalThis.open;
  delete globalThis.close;
});

/** A page, a server that trades one code, and what windows are opened. */
function scene({ exchange } = {}) {
  const seen = { opened: [], closed: 0, exchanged: [] };
  globalThis.location = new URL(page);
  globalThis.open = (...args) => (seen.opened.push(args), null);
  globalThis.close = () => seen.closed++;
  const auth = createClient("https://app.example.com", null, {
    storage: "memory",
    async fetch(url, { body }) {
      const { pathname, searchParams } = new URL(url);
      if (pathname.endsWith("/oauth/google")) {
        seen.query = Object.fromEntries(searchParams);
        return Response.json({ url: "https://id.example.com/authorize" });
      }
      assert.ok(pathname.endsWith("/exchange"), pathname);
      seen.exchanged.push(JSON.parse(body));
      return exchange?.() ?? Response.json({ access_token: "a", refresh_token: "r", token_type: "bearer", expires_in: 900, expires_at: Math.floor(Date.now() / 1000) + 900, user });
    },
  });
  return { auth, seen };
}

/** Resolves when a window has been opened. */
async function opened(seen) {
  while (!seen.opened.length) await new Promise((done) => setImmediate(done));
}
const back = (seen, query) => `${seen.query.redirect_to}&${query}`;

test("the page that opened the window gets the session, with a verifier that never left it", async () => {
  const { auth, seen } = scene();
  const result = signInWithPopup(auth, { provider: "google", redirectTo: "/signed-in" }, { signal: giveUp.signal });
  await opened(seen);
  const [url, name, features] = seen.opened[0];
  assert.deepEqual([url, name], ["https://id.example.com/authorize", "_blank"]);
  assert.match(features, /\bnoopener\b/, "the provider's pages must not reach this one");
  assert.equal(completePopup(back(seen, "code=c1")), true);
  assert.equal(seen.closed, 1);
  const { data, error } = await result;
  assert.equal(error, null);
  assert.deepEqual(data.user, user);
  assert.equal(auth.state.status, "signed-in");
  const [{ code, code_verifier }] = seen.exchanged;
  assert.equal(code, "c1");
  assert.equal(createHash("sha256").update(code_verifier).digest("base64url"), seen.query.code_challenge);
  assert.equal(location.href, page, "the page stays where it is");
});

test("what the provider refuses, and a second factor, are said where the window was opened", async () => {
  const refused = scene();
  let result = signInWithPopup(refused.auth, { provider: "google" }, { signal: giveUp.signal });
  await opened(refused.seen);
  completePopup(back(refused.seen, "error=access_denied&error_code=oauth_denied&error_description=No."));
  assert.equal((await result).error.code, "oauth_denied");
  assert.deepEqual(refused.seen.exchanged, []);

  const asked = scene({ exchange: () => Response.json({ code: "mfa_required", message: "…", mfa_token: "m", expires_in: 300, factors: ["totp"] }, { status: 403 }) });
  result = signInWithPopup(asked.auth, { provider: "google" }, { signal: giveUp.signal });
  await opened(asked.seen);
  completePopup(back(asked.seen, "code=c2"));
  assert.equal((await result).error.code, "mfa_required");
  assert.equal(asked.auth.state.status, "mfa");
});

test("a person who gives up ends the wait, and a window that comes back later signs nobody in", async () => {
  const { auth, seen } = scene();
  const control = new AbortController();
  const result = signInWithPopup(auth, { provider: "google" }, { signal: control.signal });
  await opened(seen);
  control.abort();
  assert.equal((await result).error.code, "aborted");
  completePopup(back(seen, "code=c3"));
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(seen.exchanged, []);
});

test("two windows at once do not take each other's code", async () => {
  const { auth, seen } = scene();
  const first = signInWithPopup(auth, { provider: "google" }, { signal: giveUp.signal });
  await opened(seen);
  const back1 = back(seen, "code=one");
  const second = signInWithPopup(auth, { provider: "google" }, { signal: giveUp.signal });
  while (seen.opened.length < 2) await new Promise((done) => setImmediate(done));
  const challenge2 = seen.query.code_challenge;
  completePopup(back(seen, "code=two"));
  assert.equal((await second).error, null);
  assert.equal(createHash("sha256").update(seen.exchanged[0].code_verifier).digest("base64url"), challenge2);
  completePopup(back1);
  assert.equal((await first).error, null);
  assert.equal(seen.exchanged[1].code, "one");
});

test("another origin to come back to is refused before a window opens, and a page that is no popup is left alone", async () => {
  const { auth, seen } = scene();
  assert.equal((await signInWithPopup(auth, { provider: "google", redirectTo: "https://evil.example/x" })).error.code, "redirect_not_allowed");
  assert.deepEqual(seen.opened, []);
  assert.equal(completePopup(page), false);
  assert.equal(seen.closed, 0);
});
