/** Every ts block of the README compiles against the types as they are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../../", import.meta.url));
const blocks = [...readFileSync(`${root}README.md`, "utf8").matchAll(/^```(tsx?)\n([\s\S]*?)^```/gm)].map(([, kind, code], i) => [`${root}readme-${i + 1}.${kind}`, code]);

test("the README has examples, and its first screen is one", () => {
  assert.ok(blocks.length >= 6);
  assert.ok(readFileSync(`${root}README.md`, "utf8").split("\n").slice(0, 20).join("\n").includes(blocks[0][1].trim().split("\n").at(-1)));
});

test("every example compiles", () => {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const files = new Map(blocks);
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) => (files.has(name) ? ts.createSourceFile(name, files.get(name), ...rest.slice(0, 1)) : getSourceFile(name, ...rest));
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  const program = ts.createProgram([...files.keys()], { ...options, rootDir: undefined, noEmit: true, declaration: false, emitDeclarationOnly: false, noUnusedLocals: false, paths: { authmount: [`${root}src/index.ts`], "authmount/*": [`${root}src/*.ts`, `${root}src/*/index.ts`, `${root}src/*/index.tsx`] } }, host);
  const problems = ts.getPreEmitDiagnostics(program).filter((d) => files.has(d.file?.fileName)).map((d) => {
    const { line } = d.file.getLineAndCharacterOfPosition(d.start);
    return `${d.file.fileName.slice(root.length)}:${line + 1} ${d.file.text.split("\n")[line].trim()}: ${ts.flattenDiagnosticMessageText(d.messageText, "\n")}`;
  });
  assert.deepEqual(problems, []);
});
