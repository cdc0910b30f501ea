/**
 * Writes src/admin/wire.ts and src/admin/operations.ts from the document of the server, with
 * the admin side in it. With --check nothing is written, and a difference is an error.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { leftOut, names } from "./admin-names.mjs";
import { camel, comment, object, type } from "./schema.mjs";

const root = new URL("../", import.meta.url);
const doc = JSON.parse(readFileSync(process.env.ADMIN_DOCUMENT ?? new URL("../../admin/openapi.json", root), "utf8"));
const head = "// Written by scripts/admin.mjs from the document of the server. Do not edit.\n\n";
const verbs = ["get", "post", "put", "patch", "delete"];

const deref = (s) => {
  while (s?.$ref) s = s.$ref.slice(2).split("/").reduce((at, part) => at[part], doc);
  return s;
};

// Every operation has a name, and every name an operation.
const there = new Set(Object.entries(doc.paths).flatMap(([path, item]) => verbs.filter((v) => item[v] && path.startsWith("/admin/")).map((v) => `${v.toUpperCase()} ${path}`)));
const named = Object.values(names).flatMap((v) => (typeof v === "string" ? v : Object.values(v)));
const missing = [...there].filter((o) => !named.includes(o) && !leftOut.includes(o));
const unknown = [...named, ...leftOut].filter((o) => !there.has(o));
if (missing.length || unknown.length) throw new Error(`scripts/admin-names.mjs: without a name: ${missing.join(", ") || "none"}; not in the document: ${unknown.join(", ") || "none"}`);

const used = new Set();
const answers = { ref: (name) => (used.add(name), name) };
// Arguments are camelCase, so components are written in place.
const args = { named: camel, ref: (name) => type(doc.components.schemas[name], args, "  ") };
// Rows of files keep the wire's names.
const rows = { ref: (name) => type(doc.components.schemas[name], rows, "  ") };

/** What is to be known of one operation. */
function read(operation) {
  const [verb, path] = operation.split(" ");
  const o = doc.paths[path][verb.toLowerCase()];
  const parameters = (o.parameters ?? []).map(deref);
  const query = parameters.filter((p) => p.in === "query");
  const body = deref(o.requestBody);
  const json = deref(body?.content?.["application/json"]?.schema);
  const lines = deref(body?.content?.["application/x-ndjson"]?.schema);
  const good = Object.entries(o.responses).filter(([code]) => code.startsWith("2")).map(([, r]) => deref(r).content ?? {});
  const streams = good.some((c) => c["application/x-ndjson"]);
  const schemas = good.map((c) => c["application/json"]?.schema);
  const page = schemas.map(deref).find((s) => s?.properties?.next_cursor);
  const items = page && Object.keys(page.properties).find((k) => page.properties[k].type === "array");
  return { verb, path, o, parameters, query, json, lines, body, streams, schemas, page, items };
}

const inputs = [];
/** The arguments of an operation, as members of a type of its own. */
function input(label, r) {
  const properties = Object.fromEntries(r.query.map((p) => [p.name, { ...p.schema, description: p.description }]));
  const schema = r.json ?? { properties, required: r.query.filter((p) => p.required).map((p) => p.name) };
  if (/metadata\.<name>/.test(r.o.description ?? "") || r.path === "/admin/users/export") {
    properties.metadata = { type: "object", additionalProperties: { type: ["string", "number", "boolean", "null"] }, description: "By members of app_metadata, up to ten." };
  }
  if (Object.keys(schema.properties ?? {}).length === 0) return "";
  const required = r.json ? r.body.required === true : schema.required.length > 0;
  inputs.push(`${comment(`What {@link AdminOperations} takes for ${r.verb} ${r.path}.`)}export interface ${label}Input ${object(schema, args)}\n`);
  return `input${required ? "" : "?"}: ${label}Input`;
}

function method(group, name, operation, indent) {
  const r = read(operation);
  const label = [group, name].map((n) => n && n[0].toUpperCase() + n.slice(1)).join("");
  const parts = [...r.path.matchAll(/\{(\w+)\}/g)].map((m) => `${m[1]}: string`);
  if (r.lines) {
    inputs.push(`/** One line of an import. */\nexport interface ${label}Row ${object(r.lines, rows)}\n`);
    parts.push(`rows: Rows<${label}Row>`);
  }
  const takes = input(label, r);
  if (takes) parts.push(takes);
  parts.push("options?: CallOptions");
  let answer;
  if (r.streams) answer = "Promise<Result<ReadableStream<Uint8Array>>>";
  else {
    const types = [...new Set(r.schemas.map((s) => (s ? type(s, answers, indent) : "null")))].join(" | ");
    answer = r.items ? `Pages<${types}, ${type(r.page.properties[r.items].items, answers, indent)}>` : `Promise<Result<${types}>>`;
  }
  const text = [`${r.o.summary}.`.replace(/\.\.$/, "."), r.o.description, `\`${operation}\``].filter(Boolean).join("\n\n");
  return `${comment(text, indent)}${indent}${name}(${parts.join(", ")}): ${answer};\n`;
}

let members = "";
const table = [];
for (const [name, value] of Object.entries(names)) {
  if (typeof value === "string") {
    members += method("", name, value, "  ");
    table.push(`  ${name}: ${row(value)},\n`);
  } else {
    const inner = Object.entries(value);
    members += `  readonly ${name}: {\n${inner.map(([n, o]) => method(name, n, o, "    ")).join("")}  };\n`;
    table.push(`  ${name}: {\n${inner.map(([n, o]) => `    ${n}: ${row(o)},\n`).join("")}  },\n`);
  }
}
/** How the client makes the call: verb, path, where its input goes, and what its answer is. */
function row(operation) {
  const r = read(operation);
  const input = r.lines ? "rows" : r.json ? "body" : r.query.length ? "query" : "none";
  return JSON.stringify([operation, input, r.streams ? "stream" : r.items].filter(Boolean).join(" "));
}

// Objects whose members are the application's own names, and are sent as they are.
const open = new Set();
const walk = (s) => {
  for (const [name, member] of Object.entries(deref(s)?.properties ?? {})) {
    const m = deref(member);
    if (![m.type].flat().includes("object")) { walk(m.items); continue; }
    if (m.properties) walk(m);
    else if (name !== "filter") open.add(name); // names of filters are the server's
  }
};
for (const o of named) walk(read(o).json);

const components = [];
for (const name of used) components.push([name, `${comment(doc.components.schemas[name].description)}${shape(name)}\n`]); // grows while it runs
function shape(name) {
  const s = doc.components.schemas[name];
  const text = type(s, answers);
  return text.startsWith("{") && !s.type?.includes?.("null") ? `export interface ${name} ${text}` : `export type ${name} = ${text};`;
}
components.sort(([a], [b]) => (a < b ? -1 : 1));

const inputNames = inputs.map((text) => /interface (\w+)/.exec(text)[1]);
// Every code that an operation may answer with.
const codes = new Set();
const collect = (s) => {
  if (Array.isArray(s)) s.forEach(collect);
  else if (s && typeof s === "object") {
    for (const c of s.properties?.code?.enum ?? [s.properties?.code?.const]) if (c) codes.add(c);
    Object.values(s).forEach(collect);
  }
};
for (const o of named) for (const [status, r] of Object.entries(read(o).o.responses)) if (!status.startsWith("2")) collect(deref(r).content);
const codeType = `/** What the server says went wrong. */\nexport type AdminErrorCode =\n${[...codes].sort().map((c) => `  | "${c}"`).join("\n")};\n`;

const files = {
  "src/admin/wire.ts": head + [codeType, ...components.map(([, text]) => text)].join("\n"),
  "src/admin/inputs.ts": head + inputs.join("\n"),
  "src/admin/operations.ts":
    head +
    `import type { CallOptions, Pages, Result, Rows } from "./call.js";\nimport type { ${inputNames.join(", ")} } from "./inputs.js";\nimport type { ${[...used].filter((n) => new RegExp(`\\b${n}\\b`).test(members)).sort().join(", ")} } from "./wire.js";\n\n` +
    `/** Every operation of the admin side. */\nexport interface AdminOperations {\n${members}}\n` +
    `\n/** How each is called: verb, path, where its input goes; then "stream", or what the items of a page are called. */\nexport const operations = {\n${table.join("")}} as const;\n` +
    `\n/** Members whose own members are the application's, and keep their names. */\nexport const open: readonly string[] = ${JSON.stringify([...open].sort())};\n`,
};
const late = Object.entries(files).filter(([path, text]) => {
  let old = "";
  try { old = readFileSync(new URL(path, root), "utf8"); } catch { /* not there yet */ }
  if (old !== text && !process.argv.includes("--check")) writeFileSync(new URL(path, root), text);
  return old !== text;
});
if (process.argv.includes("--check") && late.length) {
  console.error(`Not what the document says: ${late.map(([p]) => p).join(", ")}. Run: node scripts/admin.mjs`);
  process.exit(1);
}
