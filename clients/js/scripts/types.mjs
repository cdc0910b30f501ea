// Generates src/wire.ts, the shapes and error codes of the wire, from the server's
// openapi.json. With --check it writes nothing and fails where the file differs.
import { readFileSync, writeFileSync } from "node:fs";

const source = new URL("../../../openapi.json", import.meta.url);
const target = new URL("../src/wire.ts", import.meta.url);
const doc = JSON.parse(readFileSync(source, "utf8"));
const schemas = doc.components.schemas;

const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
const comment = (text, indent = "") => (text ? `${indent}/** ${text.replaceAll("*/", "* /").replace(/\s+/g, " ")} */\n` : "");

function type(schema, indent = "") {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  const any = schema.anyOf ?? schema.oneOf;
  if (any) return any.map((s) => type(s, indent)).join(" | ");
  if (schema.allOf) return schema.allOf.map((s) => type(s, indent)).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((t) => type({ ...schema, type: t }, indent)).join(" | ");
  switch (schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": { const item = type(schema.items, indent); return /[|&]/.test(item) ? `(${item})[]` : `${item}[]`; }
  }
  if (schema.maxProperties === 0) return "Record<string, never>";
  const names = Object.entries(schema.properties ?? {}).filter(([, s]) => s !== false);
  if (!names.length) {
    const rest = schema.additionalProperties;
    return `Record<string, ${rest && typeof rest === "object" ? type(rest, indent) : "unknown"}>`;
  }
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  return `{\n${names.map(([n, s]) => `${comment(s.description, inner)}${inner}${key(n)}${required.has(n) ? "" : "?"}: ${type(s, inner)};\n`).join("")}${indent}}`;
}

/** Every enumeration of the property code in error answers. */
function codes(node, found = new Set()) {
  if (Array.isArray(node)) node.forEach((n) => codes(n, found));
  else if (node && typeof node === "object") {
    for (const code of node.properties?.code?.enum ?? []) found.add(code);
    Object.values(node).forEach((n) => codes(n, found));
  }
  return found;
}

const responses = { ...doc.components.responses, ...Object.fromEntries(Object.entries(doc.paths).map(([p, v]) => [p, Object.values(v).map((o) => o.responses)])) };
const bodies = [];
for (const [path, methods] of Object.entries(doc.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const body = operation.requestBody?.content?.["application/json"]?.schema;
    if (body) bodies.push([`${method.toUpperCase()} ${path}`, type(body, "  "), operation.summary]);
  }
}

const text = `// Generated from openapi.json by scripts/types.mjs: change that, not this.

${Object.entries(schemas).sort(([a], [b]) => a.localeCompare(b)).map(([name, s]) => `${comment(s.description)}export type ${name} = ${type(s)};\n`).join("\n")}
/** Codes with which the server refuses. */
export type WireCode =
${[...codes(responses)].sort().map((c) => `  | ${JSON.stringify(c)}`).join("\n")};

/** What requests carry, by method and path. */
export type Bodies = {
${bodies.sort(([a], [b]) => a.localeCompare(b)).map(([name, t, summary]) => `${comment(summary && `${summary}.`, "  ")}  ${JSON.stringify(name)}: ${t};\n`).join("")}};
`;

if (process.argv.includes("--check")) {
  let held = "";
  try { held = readFileSync(target, "utf8"); } catch { /* missing is out of date, too */ }
  if (held !== text) {
    console.error("src/wire.ts is not what openapi.json says: run npm run types");
    process.exit(1);
  }
} else writeFileSync(target, text);
