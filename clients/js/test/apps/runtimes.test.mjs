import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { installApp } from "../lib/app.mjs";
import { startServer } from "../lib/server.mjs";

// The packed package in other runtimes than Node, against a real server.
const runtimes = {
  node: [process.execPath, []],
  deno: ["deno", ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual", "--allow-net=127.0.0.1", "--allow-env", "--allow-read"]],
  bun: ["bun", ["run"]],
};
const key = "sk_a-secret-key-of-these-tests-of-enough-characters";

let server, app;
before(async () => {
  server = await startServer(["-secret-key", `${key}=*`]);
  app = installApp("apps/runtimes/");
});
after(async () => {
  app?.remove();
  await server?.stop();
});

for (const [name, [binary, args]] of Object.entries(runtimes))
  test(name, { timeout: 60_000 }, () => {
    const email = `${name}@example.com`;
    const said = JSON.parse(app.run(binary, [...args, "drive.mjs", server.url, key, email]).trim().split("\n").at(-1));
    assert.deepEqual(said, {
      seen: ["loading", "signed-out", "signed-in", "signed-out", "mfa", "signed-in", "signed-out"],
      aal: "aal2", forged: "bad_token", me: email, found: true,
    });
  });
