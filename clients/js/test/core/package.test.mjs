/** A fresh clone, without dist and without a cache: `npm ci && npm pack` gives the package that people install. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("npm ci accepts the lock, and npm pack builds every file that the package exports", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "authmount-clone-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  cpSync(root, dir, { recursive: true, filter: (path) => !/\/(node_modules|dist|\.test|apps)$/.test(path) });
  const npm = (...args) => execFileSync("npm", args, { cwd: dir, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, npm_config_cache: join(dir, ".cache") } });

  npm("ci", "--dry-run", "--offline"); // compares the lock with package.json, including the packages of other platforms
  assert.doesNotMatch(readFileSync(join(dir, "package-lock.json"), "utf8"), /"resolved"/, "the lock names no registry");

  symlinkSync(join(root, "node_modules"), join(dir, "node_modules"));
  const [{ filename, files }] = JSON.parse(npm("pack", "--json").replace(/^[^[]*/, "")); // newer versions of npm print the build's name first
  const packed = files.map(({ path }) => path);
  const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  for (const [name, target] of Object.entries(manifest.exports))
    for (const path of typeof target === "string" ? [target] : Object.values(target)) assert.ok(packed.includes(path.slice(2)), `${name}: ${path} is missing`);
  // The entries share one AuthError: another one would be thrown instead of returned.
  mkdirSync(join(dir, "app/node_modules/authmount"), { recursive: true });
  execFileSync("tar", ["-xzf", filename, "-C", "app/node_modules/authmount", "--strip-components=1"], { cwd: dir });
  const program = `import { AuthError, createClient } from "authmount";
import { isAvailable, list, signIn } from "authmount/passkey";
const auth = createClient("https://app.example.com");
const errors = [await signIn(auth), await list(auth)].map(({ error }) => [error instanceof AuthError, error.code]);
console.log(JSON.stringify([isAvailable(), errors]));`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: join(dir, "app"), encoding: "utf8" });
  assert.deepEqual(JSON.parse(said), [false, [[true, "passkey_unavailable"], [true, "missing_token"]]]);
  for (const path of packed) assert.match(path, /^(dist\/|README\.md$|LICENSE$|package\.json$)/);
});
