/** The React example with passkeys, from the packed package: on localhost, with an authenticator that answers by itself. */
import assert from "node:assert/strict";
import test from "node:test";
import { installApp } from "../lib/app.mjs";
import { mail, openPage, startChromium } from "../lib/browser.mjs";
import { freePorts } from "../lib/ports.mjs";
import { password, startServer } from "../lib/server.mjs";

test("passkeys in the React example", { timeout: 180_000 }, async (t) => {
  const running = [];
  t.after(async () => {
    for (const stop of running.reverse()) await stop();
  });
  const [port, own] = await freePorts(2);
  const origin = `http://localhost:${own}`;
  const server = await startServer(["-addr", `127.0.0.1:${port}`, "-base-url", `${origin}/auth/v1`, "-redirect-urls", `${origin}/*`]);
  running.push(() => server.stop());
  const app = installApp("../../examples/react/");
  running.push(() => app.remove());
  const env = { AUTH_INTERNAL_URL: `http://127.0.0.1:${port}` };
  app.run("tsc", []);
  app.run("vite", ["build"], env);
  const vite = await app.start("vite", ["preview", "--port", String(own), "--strictPort"], /Local:/, env);
  running.push(() => vite.stop());
  const browser = await startChromium();
  running.push(() => browser.close());

  const { page, context, complaints } = await openPage(browser);
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  await cdp.send("WebAuthn.addVirtualAuthenticator", { options });
  const email = "ada@example.com";
  const who = () => page.locator("header").getByText(email).waitFor();
  const signOut = () => page.locator("header").getByText("Sign out").click();

  await page.goto(origin);
  await page.fill("#sign-up [name=email]", email);
  await page.fill("#sign-up [name=password]", password);
  await page.click("#sign-up button");
  await who();
  const other = await context.newPage();
  await other.goto((await mail(server, email, "verify_email")).link);
  await other.fill("#password", password);
  await other.getByRole("button", { name: "Confirm account" }).click();
  await other.getByText(/confirmed/i).first().waitFor();
  await other.close();

  await page.click("#add-passkey button");
  await page.locator("#passkeys li").getByText("not used yet").waitFor();

  // First without autofill, which the authenticator would answer before the button is clicked.
  await page.evaluate(() => {
    globalThis.available = PublicKeyCredential.isConditionalMediationAvailable;
    PublicKeyCredential.isConditionalMediationAvailable = async () => false;
  });
  await signOut();
  assert.equal(await page.locator("#sign-in [name=email]").getAttribute("autocomplete"), "username webauthn");
  await page.click("#passkey button");
  await who();
  await page.locator("#passkeys li").getByText(/\(used /).waitFor();

  await page.evaluate(() => (PublicKeyCredential.isConditionalMediationAvailable = available));
  await signOut(); // the authenticator answers the autofill
  await who();

  await page.locator("#passkeys li").getByRole("button", { name: "Remove" }).click();
  await page.locator("#passkeys li").waitFor({ state: "detached" });
  assert.deepEqual(complaints, []);
  await context.close();
});
