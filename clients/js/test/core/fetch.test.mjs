import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../lib/core.mjs";

const { createClient } = await load("index");
const user = { id: "1", email: "ada@example.com" };

/** A client that is signed in, at a server whose tokens live for so many seconds; `api` answers what is not the mount's. */
async function signedIn(api, { life = 900, ...options } = {}) {
  const asked = [];
  let n = 0;
  const auth = createClient("https://app.example.com", null, {
    storage: "memory",
    ...options,
    async fetch(input, init) {
      const request = new Request(input, init);
      const { origin, pathname } = new URL(request.url);
      asked.push([request.method, origin + pathname, request.headers.get("authorization")]);
      if (!pathname.startsWith("/auth/v1/")) return api(request, asked);
      n++;
      return Response.json({ access_token: `access-${n}`, refresh_token: `refresh-${n}`, token_type: "bearer", expires_in: life, expires_at: Math.floor(Date.now() / 1000) + life, user });
    },
  });
  assert.equal((await auth.signInWithPassword({ email: "ada@example.com", password: "p" })).error, null);
  asked.length = 0;
  return { auth, asked };
}

test("fetch: an answer that never ends is handed over as it begins", { timeout: 5_000 }, async () => {
  const { auth } = await signedIn(() => new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode("data: 1\n\n")) })));
  const response = await auth.fetch("https://app.example.com/api/events");
  assert.equal(response.status, 200);
  await response.body.cancel();
});

test("fetch: the token goes to no other origin", async () => {
  const { auth, asked } = await signedIn(() => Response.json({}), { fetchOrigins: ["https://api.example.com"] });
  await assert.rejects(auth.fetch("https://evil.example/"), TypeError);
  await assert.rejects(auth.fetch("https://app.example.com.evil.example/"), TypeError);
  await assert.rejects(auth.fetch("http://app.example.com/"), TypeError);
  assert.deepEqual(asked, []);
  await auth.fetch("https://api.example.com/x");
  assert.deepEqual(asked, [["GET", "https://api.example.com/x", "Bearer access-1"]]);
});

test("fetch: a stale token is renewed and the request sent once more, body and all; any other 401 is the caller's", async () => {
  const bodies = [];
  const { auth, asked } = await signedIn(async (request) => {
    bodies.push(await request.text());
    return request.headers.get("authorization") === "Bearer access-2" ? Response.json({ done: true }) : Response.json({ code: "token_stale" }, { status: 401 });
  });
  const response = await auth.fetch("https://app.example.com/api/notes", { method: "POST", body: "hello" });
  assert.deepEqual(await response.json(), { done: true });
  assert.deepEqual(bodies, ["hello", "hello"]);
  assert.deepEqual(asked.map(([method, url]) => `${method} ${new URL(url).pathname}`), ["POST /api/notes", "POST /auth/v1/refresh", "POST /api/notes"]);

  const other = await signedIn(() => Response.json({ code: "payment_overdue" }, { status: 401 }));
  assert.equal((await other.auth.fetch("https://app.example.com/api/notes")).status, 401);
  assert.equal(other.asked.length, 1);
});

test("a token that has expired when it arrives is no loop of refreshes", async () => {
  const { auth, asked } = await signedIn(() => Response.json({}), { life: 0 });
  assert.equal((await auth.getToken()).error, null);
  assert.equal(asked.length, 1);
});

test("a client that was disposed of throws at nobody", async () => {
  const { auth, asked } = await signedIn(() => Response.json({}));
  auth.dispose();
  assert.equal((await auth.getUser()).error.code, "aborted");
  assert.equal((await auth.signOut()).error.code, "aborted");
  assert.deepEqual(asked, []);
});
