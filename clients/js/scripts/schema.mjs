/** Writes a JSON Schema (2020-12, as OpenAPI 3.1 has it) as a TypeScript type. */

/** The name that callers write: camelCase for what is snake_case on the wire. */
export const camel = (name) => name.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());

/** A comment, or nothing. */
export function comment(text, indent = "") {
  if (!text) return "";
  const lines = text.replaceAll("*/", "* /").split("\n");
  return lines.length === 1 ? `${indent}/** ${lines[0]} */\n` : `${indent}/**\n${lines.map((l) => `${indent} * ${l}`.trimEnd() + "\n").join("")}${indent} */\n`;
}

const primitive = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/**
 * @param schema the schema
 * @param o `ref(name)` tells the type of a component, `named(name)` the name of a member
 */
export function type(schema, o, indent = "") {
  if (!schema || schema === true || Object.keys(schema).length === 0) return "unknown";
  if (schema.$ref) return o.ref(schema.$ref.split("/").pop());
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  for (const of of ["anyOf", "oneOf"]) if (schema[of]) return [...new Set(schema[of].map((s) => type(s, o, indent)))].join(" | ");
  if (schema.allOf) return schema.allOf.map((s) => type(s, o, indent)).join(" & ");
  const types = [schema.type ?? (schema.properties ? "object" : undefined)].flat();
  return types
    .map((t) => {
      if (t === "array") {
        const item = type(schema.items, o, indent);
        return /[|&]/.test(item) && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
      }
      if (t === "object") return object(schema, o, indent);
      return primitive[t] ?? "unknown";
    })
    .join(" | ");
}

/** Members of an object, in braces. */
export function object(schema, o, indent = "") {
  const members = Object.entries(schema.properties ?? {});
  const rest = schema.additionalProperties;
  if (members.length === 0) return typeof rest === "object" ? `Record<string, ${type(rest, o, indent)}>` : rest === false ? "Record<string, never>" : "Record<string, unknown>";
  const inner = indent + "  ";
  const optional = (name) => (schema.required?.includes(name) ? "" : "?");
  const undefinedToo = (name) => (o.named && optional(name) ? " | undefined" : "");
  return `{\n${members.map(([name, s]) => `${comment(s.description, inner)}${inner}${key((o.named ?? String)(name))}${optional(name)}: ${type(s, o, inner)}${undefinedToo(name)};\n`).join("")}${indent}}`;
}
