/** A throw-away Postgres, for servers that have to come back with what they had. */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./ports.mjs";

function binaries() {
  const base = "/usr/lib/postgresql";
  const found = existsSync(base) ? readdirSync(base).map((v) => join(base, v, "bin")).filter((d) => existsSync(join(d, "initdb"))) : [];
  if (!found.length) throw new Error("Postgres is missing: run scripts/ensure-postgres.sh");
  return found.sort().at(-1);
}

/** @returns {Promise<{url: string, stop(): Promise<void>}>} */
export async function startPostgres() {
  const bin = binaries();
  const dir = mkdtempSync(join(tmpdir(), "authmount-clients-pg-"));
  // Postgres does not run as root.
  let as = {};
  if (process.getuid() === 0) {
    const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" })));
    chownSync(dir, uid, gid);
    as = { uid, gid };
  }
  const data = join(dir, "data");
  execFileSync(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"], { stdio: "ignore", cwd: dir, ...as });
  const [port] = await freePorts(1);
  const child = spawn(join(bin, "postgres"), ["-D", data, "-p", String(port), "-k", dir, "-h", "127.0.0.1", "-F"], { stdio: ["ignore", "ignore", "pipe"], cwd: dir, ...as });
  const gone = new Promise((resolve) => child.once("exit", resolve));
  await new Promise((resolve, reject) => {
    gone.then(() => reject(new Error("Postgres did not start")));
    child.stderr.on("data", (text) => /ready to accept connections/.test(text) && resolve());
  });
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres?sslmode=disable`,
    stop: async () => {
      child.kill("SIGINT");
      await gone;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
