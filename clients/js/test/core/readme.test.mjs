/** Every ts block of the README compiles against the types as they are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { problemsOf } from "../lib/compile.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const blocks = [...readFileSync(`${root}README.md`, "utf8").matchAll(/^```(tsx?)\n([\s\S]*?)^```/gm)].map(([, kind, code], i) => [`${root}readme-${i + 1}.${kind}`, code]);

// Frameworks that are no dependency of this package. test/apps/ssr.test.mjs compiles their examples with the frameworks' own types.
const modules = `declare module "h3" {
  type Event = import("authmount/nuxt").EventLike;
  export const defineEventHandler: <T>(handler: (event: Event) => T) => typeof handler;
  export const readBody: <T>(event: Event) => Promise<T>;
  export const sendRedirect: (event: Event, to: string, status: number) => Promise<void>;
}
declare module "@tanstack/react-start" {
  type Context = import("authmount/tanstack-start").StartContext;
  interface Input { request: Request; handlerType: "serverFn" | "router"; next(o: { context: Context }): Promise<{ response: Response }> }
  interface ServerFn<D> { validator<E>(f: (data: E) => E): ServerFn<E>; handler<T>(f: (o: { data: D; context: Context }) => Promise<T>): (o: { data: D }) => Promise<T> }
  export const createMiddleware: () => { server(f: (input: Input) => unknown): object };
  export const createCsrfMiddleware: (o: { filter(o: { handlerType: string }): boolean }) => object;
  export const createServerFn: (o?: { method: string }) => ServerFn<undefined>;
  export const createStart: (f: () => { requestMiddleware: object[] }) => object;
}
`;

test("the README has examples, and its first screen is one", () => {
  assert.ok(blocks.length >= 6);
  assert.ok(readFileSync(`${root}README.md`, "utf8").split("\n").slice(0, 20).join("\n").includes(blocks[0][1].trim().split("\n").at(-1)));
});

test("every example compiles", () => {
  assert.deepEqual(problemsOf(new Map([...blocks, [`${root}readme-modules.d.ts`, modules]])), []);
});
