/** One drive for each framework that renders on the server: an application built from the packed package, in front of a real server. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { installApp, newerNode } from "../lib/app.mjs";
import { openPage, startChromium } from "../lib/browser.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { call, password, startServer } from "../lib/server.mjs";

const apps = {
  // How each is built and started, and what has the types of its context.
  sveltekit: { build: ["vite", ["build"]], start: ["build/index.js"], ready: /Listening/ },
  nuxt: { build: ["nuxt", ["build"]], start: [".output/server/index.mjs"], ready: /Listening/ },
  "tanstack-start": { build: ["vite", ["build"]], start: ["node_modules/srvx/bin/srvx.mjs", "--prod", "--static", "../client", "--entry", "dist/server/server.js"], ready: /Listening|Server/, types: ["src/routeTree.gen.ts"] },
};
const readme = [...readFileSync(new URL("../../README.md", import.meta.url), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code);
const chosen = process.env.APPS ? process.env.APPS.split(",") : Object.keys(apps);

let node, browser;
before(async () => {
  node = newerNode();
  browser = await startChromium();
}, { timeout: 120_000 });
after(async () => {
  await browser?.close();
  node?.remove();
});

for (const name of chosen)
  test(name, { timeout: 300_000 }, async (t) => {
    const running = [];
    t.after(async () => {
      for (const stop of running.reverse()) await stop();
    });
    const { build, start, ready, types = [] } = apps[name];
    const [own] = await freePorts(1);
    const origin = `http://127.0.0.1:${own}`;
    const server = await startServer(["-cookies", "-base-url", `${origin}/auth/v1`, "-redirect-urls", `${origin}/*`]);
    running.push(() => server.stop());
    // Between the application and its server: it counts, and can be a server that is away.
    let away = false;
    const between = await startProxy({ target: () => (away ? "http://127.0.0.1:9" : server.url), pages: {} });
    running.push(() => between.stop());
    const app = installApp(`apps/${name}/`);
    running.push(() => app.remove());
    const env = { PATH: node.path, APP_URL: origin, AUTH_INTERNAL_URL: between.url, HOST: "127.0.0.1", PORT: String(own), NODE_ENV: "production" };
    app.run(...build, env);
    await t.test("the README's example fits the framework's types", () => {
      writeFileSync(join(app.dir, "readme.ts"), readme.find((block) => block.includes(`authmount/${name}`)));
      app.compile("readme.ts", ...types);
    });
    const served = await app.start("node", start, ready, env);
    running.push(() => served.stop());

    const header = (page) => page.locator("header");
    const send = async (page, at, form, email) => {
      await page.goto(origin + at);
      await page.fill(`${form} [name=email]`, email);
      await page.fill(`${form} [name=password]`, password);
      await page.click(`${form} button`);
    };
    const person = async (email) => {
      const opened = await openPage(browser);
      await send(opened.page, "/sign-up", "#sign-up", email);
      await header(opened.page).getByText(email).waitFor();
      return opened;
    };
    const session = async (context) => (await context.cookies()).filter((c) => c.name.startsWith("authmount-"));
    const get = (context, path) => context.request.get(origin + path, { maxRedirects: 0 });
    const as = (headers, path = "/account") => fetch(origin + path, { headers, redirect: "manual" });
    const cookieLines = (response) => response.headersArray().filter((h) => h.name.toLowerCase() === "set-cookie").map((h) => h.value);
    /** Who a cookie opens the account to, or nobody. */
    const opens = async (response) => /id="sub"/.test(await response.text());

    await t.test("sign up, be known to the server's page, sign out and in, return to the page", async () => {
      const { page, context, complaints } = await openPage(browser);
      await page.goto(`${origin}/account`);
      assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, "/sign-in?return_to=%2Faccount");
      await send(page, "/sign-up", "#sign-up", "ada@example.com");
      await header(page).getByText("ada@example.com").waitFor();
      await page.waitForURL(`${origin}/account`);
      await page.locator("#sub").getByText(/^[\w-]{20,}$/).waitFor();
      const cookies = await session(context);
      assert.ok(cookies.length >= 2 && cookies.every((c) => c.httpOnly && c.sameSite === "Lax" && c.domain === "127.0.0.1"));
      const response = await get(context, "/account");
      const html = await response.text();
      assert.match(html, /ada@example\.com/, "drawn by the server");
      assert.doesNotMatch(html, /eyJ[\w-]+\.[\w-]+\.[\w-]+|v1\.[\w-]{40,}/, "no token in the page");
      assert.equal(response.headers()["cache-control"], "private, no-store");
      await page.getByRole("button", { name: "Sign out" }).click();
      await header(page).getByText("Sign in").waitFor();
      assert.deepEqual((await session(context)).filter((c) => !/-device$/.test(c.name)), []);
      await page.click("#to-account"); // in the browser's own navigation, too
      await page.locator("#sign-in").waitFor();
      assert.equal(new URL(page.url()).searchParams.get("return_to"), "/account");
      await page.fill("#sign-in [name=email]", "ada@example.com");
      await page.fill("#sign-in [name=password]", `${password} not`);
      await page.click("#sign-in button");
      await page.getByRole("alert").getByText(/./).waitFor();
      await page.fill("#sign-in [name=email]", "ada@example.com");
      await page.fill("#sign-in [name=password]", password);
      await page.click("#sign-in button");
      await page.waitForURL(`${origin}/account`);
      await header(page).getByText("ada@example.com").waitFor();
      assert.deepEqual(complaints, []);
      await context.close();
    });

    await t.test("a link to the sign-in page sends nobody to another site", async () => {
      const { page, context } = await person("link@example.com");
      for (const to of ["//evil.example.org", "/\\evil.example.org", "https://evil.example.org/", "/\t/evil.example.org"]) {
        await send(page, `/sign-in?return_to=${encodeURIComponent(to)}`, "#sign-in", "link@example.com");
        await page.getByRole("heading", { name: "Home" }).waitFor();
        assert.equal(page.url(), `${origin}/`, to);
      }
      await context.close();
    });

    await t.test("an expired access token: requests at once share one refresh, and each response has its cookies once", async () => {
      const { page, context } = await person("expired@example.com");
      between.latency = 300;
      for (let round = 1; round <= 3; round++) {
        await context.clearCookies({ name: "authmount-access" });
        const before = between.counts["POST /refresh"] ?? 0;
        const responses = await Promise.all(Array.from({ length: 5 }, () => get(context, "/account")));
        assert.equal(between.counts["POST /refresh"] - before, 1);
        for (const response of responses) {
          assert.equal(response.status(), 200);
          assert.ok(await opens(response));
          assert.equal(response.headers()["cache-control"], "private, no-store");
          assert.deepEqual(cookieLines(response).map((line) => line.split("=")[0]).sort(), ["authmount-access", "authmount-refresh"]);
          assert.ok(cookieLines(response).every((line) => /; HttpOnly/i.test(line) && /; Path=\//i.test(line) && /; SameSite=Lax/i.test(line)));
        }
      }
      between.latency = 0;
      await page.reload();
      await header(page).getByText("expired@example.com").waitFor();
      assert.deepEqual(cookieLines(await get(context, "/account")), [], "a session that is good is left alone");
      await context.close();
    });

    await t.test("caches keep a response for everybody, but none with cookies", async () => {
      assert.equal((await as({}, "/plain")).headers.get("cache-control"), "public, max-age=60");
      const { context } = await person("cached@example.com");
      assert.equal((await get(context, "/plain")).headers()["cache-control"], "public, max-age=60");
      await context.clearCookies({ name: "authmount-access" });
      const response = await get(context, "/plain");
      assert.equal(cookieLines(response).length, 2);
      assert.equal(response.headers()["cache-control"], "private, no-store");
      await context.close();
    });

    await t.test("a token that is forged, of another server or in another header opens nothing", async () => {
      const { page, context } = await person("forged@example.com");
      // Where the browser's own navigation has the page's data from.
      await page.goto(origin, { waitUntil: "networkidle" });
      const data = [];
      page.on("request", (r) => r.resourceType() === "fetch" && data.push({ path: r.url().slice(origin.length), headers: { ...Object.fromEntries(Object.entries(r.headers()).filter(([name]) => /^(accept|x-.*)$/.test(name))), "sec-fetch-site": "same-origin" } }));
      await page.click("#to-account");
      const sub = await page.locator("#sub").textContent();
      const paths = ["/account", "/account/", "/%61ccount", "/Account", "//account"].map((path) => ({ path, headers: { accept: "text/html" } }));
      const { value } = (await session(context)).find((c) => c.name === "authmount-access");
      const cookie = `authmount-access=${value}`;
      assert.ok(await opens(await as({ cookie })));
      const open = await Promise.all(data.map(async ({ path, headers }) => (await (await as({ ...headers, cookie }, path)).text()).includes(sub)));
      assert.ok(open.some(Boolean), "the data is where the browser had it from");
      const [head, body, signature] = value.split(".");
      const json = (part) => JSON.parse(Buffer.from(part, "base64url"));
      const text = (object) => Buffer.from(JSON.stringify(object)).toString("base64url");
      const other = await startServer(["-base-url", `${origin}/auth/v1`]);
      const { body: theirs } = await call(other, "POST", "/signup", { email: "forged@example.com", password });
      await other.stop();
      for (const [why, headers] of Object.entries({
        "another user": { cookie: `authmount-access=${head}.${text({ ...json(body), sub: "00000000-0000-0000-0000-000000000000" })}.${signature}` },
        "a later expiry": { cookie: `authmount-access=${head}.${text({ ...json(body), exp: json(body).exp + 3600 })}.${signature}` },
        "no signature": { cookie: `authmount-access=${text({ ...json(head), alg: "none" })}.${body}.` },
        "of another server": { cookie: `authmount-access=${theirs.access_token}` },
        "two of them": { cookie: `authmount-access=${value}; authmount-access=${value}` },
        "in a header": { authorization: `Bearer ${value}` },
        "no token": {},
      }))
        for (const at of [...paths, ...data]) {
          const response = await as({ ...at.headers, ...headers }, at.path);
          const text = await response.text();
          assert.ok(!text.includes(sub) && !text.includes("forged@example.com") && !/id="sub"/.test(text), `${why} at ${at.path}`);
          if (at.path === "/account") assert.deepEqual([response.status, response.headers.get("location"), response.headers.get("cache-control")], [303, "/sign-in?return_to=%2Faccount", "private, no-store"], why);
        }
      await context.close();
    });

    await t.test("a session that has ended loses its cookies, an outage takes nothing", async () => {
      const { page, context } = await person("ended@example.com");
      await context.clearCookies({ name: "authmount-access" });
      const kept = await session(context);
      away = true;
      const down = await get(context, "/account");
      assert.equal(down.status(), 503);
      assert.deepEqual(cookieLines(down), []);
      assert.match(await (await get(context, "/")).text(), /Back in a moment/);
      away = false;
      assert.deepEqual(await session(context), kept);
      await page.goto(`${origin}/account`);
      await header(page).getByText("ended@example.com").waitFor();

      const cookie = (await session(context)).map((c) => `${c.name}=${c.value}`).join("; ");
      await call(server, "POST", "/logout", null, { cookie });
      await context.clearCookies({ name: "authmount-access" });
      const response = await get(context, "/account");
      assert.equal(response.status(), 303);
      assert.deepEqual(cookieLines(response).map((line) => line.split(";")[0]).sort(), ["authmount-access=", "authmount-refresh="]);
      assert.ok(cookieLines(response).every((line) => /; Max-Age=0/i.test(line)));
      await context.close();
    });

    await t.test("the server is on the application's origin, and another site acts for nobody", async () => {
      const { page, context } = await person("same@example.com");
      const me = await page.evaluate(async () => (await fetch("/auth/v1/me")).json());
      assert.equal(me.email, "same@example.com");
      const renamed = await page.evaluate(async () => (await fetch("/auth/v1/me", { method: "PATCH", headers: { "content-type": "application/json" }, body: '{"full_name":"Ada"}' })).status);
      assert.equal(renamed, 200, "a body arrives");
      const cookie = (await session(context)).map((c) => `${c.name}=${c.value}`).join("; ");
      const action = await page.locator("header form").getAttribute("action");
      const response = await fetch(new URL(action, origin), { method: "POST", redirect: "manual", headers: { cookie, origin: "https://evil.example.org", "sec-fetch-site": "cross-site", "content-type": "application/x-www-form-urlencoded" }, body: "" });
      assert.deepEqual(response.headers.getSetCookie(), []);
      await page.reload();
      await header(page).getByText("same@example.com").waitFor();
      await context.close();
    });

    await t.test("two visitors at once are never mixed up", async () => {
      const emails = ["mix1@example.com", "mix2@example.com"];
      const both = await Promise.all(emails.map(person));
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          if (i < 2) await both[i].context.clearCookies({ name: "authmount-access" });
          const html = await (await get(both[i % 2].context, "/account")).text();
          assert.ok(html.includes(emails[i % 2]) && !html.includes(emails[1 - (i % 2)]));
        }),
      );
      for (const { context } of both) await context.close();
    });
  });
