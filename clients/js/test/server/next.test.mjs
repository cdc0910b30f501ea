import assert from "node:assert/strict";
import { test } from "node:test";
import { createNextAuth } from "authmount/next";
import { NextRequest } from "next/server.js";

const origin = "https://app.example.com";
const visit = async (path, options, cookie = "__Host-authmount-refresh=r") => {
  const auth = createNextAuth(origin, { protect: ["/account"], ...options });
  const response = await auth.middleware(new NextRequest(`${origin}${path}`, { headers: { cookie } }));
  return response.headers.get("location") ?? "stays";
};
const ended = async () => Response.json({ code: "invalid_refresh_token", message: "" }, { status: 400 });

test("pages are spared however their path is written", async () => {
  for (const protect of [["/account"], ["/account/"], ["/"]])
    for (const path of ["/account", "/account/", "/account/keys"])
      assert.match(await visit(path, { protect, fetch: ended }), /\/sign-in\/?\?return_to=/, `${protect} at ${path}`);
  assert.equal(await visit("/accounts", { fetch: ended }), "stays");
  assert.throws(() => createNextAuth(origin, { protect: ["account"] }), TypeError);
});

for (const status of [403, 404, 408, 421, 425, 429, 503])
  test(`a proxy's ${status} is no sign-out`, async () => {
    assert.equal(await visit("/account", { fetch: async () => new Response("<html>", { status, headers: { "content-type": "text/html" } }) }), "stays");
  });
