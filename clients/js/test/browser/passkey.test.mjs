/** Passkeys in a real browser, with an authenticator that answers by itself, against the real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { mail, openPage, startChromium } from "../lib/browser.mjs";
import { src } from "../lib/core.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { password, startServer } from "../lib/server.mjs";

let browser, server, proxy, origin;

before(async () => {
  const { outputFiles } = await build({
    stdin: { contents: `import { createClient } from "./index.ts"; import * as passkeys from "./passkey.ts"; Object.assign(globalThis, { createClient, passkeys });`, resolveDir: src },
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
  });
  const html = (options) => `<!doctype html><title>passkeys</title><input autocomplete="username webauthn"><script src="/client.js"></script><script>auth = createClient(location.origin, null, ${options})</script>`;
  proxy = await startProxy({
    target: () => server.url,
    pages: { "/": ["text/html", html("{}")], "/cookies": ["text/html", html("{ cookies: true }")], "/client.js": ["text/javascript", outputFiles[0].text], "/favicon.ico": ["image/x-icon", ""] },
  });
  origin = proxy.url.replace("127.0.0.1", "localhost"); // browsers create no passkeys for IP addresses
  server = await startServer(["-base-url", `${origin}/auth/v1`, "-cookies"]);
  browser = await startChromium();
});

after(async () => {
  await browser?.close();
  await proxy?.stop();
  await server?.stop();
});

/** A page of a new account with a verified address, and its authenticator. */
async function account(t, email, path = "/") {
  const { context, page } = await openPage(browser);
  t.after(() => context.close());
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", { options });
  await page.goto(origin + path);
  /** Calls a function of the page, and returns its data, or its error's code. */
  const run = (call, argument) => page.evaluate(`(${call})(${JSON.stringify(argument)}).then(({ data, error }) => error ? error.code : data ?? null)`);
  assert.equal((await run((credentials) => auth.signUp(credentials), { email, password })).user.email, email);
  const { code } = await mail(server, email, "verify_email");
  assert.equal((await run((params) => auth.verifyOtp(params), { email, code })).user, null);
  return {
    page,
    run,
    status: () => page.evaluate(() => auth.state.status),
    device: (method, params) => cdp.send(`WebAuthn.${method}`, { authenticatorId, ...params }),
    /** The authenticator's passkeys, once there are so many. */
    async holds(count) {
      let credentials;
      for (let i = 0; i < 200; i++) {
        ({ credentials } = await cdp.send("WebAuthn.getCredentials", { authenticatorId }));
        if (credentials.length === count) return;
        await new Promise((resolve) => setTimeout(resolve, 25)); // it hears of it behind the answer
      }
      assert.equal(credentials.length, count);
    },
  };
}
const out = () => auth.signOut();
const signIn = () => passkeys.signIn(auth);

for (const [mode, path] of [["bearer", "/"], ["cookie", "/cookies"]])
  test(`a passkey is added, signs in, and is forgotten after its removal, in ${mode} mode`, { timeout: 60_000 }, async (t) => {
    const { page, run, status, holds } = await account(t, `${mode}@example.com`, path);
    const requests = [];
    page.on("request", (r) => r.url().includes("/sign-in/finish") && requests.push(r.postDataJSON()));
    assert.equal(await page.evaluate(() => passkeys.isAvailable()), true);
    const added = await run(() => passkeys.register(auth, { name: "Laptop" }));
    assert.deepEqual([added.passkey?.name, added.recovery_codes], ["Laptop", []], JSON.stringify(added));
    await holds(1);
    assert.equal(await run(() => passkeys.register(auth)), "passkey_already_exists");

    await run(out);
    assert.equal((await run(signIn)).user?.email, `${mode}@example.com`);
    assert.equal(await status(), "signed-in");
    assert.deepEqual(requests.map((r) => "request_id" in r), [mode === "bearer"]);
    if (mode === "bearer") assert.equal(await page.evaluate(() => auth.state.session.aal), "aal2");

    const [listed] = await run(() => passkeys.list(auth));
    assert.equal((await run((id) => passkeys.rename(auth, id, "Old laptop"), listed.id)).name, "Old laptop");
    await holds(1);
    // Without the report after the removal, the server's answer has the authenticator forget the passkey.
    await page.evaluate(() => delete PublicKeyCredential.signalAllAcceptedCredentials);
    assert.equal(await run((id) => passkeys.remove(auth, id), listed.id), null);
    await run(out);
    await holds(1);
    assert.equal(await run(signIn), "passkey_removed");
    await holds(0);
    assert.equal(await status(), "signed-out");
  });

test("the authenticator hears of a removal", { timeout: 60_000 }, async (t) => {
  const { run, holds } = await account(t, "removal@example.com");
  const { passkey } = await run(() => passkeys.register(auth));
  await holds(1);
  assert.equal(await run((id) => passkeys.remove(auth, id), passkey.id), null);
  await holds(0);
});

test("a passkey is a second factor, and authenticates again", { timeout: 60_000 }, async (t) => {
  const email = "factor@example.com";
  const { page, run, status } = await account(t, email);
  const { passkey } = await run(() => passkeys.register(auth));
  assert.equal((await run(() => passkeys.confirm(auth))).user.email, email);
  const changed = await run((id) => passkeys.useAsSecondFactor(auth, id), passkey.id);
  assert.deepEqual([changed.passkey?.second_factor, changed.recovery_codes?.length], [true, 10], JSON.stringify(changed));
  assert.equal(await page.evaluate(() => auth.state.user.mfa_enabled), true);
  await run(out);
  assert.equal(await run((credentials) => auth.signInWithPassword(credentials), { email, password }), "mfa_required");
  assert.equal(await status(), "mfa");
  assert.deepEqual(await page.evaluate(() => auth.state.pending.factors), ["passkey", "recovery_code"]);
  assert.equal((await run(() => passkeys.verify(auth))).user.email, email);
  assert.equal(await page.evaluate(() => auth.state.session.aal), "aal2");
});

test("prompts that are refused, and that nobody answers, have codes", { timeout: 60_000 }, async (t) => {
  const { page, run, device, status } = await account(t, "refused@example.com");
  await run(() => passkeys.register(auth));
  await run(out);
  await device("setUserVerified", { isUserVerified: false });
  assert.equal(await run(signIn), "passkey_cancelled");
  await device("setUserVerified", { isUserVerified: true });
  await device("setAutomaticPresenceSimulation", { enabled: false });
  const waiting = page.evaluate(() => ((globalThis.control = new AbortController()), passkeys.signIn(auth, { signal: control.signal }).then(({ error }) => error?.code)));
  await page.evaluate(() => control.abort());
  assert.equal(await waiting, "aborted");
  await device("setAutomaticPresenceSimulation", { enabled: true });
  assert.equal((await run(signIn)).user?.email, "refused@example.com");
  assert.equal(await status(), "signed-in");
});

test("autofill signs in, and a prompt ends one that waits", { timeout: 60_000 }, async (t) => {
  const { page, run, status, device } = await account(t, "autofill@example.com");
  await run(() => passkeys.register(auth));
  await run(out);
  await device("setAutomaticPresenceSimulation", { enabled: false });
  const begun = page.waitForResponse(/sign-in\/begin/);
  const waiting = run(() => passkeys.signIn(auth, { conditional: true }));
  await begun;
  const prompted = run(() => passkeys.signIn(auth, { signal: (globalThis.control = new AbortController()).signal }));
  assert.equal(await waiting, "aborted");
  await page.evaluate(() => control.abort());
  assert.equal(await prompted, "aborted");
  await device("setAutomaticPresenceSimulation", { enabled: true });
  assert.equal((await run(() => passkeys.signIn(auth, { conditional: true }))).user?.email, "autofill@example.com");
  assert.equal(await status(), "signed-in");
});

test("silent creation asks the browser with the server's options", { timeout: 60_000 }, async (t) => {
  // A stand-in for navigator.credentials: no headless browser creates passkeys by itself.
  const { page, run, holds } = await account(t, "silent@example.com");
  await page.evaluate(() => {
    PublicKeyCredential.getClientCapabilities = async () => ({ conditionalCreate: true });
    const create = navigator.credentials.create.bind(navigator.credentials);
    navigator.credentials.create = ({ mediation, ...options }) => ((globalThis.mediation = mediation), create(options));
  });
  const added = await run(() => passkeys.register(auth, { conditional: true }));
  assert.equal(added.passkey?.second_factor, false, JSON.stringify(added));
  assert.equal(await page.evaluate(() => mediation), "conditional");
  await holds(1);
});
