/** Applications built from the packed package, as somebody who installs it has it. */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
// Without colours: tools that see CI or a terminal colour their words, between which we look for ours.
const quiet = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NO_COLOR: "1" };
delete quiet.FORCE_COLOR;

/**
 * Copies an application to a temporary folder, lets it be changed there, and installs its dependencies and the
 * tarball that `npm pack` makes.
 */
export function installApp(from, change = (dir) => {}) {
  const dir = mkdtempSync(join(tmpdir(), "authmount-app-"));
  cpSync(fileURLToPath(new URL(from, `file://${root}`)), dir, { recursive: true, filter: (path) => !/\/(node_modules|\.next|dist)(\/|$)/.test(path) });
  change(dir);
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", dir], { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  manifest.dependencies.authmount = `file:./${filename}`;
  writeFileSync(join(dir, "package.json"), JSON.stringify(manifest, null, 2));
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"], { cwd: dir, stdio: ["ignore", "ignore", "pipe"] });
  return {
    dir,
    /** Runs a binary of the application's own to its end. */
    run: (name, args, env = {}) => execFileSync(resolve(dir, "node_modules/.bin", name), args, { cwd: dir, env: { ...quiet, ...env }, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" }),
    /** Starts one, and waits for what it prints when it is ready. */
    async start(name, args, ready, env = {}) {
      const child = spawn(join(dir, "node_modules/.bin", name), args, { cwd: dir, env: { ...quiet, ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
      let log = "";
      const gone = new Promise((resolve) => child.once("exit", resolve));
      const stop = async () => {
        process.kill(-child.pid, "SIGTERM"); // its own group: it may have children
        await gone;
      };
      const seen = {};
      const said = new Promise((resolve, reject) => Object.assign(seen, { resolve, reject }));
      const waited = setTimeout(() => stop().then(() => seen.reject(new Error(`${name} has not said ${ready} in a minute:\n${log}`))), 60_000);
      gone.then(() => seen.reject(new Error(`${name} ended:\n${log}`)));
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => ready.test((log += text)) && seen.resolve());
      await said.finally(() => clearTimeout(waited));
      return { log: () => log, stop };
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
