/**
 * Ten tabs of a real browser share one session over a bad network: what is shown here is that
 * nobody is signed out by an outage, a lost answer, a slow tab or one that was asleep.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { startChromium } from "../lib/browser.mjs";
import { src } from "../lib/core.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startPostgres } from "../lib/postgres.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { password, startServer } from "../lib/server.mjs";

const rounds = Number(process.env.ROUNDS ?? 50);
const tabs = 10;
const life = 900; // of an access token, in seconds
const secret = "secret-of-these-tests-that-is-long-enough";

let browser, postgres, server, proxy, port;

async function start() {
  server = await startServer(["-database-url", postgres.url, "-secret", secret, "-addr", `127.0.0.1:${port}`]);
}

before(async () => {
  const { outputFiles } = await build({
    stdin: { contents: `import { createClient } from "./index.ts"; globalThis.createClient = createClient;`, resolveDir: src },
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
  });
  postgres = await startPostgres();
  [port] = await freePorts(1);
  await start();
  proxy = await startProxy({
    target: () => server.url,
    pages: {
      "/": ["text/html", `<!doctype html><title>tab</title><script src="/client.js"></script><script>auth = createClient(location.origin)</script>`],
      "/client.js": ["text/javascript", outputFiles[0].text],
      "/favicon.ico": ["image/x-icon", ""],
    },
  });
  browser = await startChromium();
});

after(async () => {
  await browser?.close();
  await proxy?.stop();
  await server?.stop();
  await postgres?.stop();
});

/** A context in which somebody is signed in, and a function that opens a tab of it. */
async function signedIn(email) {
  const context = await browser.newContext();
  // The clock of the browser goes with that of the proxy.
  await context.addInitScript(`{ const now = Date.now; globalThis.shift = ${proxy.shift}; Date.now = () => now() + globalThis.shift * 1000; }`);
  const open = async (prepare) => {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    if (prepare) await page.addInitScript(prepare);
    await page.goto(proxy.url);
    await page.evaluate(([shift]) => {
      globalThis.shift = shift;
      globalThis.seen = [];
      auth.subscribe((state) => seen.push(state.status));
    }, [proxy.shift]);
    return page;
  };
  const first = await open();
  const { error } = await first.evaluate(([email, password]) => auth.signUp({ email, password }), [email, password]);
  assert.equal(error, null);
  await first.evaluate(() => seen.splice(0));
  return { context, open, first };
}

const everywhere = (pages, run, argument) => Promise.all(pages.map((page) => page.evaluate(run, argument)));

/** Sets the clock of everybody forward. */
async function pass(seconds, pages) {
  proxy.shift += seconds;
  await everywhere(pages, (shift) => void (globalThis.shift = shift), proxy.shift);
}

async function back(pages) {
  await Promise.all(pages.map((page) => page.waitForFunction(async () => auth.state.status === "signed-in" && !(await auth.getToken()).error, null, { polling: 250 })));
}

test(`${tabs} tabs, ${rounds} expiries, late and lost answers, a server that restarts: nobody is signed out`, { timeout: 580_000 }, async (t) => {
  const { context, open, first } = await signedIn("tabs@example.com");
  const pages = [first, ...(await Promise.all(Array.from({ length: tabs - 1 }, () => open())))];
  await back(pages);
  Object.assign(proxy, { latency: 2000, lost: 0.1 });

  const refreshes = [];
  const failures = {};
  for (let round = 0; round < rounds; round++) {
    const before = proxy.counts["POST /refresh"] ?? 0;
    await pass(life + 60, pages);
    const restart = round % 20 === 10;
    const gone = restart ? server.stop() : null;
    const asked = everywhere(pages, () => auth.getToken().then(({ error }) => error?.code ?? null));
    if (gone) {
      await gone;
      await start();
    }
    for (const code of await asked) {
      if (code) failures[code] = (failures[code] ?? 0) + 1;
      assert.ok(code === null || code === "network_error", `round ${round}: ${code}\n${JSON.stringify(proxy.log.slice(-20))}`);
    }
    await back(pages);
    refreshes.push(proxy.counts["POST /refresh"] - before);
  }

  Object.assign(proxy, { latency: 0, lost: 0 });
  for (const [i, page] of pages.entries()) {
    const seen = await page.evaluate(() => seen);
    assert.ok(!seen.includes("signed-out"), `tab ${i} was signed out: ${seen}`);
    assert.equal(await page.evaluate(() => auth.getUser().then(({ data }) => data?.email)), "tabs@example.com");
  }
  const refused = proxy.log.filter(([, status]) => status >= 400);
  assert.deepEqual(refused, [], "the server refused nothing");
  const sorted = [...refreshes].sort((a, b) => a - b);
  t.diagnostic(`refreshes per round: ${refreshes.join(" ")}; median ${sorted[sorted.length >> 1]}, most ${sorted.at(-1)}, mean ${(refreshes.reduce((a, b) => a + b, 0) / rounds).toFixed(1)}`);
  t.diagnostic(`answers lost: ${proxy.dropped}; calls that failed for now: ${JSON.stringify(failures)}; states seen by the first tab: ${[...new Set(await first.evaluate(() => seen))]}`);
  await context.close();
});

test("a tab that was asleep for a day, and heard nothing, takes what the others have stored", { timeout: 60_000 }, async () => {
  const { context, open, first } = await signedIn("asleep@example.com");
  const asleep = await open("delete globalThis.BroadcastChannel");
  await back([first, asleep]);
  for (let i = 0; i < 5; i++) {
    await pass(86_400 / 5, [first]);
    assert.equal(await first.evaluate(() => auth.getToken().then(({ error }) => error)), null);
  }
  const before = proxy.counts["POST /refresh"];
  await pass(0, [asleep]);
  assert.equal(await asleep.evaluate(() => auth.getToken().then(({ error }) => error)), null);
  assert.equal(proxy.counts["POST /refresh"], before, "it did not refresh with a token that is five generations old");
  assert.equal(await asleep.evaluate(() => auth.getUser().then(({ data }) => data?.email)), "asleep@example.com");
  await context.close();
});

test("a sign-out in one tab is one in all, also while another refreshes", { timeout: 60_000 }, async () => {
  const { context, open, first } = await signedIn("out@example.com");
  const other = await open();
  await back([first, other]);
  await pass(life + 60, [first, other]);
  proxy.latency = 1000;
  const refreshing = other.evaluate(() => auth.getToken().then(({ error }) => error?.code ?? null));
  await first.evaluate(() => auth.signOut());
  await refreshing;
  proxy.latency = 0;
  await Promise.all([first, other].map((page) => page.waitForFunction(() => auth.state.status === "signed-out")));
  assert.equal(await other.evaluate(() => Object.values(localStorage).some((v) => v.includes("refresh_token"))), false, "nothing of the session is left");
  assert.equal(await other.evaluate(() => auth.getToken().then(({ error }) => error?.code)), "missing_token");
  await context.close();
});
