import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { installApp } from "../lib/app.mjs";
import { mail, openPage, startChromium } from "../lib/browser.mjs";
import { freePorts } from "../lib/ports.mjs";
import { startPostgres } from "../lib/postgres.mjs";
import { password, startServer, totp } from "../lib/server.mjs";

// examples/next from the packed package, in front of a server that can go away and come back.
let postgres, server, app, next, browser, origin, internal, startAgain;
before(async () => {
  postgres = await startPostgres();
  const [port, own] = await freePorts(2);
  origin = `http://127.0.0.1:${own}`;
  internal = `http://127.0.0.1:${port}`;
  startAgain = async () =>
    (server = await startServer([
      "-addr", `127.0.0.1:${port}`, "-cookies", "-base-url", `${origin}/auth/v1`, "-redirect-urls", `${origin}/callback`,
      "-database-url", postgres.url, "-secret", "a secret of the test, 32 bytes long".replaceAll(" ", "-").replaceAll(",", ""),
    ]));
  await startAgain();
  app = installApp("../../examples/next/");
  const env = { APP_URL: origin, AUTH_INTERNAL_URL: internal };
  app.run("next", ["build"], env);
  next = await app.start("next", ["start", "-H", "127.0.0.1", "-p", new URL(origin).port], /Ready in/, env);
  browser = await startChromium();
}, { timeout: 400_000 });
after(async () => {
  await browser?.close();
  await next?.stop();
  await server?.stop();
  await postgres?.stop();
  app?.remove();
});

const header = (page) => page.locator("header");
const signUp = async (page, email) => {
  await page.goto(`${origin}/sign-up`);
  await page.fill("[name=email]", email);
  await page.fill("[name=password]", password);
  await page.click("#sign-up button");
  await header(page).getByText(email).waitFor();
};
const signIn = async (page, email, at = "/sign-in") => {
  await page.goto(origin + at);
  await page.fill("#password [name=email]", email);
  await page.fill("#password [name=password]", password);
  await page.click("#password button");
};
const signOut = async (page) => {
  await header(page).getByText("Sign out").click();
  await header(page).getByText("Sign in").waitFor();
};
/** Confirms by the mailed link in the browser that signed up. */
const confirm = async (page, email) => {
  await page.goto((await mail(server, email, "verify_email")).link);
  await page.getByRole("button").first().click();
  await page.getByText(/confirmed/i).first().waitFor();
};
const setUpFactor = async (page) => {
  await page.goto(`${origin}/account`);
  await page.click("#set-up button");
  const secret = await page.locator("#secret").textContent();
  await page.fill("#set-up [name=code]", totp(secret));
  await page.click("#set-up button");
  await page.locator("#codes li").first().waitFor();
  return { secret, codes: await page.locator("#codes li").allTextContents() };
};

test("sign up, confirm by mail, sign out and in, reload: drawn by the server, without a flash", async () => {
  const { page, context, complaints } = await openPage(browser);
  await signUp(page, "ada@example.com");
  await confirm(page, "ada@example.com");
  await page.goto(`${origin}/account`);
  await page.getByText("(confirmed)").waitFor();
  await page.getByText("(this one)").waitFor();
  // What the server sends says who is there already: nothing is left for a script to find out.
  const html = await (await context.request.get(`${origin}/account`)).text();
  assert.match(html, /ada@example\.com/);
  assert.doesNotMatch(html, />Sign in</);
  assert.doesNotMatch(html, /eyJ[\w-]+\.[\w-]+\.[\w-]+|v1\.[\w-]{40,}/, "no token in the page");
  assert.deepEqual((await context.cookies()).filter((c) => c.name.startsWith("authmount-")).map((c) => c.httpOnly), [true, true, true]);
  await signOut(page);
  await signIn(page, "ada@example.com");
  await header(page).getByText("ada@example.com").waitFor();
  await page.reload();
  await header(page).getByText("ada@example.com").waitFor();
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a protected page sends strangers to sign in, and back; a forged middleware header opens nothing", async () => {
  const { page, context } = await openPage(browser);
  await signUp(page, "back@example.com");
  await signOut(page);
  await page.goto(`${origin}/account`);
  assert.equal(new URL(page.url()).pathname, "/sign-in");
  await signIn(page, "back@example.com", new URL(page.url()).pathname + new URL(page.url()).search);
  await page.waitForURL(`${origin}/account`);
  for (const headers of [
    { "x-middleware-subrequest": Array(5).fill("middleware").join(":") },
    { "x-middleware-subrequest": Array(5).fill("proxy").join(":") },
    { "x-middleware-override-headers": "cookie", "x-middleware-request-cookie": "authmount-access=x.y.z" },
  ]) {
    const response = await fetch(`${origin}/account`, { headers, redirect: "manual" });
    assert.notEqual(response.status === 200 && /Sessions/.test(await response.text()), true, JSON.stringify(headers));
  }
  await signIn(page, "back@example.com", "/sign-in?return_to=//evil.example.org");
  await header(page).getByText("back@example.com").waitFor();
  assert.equal(new URL(page.url()).origin, origin);
  await context.close();
});

test("second factor: set up, asked for at sign-in, a recovery code, removed", async () => {
  const { page, context } = await openPage(browser);
  await signUp(page, "factor@example.com");
  const { secret, codes } = await setUpFactor(page);
  assert.equal(codes.length, 10);
  await signOut(page);
  await signIn(page, "factor@example.com");
  await page.fill("#factor [name=code]", "000000");
  await page.click("#factor button");
  await page.locator("#factor [role=alert]").waitFor();
  await page.fill("#factor [name=code]", totp(secret, Date.now() + 30_000)); // the one before is used
  await page.click("#factor button");
  await header(page).getByText("factor@example.com").waitFor();
  await signOut(page);
  await signIn(page, "factor@example.com");
  await page.fill("#factor [name=code]", codes[0]);
  await page.click("#factor button");
  await header(page).getByText("factor@example.com").waitFor();
  await context.close();
});

test("a mailed link signs in where it was asked for, with a second factor, too", async () => {
  const { page, context } = await openPage(browser);
  await signUp(page, "link@example.com");
  // An address that nobody proved would be taken over by the link, and the factor be gone.
  await confirm(page, "link@example.com");
  const { codes } = await setUpFactor(page);
  await signOut(page);
  await page.goto(`${origin}/sign-in`);
  await page.fill("#link [name=email]", "link@example.com");
  await page.click("#link button");
  await page.locator("#link [role=status]").getByText("Look into your mail").waitFor();
  await page.goto((await mail(server, "link@example.com", "magic_link")).link);
  await page.getByRole("button").first().click();
  await page.waitForURL(/\/sign-in\?step=factor/);
  await page.fill("#factor [name=code]", codes[0]);
  await page.click("#factor button");
  await header(page).getByText("link@example.com").waitFor();
  await page.goto(`${origin}/callback?code=made-up`);
  await page.getByText("That link did not work").waitFor();
  await context.close();
});

test("sessions: another browser is listed, ended, and out", async () => {
  const [one, two] = [await openPage(browser), await openPage(browser)];
  await signUp(one.page, "two@example.com");
  await signIn(two.page, "two@example.com");
  await header(two.page).getByText("two@example.com").waitFor();
  await one.page.goto(`${origin}/account`);
  await one.page.getByRole("button", { name: "End" }).click();
  await one.page.getByRole("button", { name: "End" }).waitFor({ state: "detached" });
  await two.page.goto(`${origin}/account`);
  assert.equal(new URL(two.page.url()).pathname, "/sign-in", "an access token that is still good opens no account page");
  await one.context.close();
  await two.context.close();
});

test("an expired access token is renewed before the page is drawn, by many requests at once", async () => {
  const { page, context } = await openPage(browser);
  await signUp(page, "expired@example.com");
  for (let round = 0; round < 3; round++) {
    await context.clearCookies({ name: "authmount-access" });
    const pages = await Promise.all(Array.from({ length: 5 }, () => context.request.get(`${origin}/account`, { maxRedirects: 0 })));
    for (const p of pages) assert.equal(p.status(), 200);
    assert.match(pages.map((p) => p.headers()["cache-control"]).join(), /no-store/);
  }
  await page.goto(`${origin}/account`);
  await header(page).getByText("expired@example.com").waitFor();
  assert.ok((await context.cookies()).some((c) => c.name === "authmount-access" && c.httpOnly));
  await context.close();
});

test("a server that is away signs nobody out, and a restart loses nothing", async () => {
  const { page, context } = await openPage(browser);
  await signUp(page, "away@example.com");
  await server.stop();
  await page.goto(origin);
  await page.getByRole("heading", { name: "Hello, away@example.com" }).waitFor();
  await context.clearCookies({ name: "authmount-access" });
  await page.goto(origin);
  await page.getByText("Back in a moment").waitFor();
  await page.goto(`${origin}/account`);
  await page.getByText("does not answer").waitFor();
  assert.ok((await context.cookies()).some((c) => c.name === "authmount-refresh"), "the session is kept");
  await startAgain();
  await page.goto(`${origin}/account`);
  await header(page).getByText("away@example.com").waitFor();
  await context.close();
});

test("two visitors at once are never mixed up", async () => {
  const both = await Promise.all(
    ["mix1@example.com", "mix2@example.com"].map(async (email) => {
      const opened = await openPage(browser);
      await signUp(opened.page, email);
      return { ...opened, email };
    }),
  );
  const seen = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const { context, email } = both[i % 2];
      return [email, await (await context.request.get(origin)).text()];
    }),
  );
  for (const [email, html] of seen) {
    assert.match(html, new RegExp(`Hello, (<!-- -->)?${email}`));
    assert.doesNotMatch(html, new RegExp(email === "mix1@example.com" ? "mix2@" : "mix1@"));
  }
  for (const { context } of both) await context.close();
});
