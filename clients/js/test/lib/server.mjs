/** A real examples/server for tests: built once, each on a free port of the loopback interface. */
import { execFileSync, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../../../", import.meta.url));
let built;

/** The path of the binary; AUTHMOUNT_SERVER names one that is there already. */
export function binary() {
  if (process.env.AUTHMOUNT_SERVER && existsSync(process.env.AUTHMOUNT_SERVER)) return process.env.AUTHMOUNT_SERVER;
  if (!built) {
    const dir = join(tmpdir(), `authmount-clients-${process.pid}`);
    mkdirSync(dir, { recursive: true });
    built = join(dir, "server");
    execFileSync("go", ["build", "-o", built, "./examples/server"], { cwd: repository, stdio: "inherit" });
  }
  return built;
}

/**
 * Starts a server with memory as its store, unless the arguments say otherwise.
 * @returns {Promise<{url: string, port: number, stop(): Promise<void>, log(): string}>}
 */
export async function startServer(args = [], env = {}) {
  const store = args.includes("-database-url") ? [] : ["-memory"];
  const child = spawn(binary(), ["-addr", "127.0.0.1:0", "-dev-inbox", "-no-rate-limit", ...store, ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const port = await new Promise((resolve, reject) => {
    gone.then(() => reject(new Error(`the server did not start:\n${log}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      log += line + "\n";
      const found = /msg=listening addr=\S*:(\d+)/.exec(line);
      if (found) resolve(Number(found[1]));
    });
  });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    log: () => log,
    stop: async () => {
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/** Calls an endpoint and reads its JSON. */
export async function call(server, method, path, body, headers = {}) {
  const response = await fetch(`${server.url}/auth/v1${path}`, {
    method,
    headers: { ...(body ? { "content-type": "application/json" } : {}), ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, headers: response.headers, body: response.status === 204 ? null : await response.json() };
}

/** The Cookie header of a browser that took a response's cookies. */
export const cookiesOf = (response) => response.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ");

export const password = "correct horse battery staple";

/** A new account, with a session in tokens and one in cookies. */
export async function person(server, email) {
  const { body } = await call(server, "POST", "/signup", { email, password });
  const inCookies = await call(server, "POST", "/login", { email, password }, { "x-session-transport": "cookie" });
  return { email, user: body.user, accessToken: body.access_token, refreshToken: body.refresh_token, cookie: cookiesOf(inCookies) };
}

/** The code that an authenticator app shows for a Base32 secret (RFC 6238). */
export function totp(secret, at = Date.now()) {
  const bits = [...secret.replace(/=+$/, "")].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const mac = createHmac("sha1", key).update(counter).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
