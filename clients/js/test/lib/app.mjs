/** Applications built from the packed package, as somebody who installs it has it. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
// Without colours: tools that see CI or a terminal colour their words, between which we look for ours.
const quiet = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NO_COLOR: "1" };
delete quiet.FORCE_COLOR;

const copy = (from) => {
  const dir = mkdtempSync(join(tmpdir(), "authmount-app-"));
  cpSync(fileURLToPath(new URL(from, `file://${root}`)), dir, { recursive: true, filter: (path) => !/\/(node_modules|\.next|dist)(\/|$)/.test(path) });
  return dir;
};
const npm = (dir, ...args) => execFileSync("npm", [...args, "--no-audit", "--no-fund", "--prefer-offline"], { cwd: dir, stdio: ["ignore", "ignore", "pipe"] });

/** A Node of 22.19 or later, which some frameworks need: this one, or one from npm. */
export function newerNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return { path: process.env.PATH, remove() {} };
  const dir = copy("apps/node/");
  npm(dir, "ci");
  if (!existsSync(join(dir, "node_modules/.bin/node"))) throw new Error(`Node 22.19 or later is needed, this is ${process.version}`);
  return { path: `${join(dir, "node_modules/.bin")}:${process.env.PATH}`, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/**
 * Copies an application to a temporary folder, lets it be changed there, and installs its dependencies and the
 * tarball that `npm pack` makes. With a lock the dependencies are those of the lock.
 */
export function installApp(from, change = (dir) => {}) {
  const dir = copy(from);
  change(dir);
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", dir], { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  const locked = existsSync(join(dir, "package-lock.json"));
  if (locked) npm(dir, "ci", "--ignore-scripts");
  manifest.dependencies = { ...manifest.dependencies, authmount: `file:./${filename}` };
  writeFileSync(join(dir, "package.json"), JSON.stringify(manifest, null, 2));
  if (locked) {
    // As npm installs it, without a change of the lock: its digest is another one each time.
    mkdirSync(join(dir, "node_modules/authmount"));
    execFileSync("tar", ["-xzf", filename, "-C", "node_modules/authmount", "--strip-components=1"], { cwd: dir });
  } else npm(dir, "install");
  const program = (name) => (name === "node" ? name : resolve(dir, "node_modules/.bin", name)); // a whole path stays as it is
  return {
    dir,
    /** Runs a binary of the application's own to its end. */
    run: (name, args, env = {}) => execFileSync(program(name), args, { cwd: dir, env: { ...quiet, ...env }, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" }),
    /** Compiles files, and all that they import, against the types of the application's packages. */
    compile(...files) {
      const types = join(root, "node_modules/@types");
      const compilerOptions = { noEmit: true, strict: true, skipLibCheck: true, target: "es2022", module: "esnext", moduleResolution: "bundler", jsx: "react-jsx", types: ["node"], typeRoots: [types], paths: { react: [`${types}/react`], "react/*": [`${types}/react/*`] } };
      writeFileSync(join(dir, "check.json"), JSON.stringify({ compilerOptions, files }));
      const { status, stdout } = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "check.json"], { cwd: dir, encoding: "utf8" });
      if (status) throw new Error(stdout);
    },
    /** Starts one, and waits for what it prints when it is ready. */
    async start(name, args, ready, env = {}) {
      const child = spawn(program(name), args, { cwd: dir, env: { ...quiet, ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
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
