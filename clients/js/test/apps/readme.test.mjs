/** What the README writes for React, as it stands there: in Vite's dev server, with StrictMode, sessions in cookies. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { installApp } from "../lib/app.mjs";
import { mail, openPage, startChromium } from "../lib/browser.mjs";
import { freePorts } from "../lib/ports.mjs";
import { password, startServer } from "../lib/server.mjs";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const block = (holding) => [...readme.matchAll(/^```\w+\n([\s\S]*?)^```/gm)].map(([, code]) => code).find((code) => code.includes(holding));
const main = `import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./App";
createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
`;

test("the README's application", { timeout: 180_000 }, async (t) => {
  const running = [];
  t.after(async () => {
    for (const stop of running.reverse()) await stop();
  });
  const [port, own] = await freePorts(2);
  const origin = `http://localhost:${own}`;
  // The flags are the README's, at other ports.
  const flags = block("go run ./examples/server").trim().replaceAll("'", "").replaceAll("localhost:5173", `localhost:${own}`).split(" ").slice(3);
  const serve = (...more) => startServer(["-addr", `127.0.0.1:${port}`, ...flags.filter((flag) => flag !== "-dev-inbox"), ...more]);
  let server = await serve();
  running.push(() => server.stop());
  const app = installApp("../../examples/react/");
  running.push(() => app.remove());
  const write = (name, text) => writeFileSync(join(app.dir, name), text);
  for (const name of ["app", "account", "sign-in", "passkeys", "form"]) rmSync(join(app.dir, `src/${name}.tsx`));
  write("src/main.tsx", main);
  write("src/App.tsx", block("<AuthProvider client"));
  write("vite.config.ts", block("vite.config.ts").replace("127.0.0.1:8080", `127.0.0.1:${port}`));
  app.run("tsc", []);
  const vite = await app.start("vite", ["--host", "localhost", "--port", String(own), "--strictPort"], /Local:/);
  running.push(() => vite.stop());
  const browser = await startChromium();
  running.push(() => browser.close());

  const { page, context, complaints } = await openPage(browser);
  const asked = [];
  page.on("request", (r) => /\/auth\/v1\//.test(r.url()) && asked.push(`${r.method()} ${new URL(r.url()).pathname.slice("/auth/v1".length)}`));
  const email = "ada@example.com";
  const send = async (secret, button) => {
    await page.fill("[name=email]", email);
    await page.fill("[name=password]", secret);
    await page.getByRole("button", { name: button }).click();
  };
  const who = () => page.getByText(email).waitFor();

  await page.goto(origin);
  await page.getByRole("button", { name: "Sign up" }).waitFor();
  assert.deepEqual(asked, ["GET /me", "POST /refresh"], "drawn twice by StrictMode, asked once");
  await send(password, "Sign up");
  await who();
  assert.equal(await page.evaluate(() => Object.keys(localStorage).length), 0, "nothing of a session is in script's reach");

  asked.length = 0;
  await page.reload();
  await who();
  assert.deepEqual(asked, ["GET /me"]);

  // A change of the source, as hot module reloading brings it.
  const source = join(app.dir, "src/App.tsx");
  writeFileSync(source, readFileSync(source, "utf8").replace("Sign out<", "Leave<"));
  await page.getByRole("button", { name: "Leave" }).click();
  await send(`${password} not`, "Sign in");
  await page.getByRole("alert").getByText(/./).waitFor();
  await send(password, "Sign in");
  await who();
  assert.deepEqual(complaints, []);

  // A server that asks for the code of a mail, and knows nobody yet.
  await page.getByRole("button", { name: "Leave" }).click();
  await page.getByRole("button", { name: "Sign up" }).waitFor();
  await server.stop();
  server = await serve("-require-confirmation");
  await send("short", "Sign up");
  await page.getByRole("alert").getByText("length").waitFor();
  await send(password, "Sign up");
  await page.getByText("The code that we mailed you").waitFor();
  await page.fill("[name=code]", (await mail(server, email, "verify_email")).code);
  await page.getByRole("button", { name: "Continue" }).click();
  await send(password, "Sign in");
  await who();
  await context.close();
});
