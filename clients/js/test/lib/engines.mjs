/**
 * Firefox and WebKit of the system, each as far as a drive needs one. Both have tabs with the same few methods, so that
 * one drive is for both. Firefox is spoken to by WebDriver BiDi, WebKit by WebDriver, which is all that it has.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import puppeteer from "puppeteer-core";
import { freePorts } from "./ports.mjs";

const patience = 20_000; // milliseconds, for whatever a page has to come to

/** A program of the system, or what to do about it. */
function programOf(...paths) {
  const found = paths.find(existsSync);
  if (!found) throw new Error(`${paths[0]} is missing: run scripts/ensure-engines.sh`);
  return found;
}

/** Asks until the answer is yes. */
async function until(what, ask) {
  const end = Date.now() + patience;
  let last;
  while (Date.now() < end) {
    try {
      if (await ask()) return;
      last = undefined;
    } catch (error) {
      last = error; // a page that is left meanwhile answers nothing
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`waited in vain for ${what}`, { cause: last });
}

export async function startFirefox() {
  const executablePath = programOf("/usr/bin/firefox-esr", "/usr/bin/firefox");
  const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true, timeout: 60_000 });
  return {
    version: await browser.version(),
    /** A window with cookies and storage of its own. */
    async window() {
      const context = await browser.createBrowserContext();
      return {
        async tab() {
          const page = await context.newPage();
          page.setDefaultTimeout(patience);
          const is = (expression) => page.evaluate(`!!(${expression})`);
          return {
            goto: (url) => page.goto(url),
            reload: () => page.reload(),
            url: async () => page.url(),
            is,
            wait: (expression) => until(expression, () => is(expression)),
            async type(selector, text) {
              const field = await page.waitForSelector(selector);
              await field.click({ count: 3 });
              await field.type(text);
            },
            click: async (selector) => (await page.waitForSelector(selector)).click(),
            text: (selector) => page.$eval(selector, (e) => e.textContent),
            close: () => page.close(),
          };
        },
        close: () => context.close(),
      };
    },
    stop: () => browser.close(),
  };
}

/** A process that ends with its test. */
function run(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text));
  const gone = new Promise((resolve) => child.once("exit", resolve));
  return {
    log: () => log,
    stop: async () => {
      try {
        process.kill(-child.pid, "SIGKILL"); // with the browser that it started
      } catch {
        return; // it is gone
      }
      await gone;
    },
  };
}

/** The name by which WebDriver refers to an element. */
const element = "element-6066-11e4-a52e-4f735466cecf";

export async function startWebKit() {
  const driver = programOf("/usr/bin/WebKitWebDriver");
  const binary = programOf(...["4.1", "6.0", "4.0"].map((v) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${v}/MiniBrowser`), ...["4.1", "6.0"].map((v) => `/usr/lib/aarch64-linux-gnu/webkit2gtk-${v}/MiniBrowser`));
  const running = [];
  const stop = async () => {
    for (const one of running.reverse()) await one.stop();
  };
  try {
    const [port] = await freePorts(1);
    const screen = run(programOf("/usr/bin/Xvfb"), ["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]);
    running.push(screen);
    await until("a screen", () => /^\d+\n/.test(screen.log()));
    // Without its sandbox and another process for the compositor, neither of which containers allow.
    const env = { DISPLAY: `:${parseInt(screen.log(), 10)}`, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", WEBKIT_DISABLE_COMPOSITING_MODE: "1", LIBGL_ALWAYS_SOFTWARE: "1" };
    running.push(run(driver, [`--host=127.0.0.1`, `--port=${port}`], env));
    const call = async (method, path, body) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(method === "POST" && { body: JSON.stringify(body ?? {}) }), signal: AbortSignal.timeout(60_000) });
      const { value } = await response.json();
      if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
      return value;
    };
    await until("WebKitWebDriver", () => call("GET", "/status"));
    return {
      version: "WebKitGTK",
      /** A session of the driver is a window with cookies and storage of its own; it has one at a time. */
      async window() {
        const { sessionId, capabilities } = await call("POST", "/session", { capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary, args: ["--automation"] } } } });
        const at = (path) => `/session/${sessionId}${path}`;
        let first = true;
        return {
          version: `${capabilities.browserName} ${capabilities.browserVersion}`,
          async tab() {
            const handle = first ? await call("GET", at("/window")) : (await call("POST", at("/window/new"), { type: "tab" })).handle;
            first = false;
            const here = async (method, path, body) => {
              await call("POST", at("/window"), { handle });
              return call(method, at(path), body);
            };
            const evaluate = (script, ...args) => here("POST", "/execute/sync", { script, args });
            const is = (expression) => evaluate(`return !!(${expression})`);
            const find = async (selector) => {
              await until(selector, () => is(`document.querySelector(${JSON.stringify(selector)})`));
              return (await here("POST", "/element", { using: "css selector", value: selector }))[element];
            };
            return {
              goto: (url) => here("POST", "/url", { url }),
              reload: () => here("POST", "/refresh"),
              url: () => here("GET", "/url"),
              is,
              wait: (expression) => until(expression, () => is(expression)),
              async type(selector, text) {
                const id = await find(selector);
                await here("POST", `/element/${id}/clear`);
                await here("POST", `/element/${id}/value`, { text });
              },
              click: async (selector) => here("POST", `/element/${await find(selector)}/click`),
              text: (selector) => evaluate(`return document.querySelector(${JSON.stringify(selector)}).textContent`),
              close: () => here("DELETE", "/window"),
            };
          },
          close: () => call("DELETE", at("")),
        };
      },
      stop,
    };
  } catch (error) {
    const said = running.map((one) => one.log()).join("");
    await stop();
    throw new Error(`WebKit did not start: ${error.message}\n${said}`, { cause: error });
  }
}
