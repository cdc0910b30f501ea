import assert from "node:assert/strict";
import test from "node:test";
import { installApp } from "../lib/app.mjs";
import { mail } from "../lib/browser.mjs";
import { startFirefox, startWebKit } from "../lib/engines.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startPostgres } from "../lib/postgres.mjs";
import { password, startServer, totp } from "../lib/server.mjs";

// The React application in the other engines, in which storage, BroadcastChannel and cookies are of other hands.
const engines = { firefox: startFirefox, webkit: startWebKit };
const chosen = process.env.ENGINES ? process.env.ENGINES.split(",") : Object.keys(engines);

/** An expression that is true where an element has a text. */
const says = (selector, text) => `document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)})`;

for (const name of chosen) {
  test(name, { timeout: 240_000 }, async (t) => {
    const running = [];
    t.after(async () => {
      for (const stop of running.reverse()) await stop();
    });
    const postgres = await startPostgres();
    running.push(() => postgres.stop());
    const [port, own] = await freePorts(2);
    const origin = `http://127.0.0.1:${own}`;
    const start = () =>
      startServer([
        "-addr", `127.0.0.1:${port}`, "-base-url", `${origin}/auth/v1`, "-redirect-urls", `${origin}/*`,
        "-database-url", postgres.url, "-secret", "one-secret-of-these-tests-of-32-bytes",
      ]);
    let server = await start();
    running.push(() => server.stop());
    const app = installApp("../../examples/react/");
    running.push(() => app.remove());
    const env = { AUTH_INTERNAL_URL: `http://127.0.0.1:${port}` };
    app.run("vite", ["build"], env);
    const vite = await app.start("vite", ["preview", "--host", "127.0.0.1", "--port", String(own), "--strictPort"], /Local:/, env);
    running.push(() => vite.stop());
    const engine = await engines[name]();
    running.push(() => engine.stop());
    const window = await engine.window();
    t.diagnostic(window.version ?? engine.version);

    const page = await window.tab();
    const email = `${name}@example.com`;
    const who = (tab = page, address = email) => tab.wait(says("header", address));
    const out = (tab = page) => tab.wait(`document.querySelector("#sign-in")`);
    const send = async (form, fields) => {
      for (const [field, value] of Object.entries(fields)) await page.type(`${form} [name=${field}]`, value);
      await page.click(`${form} button`);
    };
    const signOut = () => page.click("header button");
    let secret;

    await t.test("sign up, confirm by mail", async () => {
      await page.goto(origin);
      await send("#sign-up", { email, password });
      await who();
      const other = await window.tab();
      await other.goto((await mail(server, email, "verify_email")).link);
      await other.type("#password", password); // the page is not of the application, and does not know who signed up
      await other.click("form:has(#password) button");
      await other.wait(`/confirmed/i.test(document.body.textContent)`);
      await other.close();
    });

    await t.test("a reload keeps the session", async () => {
      await page.reload();
      await who();
    });

    await t.test("sign out and in, in every tab", async () => {
      const other = await window.tab();
      await other.goto(origin);
      await who(other);
      await signOut();
      await out();
      await out(other);
      await send("#sign-in", { email, password: `${password} not` });
      await page.wait(`document.querySelector("#sign-in [role=alert]")`);
      assert.equal(await other.is(says("header", email)), false);
      await send("#sign-in", { email, password });
      await who();
      await who(other);
      await other.close();
    });

    await t.test("a second factor is set up, and asked for", async () => {
      await page.click("#enroll button");
      await page.wait(`document.querySelector("#secret")?.textContent`);
      secret = await page.text("#secret");
      await send("#enable", { code: totp(secret) });
      await page.wait(`document.querySelectorAll("#codes li").length === 10`);
      await signOut();
      await out();
      await send("#sign-in", { email, password });
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
      await signOut();
      await out();
      const at = `link-${email}`;
      await page.type("#link [name=email]", at);
      await page.click("#link button");
      await page.goto((await mail(server, at, "magic_link")).link);
      await page.click("button");
      await who(page, at);
      assert.doesNotMatch(await page.url(), /code=|am_flow/);
    });
    await window.close();
  });
}
