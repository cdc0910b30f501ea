import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installApp } from "../lib/app.mjs";
import { mail, openPage, startChromium } from "../lib/browser.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startPostgres } from "../lib/postgres.mjs";
import { password, startServer, totp } from "../lib/server.mjs";

// The same drive for each framework: a page built from the packed package, with tokens in localStorage.
const apps = { react: "../../examples/react/", vue: "apps/vue/", svelte: "apps/svelte/", svelte4: "apps/svelte/", solid: "apps/solid/" };
const chosen = process.env.APPS ? process.env.APPS.split(",") : Object.keys(apps);

/** The application of Svelte 5 as one of Svelte 4. */
function svelte4(dir) {
  const rewrite = (name, ...changes) => {
    const path = join(dir, name);
    writeFileSync(path, changes.reduce((text, [from, to]) => text.replaceAll(from, to), readFileSync(path, "utf8")));
  };
  rewrite("package.json", ['"svelte": "^5.0.0"', '"svelte": "^4.0.0"'], ['"vite": "^8.0.0"', '"vite": "^5.0.0"'], ['"@sveltejs/vite-plugin-svelte": "^7.0.0"', '"@sveltejs/vite-plugin-svelte": "^3.0.0"']);
  rewrite("src/App.svelte", [/\$state\((.*)\)/g, "$1"], ["onclick=", "on:click="], ["onsubmit=", "on:submit="]);
  rewrite("src/main.ts", ['import { mount } from "svelte";\n', ""], ["mount(App, {", "new App({"]);
}
const changes = { svelte4 };

let postgres, browser;
before(async () => {
  postgres = await startPostgres();
  browser = await startChromium();
});
after(async () => {
  await browser?.close();
  await postgres?.stop();
});

for (const name of chosen) {
  test(name, { timeout: 180_000 }, async (t) => {
    const [port, own] = await freePorts(2);
    const origin = `http://127.0.0.1:${own}`;
    const running = [];
    t.after(async () => {
      for (const stop of running.reverse()) await stop();
    });
    const start = () =>
      startServer([
        "-addr", `127.0.0.1:${port}`, "-base-url", `${origin}/auth/v1`, "-redirect-urls", `${origin}/*`,
        "-database-url", postgres.url, "-secret", "one-secret-of-these-tests-of-32-bytes",
      ]);
    let server = await start();
    running.push(() => server.stop());
    const app = installApp(apps[name], changes[name]);
    running.push(() => app.remove());
    const env = { AUTH_INTERNAL_URL: `http://127.0.0.1:${port}` };
    app.run("vite", ["build"], env);
    const vite = await app.start("vite", ["preview", "--host", "127.0.0.1", "--port", new URL(origin).port, "--strictPort"], /Local:/, env);
    running.push(() => vite.stop());

    const { page, context, complaints } = await openPage(browser);
    const email = `${name}@example.com`;
    const header = page.locator("header");
    const who = (at = page) => at.locator("header").getByText(email).waitFor();
    const out = () => page.locator("#sign-in").waitFor();
    const send = async (form, fields) => {
      for (const [field, value] of Object.entries(fields)) await page.fill(`${form} [name=${field}]`, value);
      await page.click(`${form} button`);
    };
    let secret;

    await t.test("sign up, confirm by mail", async () => {
      await page.goto(origin);
      await send("#sign-up", { email, password });
      await who();
      const { link } = await mail(server, email, "verify_email");
      const other = await context.newPage();
      await other.goto(link);
      await other.fill("#password", password); // the page is not of the application, and does not know who signed up
      await other.getByRole("button", { name: "Confirm account" }).click();
      await other.getByText(/confirmed/i).first().waitFor();
      await other.close();
    });

    await t.test("a reload keeps the session, and never draws the sign-in form meanwhile", async () => {
      await page.addInitScript(() => {
        new MutationObserver(() => document.querySelector("#sign-in") && (window.flashed = true)).observe(document, { childList: true, subtree: true });
      });
      await page.reload();
      await who();
      assert.equal(await page.evaluate(() => window.flashed ?? false), false);
    });

    await t.test("sign out, in every tab, and in", async () => {
      const other = await context.newPage();
      await other.goto(origin);
      await who(other);
      await header.getByText("Sign out").click();
      await out();
      await other.locator("#sign-in").waitFor();
      await send("#sign-in", { email, password });
      await who();
      await who(other);
      await other.close();
    });

    await t.test("a second factor is set up, and asked for", async () => {
      await page.click("#enroll button");
      secret = await page.locator("#secret").textContent();
      await send("#enable", { code: totp(secret) });
      await page.locator("#codes li").nth(9).waitFor();
      await header.getByText("Sign out").click();
      await out();
      await send("#sign-in", { email, password });
      await page.locator("#factor").waitFor();
      await send("#factor", { code: totp(secret, Date.now() + 30_000) });
      await who();
    });

    await t.test("a server that is away signs nobody out, and a restart loses nothing", async () => {
      await server.stop();
      await page.reload();
      await who();
      server = await start();
      await page.reload();
      await who();
    });

    await t.test("a mailed link signs in, and is gone from the address bar", async () => {
      const other = await openPage(browser);
      const at = `link-${email}`;
      await other.page.goto(origin);
      await other.page.fill("#link [name=email]", at);
      await other.page.click("#link button");
      await other.page.goto((await mail(server, at, "magic_link")).link);
      await other.page.getByRole("button").first().click();
      await other.page.locator("header").getByText(at).waitFor();
      assert.doesNotMatch(other.page.url(), /code=|am_flow/);
      await other.context.close();
    });

    assert.deepEqual(complaints, []);
    await context.close();
  });
}
