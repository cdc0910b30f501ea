/** Runs clients/scenarios, which every client library of the project is held to. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { load } from "../lib/core.mjs";

const folder = new URL("../../../scenarios/", import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const { createClient } = await load("index");
const fixtures = read("fixtures.json");
const { transitions } = read("transitions.json");
const allowed = new Set(transitions.map(({ from, to }) => `${from} → ${to}`));
const taken = new Set();
const origin = "https://app.example.com";
const realNow = Date.now;
const realSetTimeout = setTimeout;
const realClearTimeout = clearTimeout;

/** Replaces what the scenarios abbreviate. */
function expand(value, now) {
  if (Array.isArray(value)) return value.map((v) => expand(v, now));
  if (!value || typeof value !== "object") return value;
  if ("$now" in value) return now + value.$now;
  const { $use, ...rest } = value;
  const own = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, expand(v, now)]));
  if ($use === undefined) return own;
  assert.ok($use in fixtures, `no fixture ${$use}`);
  const base = expand(fixtures[$use], now);
  return typeof base === "string" ? base : { ...base, ...own };
}

/** Whether a value has at least what is expected. */
function has(actual, expected, where) {
  if (expected && typeof expected === "object" && !Array.isArray(expected)) {
    assert.ok(actual && typeof actual === "object", `${where}: ${JSON.stringify(actual)}`);
    for (const [key, value] of Object.entries(expected)) has(actual[key], value, `${where}.${key}`);
  } else assert.deepEqual(actual, expected, where);
}

/** The clock of a scenario; timers of ten seconds and more follow it. */
function clock() {
  const timers = new Map();
  const c = {
    time: 1767225600,
    wrong: 0,
    advance(seconds) {
      c.time += seconds;
      for (const [id, { at, run }] of [...timers]) if (at <= c.time && timers.delete(id)) run();
    },
    restore() {
      Date.now = realNow;
      globalThis.setTimeout = realSetTimeout;
      globalThis.clearTimeout = realClearTimeout;
    },
  };
  Date.now = () => (c.time + c.wrong) * 1000;
  globalThis.setTimeout = (run, ms = 0, ...args) => {
    if (ms < 10_000) return realSetTimeout(run, ms, ...args);
    const id = { unref() {} };
    timers.set(id, { at: c.time + ms / 1000, run });
    return id;
  };
  globalThis.clearTimeout = (id) => timers.delete(id) || realClearTimeout(id);
  return c;
}

/** Plays the answers of a step. */
function server(clock) {
  const s = { expected: [], problems: [] };
  s.fetch = async (url, init) => {
    const path = url.slice(`${origin}/auth/v1`.length);
    const bearer = init.headers.authorization?.replace("Bearer ", "") ?? null;
    const body = init.body ? JSON.parse(init.body) : undefined;
    const found = s.expected.find(({ request: r, came, times }) => r.method === init.method && r.path === path && came < times && (typeof r.bearer !== "string" || r.bearer === bearer));
    if (!url.startsWith(`${origin}/auth/v1/`) || !found) {
      s.problems.push(`unexpected: ${init.method} ${url} ${init.body ?? ""}`);
      throw new TypeError("no such answer");
    }
    found.came++;
    const { request, answer } = found;
    try {
      if ("bearer" in request) assert.equal(bearer, request.bearer, "bearer");
      for (const [name, value] of Object.entries(request.headers ?? {})) assert.equal(init.headers[name] ?? null, value, name);
      if ("body" in request) {
        const rest = Object.fromEntries(Object.entries(body ?? {}).filter(([name]) => !request.any?.includes(name)));
        assert.deepEqual(rest, request.body, "body");
      }
      assert.equal(new URL(url).hash + (init.redirect ?? ""), "error", "no redirect is followed");
    } catch (error) {
      s.problems.push(`${init.method} ${path}: ${error.message}`);
    }
    if (answer.lost) throw new TypeError("fetch failed");
    const headers = { date: new Date(clock.time * 1000).toUTCString(), "content-type": "application/json", ...answer.headers };
    const text = answer.body === undefined ? null : typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
    return new Response(text, { status: answer.status, headers });
  };
  return s;
}

const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

async function call(client, step) {
  if (step.do === "start") return void (await new Promise((resolve) => client.subscribe(resolve)));
  const method = step.do.split(".").reduce((at, name) => at[name].bind?.(at) ?? at[name], client);
  const args = step.with === undefined ? [] : Array.isArray(step.with) ? step.with : [step.with];
  return method(...args);
}

function checkResult(result, expected, where) {
  if (!expected) return;
  if (expected.error === null) assert.equal(result.error, null, where);
  else {
    has(result.error, expected.error, `${where}.error`);
    assert.equal(result.data, null);
  }
  if ("data" in expected) has(result.data, expected.data, `${where}.data`);
}

async function run(scenario) {
  const c = clock();
  const s = server(c);
  const { cookies, apiKey } = scenario.options ?? {};
  const key = "session";
  const kept = new Map();
  if (scenario.stored) kept.set(key, JSON.stringify(expand(scenario.stored, c.time)));
  const storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) };
  let client;
  let told = [];
  let last = "loading";
  try {
    for (const [i, raw] of scenario.steps.entries()) {
      if (raw.clock !== undefined) c.wrong = raw.clock;
      if (raw.advance) c.advance(raw.advance);
      const step = expand(raw, c.time);
      const where = `step ${i + 1} (${step.do ?? "together"})`;
      if ("store" in step) step.store ? kept.set(key, JSON.stringify(step.store)) : kept.delete(key);
      s.expected = (step.server ?? []).map((one) => ({ times: 1, came: 0, ...one }));
      if (!client) {
        client = createClient(origin, apiKey, { storage, storageKey: key, cookies: !!cookies, fetch: s.fetch });
        client.subscribe(({ status }) => {
          if (status !== last) taken.add(`${last} → ${status}`);
          if (status !== last || told.length) told.push(status);
          else if (last !== "loading") told.push(status);
          last = status;
        });
      }
      const steps = step.together ?? [step];
      const results = await Promise.all(steps.map((one) => call(client, one)));
      // A start is over when nothing is asked any more.
      for (let n = 0; step.do === "start" && n < 400 && s.expected.some((one) => one.came < 1); n++) await settle();
      for (let n = 0; n < 20; n++) await settle();
      if (step.do === "start" && s.expected.some((one) => one.times > 1)) await new Promise((resolve) => realSetTimeout(resolve, 800)); // the repetition of a lost request
      for (const [n, one] of steps.entries()) checkResult(results[n], one.result, `${where}.result`);
      assert.deepEqual(s.problems, [], where);
      for (const one of s.expected) assert.ok(one.came > 0, `${where}: ${one.request.method} ${one.request.path} did not come`);
      if (step.state) has(client.state, step.state, `${where}.state`);
      if ("keeps" in step) step.keeps ? has(JSON.parse(kept.get(key) ?? "null"), step.keeps, `${where}.keeps`) : assert.equal(kept.has(key), false, `${where}.keeps`);
      if (step.tells) assert.deepEqual(told.filter((status, n) => status !== told[n - 1]), step.tells, `${where}.tells`);
      told = [];
    }
  } finally {
    client?.dispose();
    c.restore();
  }
}

for (const name of readdirSync(folder).filter((n) => n.endsWith(".json")).sort()) {
  for (const scenario of read(name).scenarios ?? []) {
    test(`${name.replace(".json", "")}: ${scenario.name} (prevents: ${scenario.prevents})`, { timeout: 10_000 }, () => run(scenario));
  }
}

test("the table of transitions is all that was seen, and all of it was", () => {
  assert.deepEqual([...taken].filter((t) => !allowed.has(t)), [], "not in the table");
  assert.deepEqual([...allowed].filter((t) => !taken.has(t)), [], "in no scenario");
});
