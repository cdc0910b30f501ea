/** Every ts block of the README compiles against the types as they are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { problemsOf } from "../lib/compile.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const blocks = [...readFileSync(`${root}README.md`, "utf8").matchAll(/^```(tsx?)\n([\s\S]*?)^```/gm)].map(([, kind, code], i) => [`${root}readme-${i + 1}.${kind}`, code]);

test("the README has examples, and its first screen is one", () => {
  assert.ok(blocks.length >= 6);
  assert.ok(readFileSync(`${root}README.md`, "utf8").split("\n").slice(0, 20).join("\n").includes(blocks[0][1].trim().split("\n").at(-1)));
});

test("every example compiles", () => {
  assert.deepEqual(problemsOf(new Map(blocks)), []);
});
