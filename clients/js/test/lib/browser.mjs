import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

/** A headless Chromium of the system; CHROMIUM names another one. */
export async function startChromium() {
  const executablePath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  if (!executablePath) throw new Error("Chromium is missing: run scripts/ensure-chromium.sh");
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** A page of a browser of its own, and what it complains about. */
export async function openPage(browser) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints = [];
  page.on("pageerror", (e) => complaints.push(String(e)));
  page.on("console", (m) => m.type() === "error" && !/Failed to load resource/.test(m.text()) && complaints.push(m.text()));
  return { context, page, complaints };
}

/** The newest message to an address of one kind, from the server's inbox, once there are so many. */
export async function mail(server, to, kind, least = 1) {
  for (let i = 0; i < 200; i++) {
    const messages = await (await fetch(`${server.url}/dev/messages`)).json();
    const all = messages.filter((m) => m.to === to && m.kind === kind).sort((a, b) => (a.id < b.id ? 1 : -1));
    const [found] = all;
    if (all.length >= least) return { ...found, link: /https?:\/\/\S+/.exec(found.text)?.[0], code: /(?:^|\D)(\d{6})(?:\D|$)/.exec(found.text.replace(/https?:\S+/g, ""))?.[1] }; // a link may have six digits, too
    await new Promise((resolve) => setTimeout(resolve, 25)); // it is sent behind the answer
  }
  throw new Error(`no ${kind} to ${to}`);
}
