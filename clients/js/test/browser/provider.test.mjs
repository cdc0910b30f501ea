/** Sign-in at a real OpenID provider with pages of its own, by redirect and in a window, in a real browser. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { startChromium } from "../lib/browser.mjs";
import { src } from "../lib/core.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { startServer } from "../lib/server.mjs";

const [clientId, clientSecret] = ["a client", "a secret: of/the+client%"];
let browser, server, proxy, provider;

/** The provider of the server's own tests. */
async function startProvider(port, callback) {
  const child = spawn(process.execPath, [fileURLToPath(new URL("../../../../internal/peertest/provider.mjs", import.meta.url)), String(port), callback, clientId, clientSecret], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  const gone = new Promise((resolve) => child.once("exit", resolve));
  await new Promise((resolve, reject) => {
    gone.then(() => reject(new Error(`the provider did not start (scripts/ensure-peers.sh installs it):\n${log}`)));
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text).includes("listening") && resolve());
  });
  return {
    log: () => log,
    stop: async () => {
      child.kill();
      await gone;
    },
  };
}

before(async () => {
  const { outputFiles } = await build({
    stdin: { contents: `import { createClient } from "./index.ts"; import * as popup from "./popup.ts"; Object.assign(globalThis, { createClient, ...popup });`, resolveDir: src },
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
  });
  proxy = await startProxy({
    target: () => server.url,
    pages: {
      "/": ["text/html", `<!doctype html><title>app</title><script src="/client.js"></script><script>if (!completePopup()) { auth = createClient(location.origin); done = auth.completeRedirect(); }</script>`],
      "/client.js": ["text/javascript", outputFiles[0].text],
      "/favicon.ico": ["image/x-icon", ""],
    },
  });
  const mount = `${proxy.url}/auth/v1`;
  const [port] = await freePorts(1);
  provider = await startProvider(port, `${mount}/oauth/oidc/callback`);
  server = await startServer(["-base-url", mount, "-redirect-urls", `${proxy.url}/*`, "-oidc-issuer", `http://127.0.0.1:${port}`, "-oidc-client-id", clientId, "-oidc-client-secret", clientSecret]);
  browser = await startChromium();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  await provider?.stop();
  await proxy?.stop();
});

async function app() {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(proxy.url);
  return { context, page };
}

/** Goes through the provider's own pages. */
async function logIn(page, name) {
  await page.fill("[name=login]", name);
  await page.fill("[name=password]", "anything");
  await page.click("button[type=submit]");
  await page.getByRole("button", { name: "Continue" }).click();
}

const result = (page) => page.evaluate(() => done.then(({ data, error }) => ({ user: data?.user, code: error?.code ?? null })));
const state = (page) => page.evaluate(() => ({ status: auth.state.status, email: auth.state.user?.email }));

test("by redirect, and the address bar is clean afterwards", async () => {
  const { context, page } = await app();
  await page.evaluate(() => void auth.signInWithOAuth({ provider: "oidc", redirectTo: "/?tab=notes" }));
  await logIn(page, "ada");
  await page.waitForURL((url) => url.origin === proxy.url && url.pathname === "/");
  assert.deepEqual(await result(page).then(({ user, code }) => [user.email, user.identities[0].provider, code]), ["ada@example.com", "oidc", null]);
  assert.equal(page.url(), `${proxy.url}/?tab=notes`);
  assert.match(provider.log(), /"code_challenge_method":"S256"/);
  await page.reload();
  await page.waitForFunction(() => auth.state.status === "signed-in");
  assert.deepEqual(await result(page), { user: undefined, code: null });
  await context.close();
});

test("in a window, which closes itself", async () => {
  const { context, page } = await app();
  const window = context.waitForEvent("page");
  await page.evaluate(() => void (done = signInWithPopup(auth, { provider: "oidc", redirectTo: "/" })));
  const popup = await window;
  popup.setDefaultTimeout(20_000);
  const closed = popup.waitForEvent("close");
  await logIn(popup, "grace");
  assert.deepEqual(await result(page).then(({ user, code }) => [user?.email, code]), ["grace@example.com", null]);
  await closed;
  assert.deepEqual(await state(page), { status: "signed-in", email: "grace@example.com" });
  await context.close();
});

test("who turns back is told so, and nobody is signed in", async () => {
  const { context, page } = await app();
  await page.evaluate(() => void auth.signInWithOAuth({ provider: "oidc", redirectTo: "/" }));
  await page.getByText("Cancel").click();
  await page.waitForURL((url) => url.origin === proxy.url && url.pathname === "/");
  assert.equal((await result(page)).code, "oauth_denied");
  assert.equal(page.url(), `${proxy.url}/`);
  assert.equal((await state(page)).status, "signed-out");
  await context.close();
});

test("a callback of somebody else's flow signs nobody in", async () => {
  const stranger = await app();
  await stranger.page.route("**/exchange", (route) => route.abort());
  await stranger.page.evaluate(() => void auth.signInWithOAuth({ provider: "oidc", redirectTo: "/" }));
  let link;
  stranger.page.on("framenavigated", (frame) => {
    if (frame.url().startsWith(proxy.url) && /code=/.test(frame.url())) link = frame.url();
  });
  await logIn(stranger.page, "eve");
  await stranger.page.waitForFunction(() => globalThis.done, null, { polling: 100 });
  for (let i = 0; i < 200 && !link; i++) await new Promise((resolve) => setTimeout(resolve, 25));
  assert.ok(link, "there is no callback to plant");
  const { context, page } = await app();
  await page.goto(link);
  assert.equal((await result(page)).code, "other_browser");
  assert.equal((await state(page)).status, "signed-out");
  assert.equal(page.url(), `${proxy.url}/`);
  await context.close();
  await stranger.context.close();
});
