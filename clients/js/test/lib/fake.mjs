/** What tests of the core have a client talk to: a server that is told what to answer, and when. */
import assert from "node:assert/strict";
import { load } from "./core.mjs";

export const { createClient, signInWithPopup, completePopup } = await load("index", "popup");
export const origin = "https://app.example.com";
export const user = { id: "1", email: "ada@example.com", roles: [] };
export const bob = { id: "2", email: "bob@example.com", roles: [] };
export const session = (n, life = 900, u = user) => ({ access_token: `access-${n}`, refresh_token: `refresh-${n}`, token_type: "bearer", expires_in: 900, expires_at: Math.floor(Date.now() / 1000) + life, user: u });
export const json = (body, status = 200, headers = {}) => new Response(status === 204 ? null : JSON.stringify(body), { status, headers: { date: new Date().toUTCString(), ...headers } });
export const settle = async () => { for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve)); };
export const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

export function fake(routes) {
  const calls = [];
  const fetch = async (url, init) => {
    const name = `${init.method} ${url.slice(`${origin}/auth/v1`.length)}`;
    calls.push({ name, url, init, body: init.body && JSON.parse(init.body) });
    const route = routes[name] ?? routes[name.split("?")[0]];
    assert.ok(route, `unexpected ${name}`);
    return new Promise((resolve, reject) => {
      init.signal.addEventListener("abort", () => reject(init.signal.reason));
      Promise.resolve(typeof route === "function" ? route(init) : json(route)).then(resolve, reject);
    });
  };
  return { calls, fetch, count: (name) => calls.filter((c) => c.name.startsWith(name)).length };
}
export function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}
export function storage(first) {
  const kept = new Map(first ? [["session", JSON.stringify(first)]] : []);
  return { kept, getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => void kept.set(k, v), removeItem: (k) => void kept.delete(k) };
}
export function client(t, server, options = {}) {
  const made = createClient(origin, "pk_test", { fetch: server.fetch, storage: storage(), storageKey: "session", ...options });
  t.after(() => made.dispose());
  return made;
}
export function page(t, href = `${origin}/here`) {
  const at = new URL(href);
  const replaced = [], assigned = [];
  const values = storage();
  const local = new Proxy({}, { ownKeys: () => [...values.kept.keys()], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: (_, name) => values[name] });
  const globals = {
    document: {},
    location: { href: at.href, origin: at.origin, pathname: at.pathname, assign: (to) => assigned.push(to) },
    history: { state: null, replaceState: (_, __, url) => replaced.push(String(url)) },
    localStorage: local,
  };
  for (const [name, value] of Object.entries(globals)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  t.after(() => Object.keys(globals).forEach((name) => delete globalThis[name]));
  return { replaced, assigned, kept: values.kept };
}
