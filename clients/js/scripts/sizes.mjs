/**
 * Prints what every subpath weighs in an application, bundled, minified and compressed, beside
 * other packages, and fails where one is above its limit. With --own the others are left out.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { entries, root } from "./build.mjs";

/** Limits in bytes, compressed; 1 kB is 1000 bytes. What is not here is printed only. */
const limits = { index: 6100, passkey: 2000, "react/index": 700, "vue/index": 700, "svelte/index": 700, "solid/index": 700, "next/index": 2500, "sveltekit/index": 2700, "nuxt/index": 2700, "tanstack-start/index": 2700, "server/index": 2500 };

/** Others, with what an application writes to sign people in. */
const others = {
  "@supabase/auth-js": `export { AuthClient } from "@supabase/auth-js";`,
  "better-auth": `export { createAuthClient } from "better-auth/client";`,
  "keycloak-js": `export { default } from "keycloak-js";`,
  "@workos-inc/authkit-js": `export { createClient } from "@workos-inc/authkit-js";`,
};

/** What is there already where the subpath is used: its framework, or Node. */
const frameworks = ["react", "react/*", "vue", "svelte", "svelte/*", "solid-js", "solid-js/*", "next", "next/*", "@sveltejs/kit", "node:*"];

/** What a subpath rests on and is weighed without, because it has a row of its own. */
const onTop = { "next/index": ["../server/*"], "sveltekit/index": ["../server/*"], "nuxt/index": ["../server/*"], "tanstack-start/index": ["../server/*"] };

async function weigh(options) {
  const { outputFiles } = await build({ bundle: true, minify: true, write: false, format: "esm", target: "es2022", platform: "browser", jsx: "automatic", logLevel: "error", define: { "process.env.NODE_ENV": '"production"' }, ...options });
  const [{ contents }] = outputFiles;
  return { minified: contents.length, compressed: gzipSync(contents, { level: 9 }).length };
}

const rows = [];
let heavy = 0;
for (const [name, file] of Object.entries(entries())) {
  const { minified, compressed } = await weigh({ entryPoints: [file], external: [...frameworks, ...(onTop[name] ?? [])] });
  const limit = limits[name];
  if (limit && compressed > limit) heavy++;
  rows.push({ package: name === "index" ? "authmount" : `authmount/${name.replace(/\/index$/, "")}`, minified, compressed, limit: limit ?? "" });
}

if (!process.argv.includes("--own")) {
  const dir = mkdtempSync(join(tmpdir(), "authmount-sizes-"));
  try {
    execFileSync("npm", ["install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", ...Object.keys(others)], { stdio: ["ignore", "ignore", "inherit"] });
    for (const [name, contents] of Object.entries(others)) {
      const { minified, compressed } = await weigh({ stdin: { contents, resolveDir: dir } });
      const { version } = JSON.parse(readFileSync(join(dir, "node_modules", name, "package.json"), "utf8"));
      rows.push({ package: `${name} ${version}`, minified, compressed, limit: "" });
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
console.table(rows);
if (heavy) {
  console.error(`${heavy} above the limit`);
  process.exit(1);
}
