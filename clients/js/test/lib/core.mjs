/** The core as it is in src now, whatever is in dist. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

export const src = process.env.AUTHMOUNT_SRC ?? fileURLToPath(new URL("../../src/", import.meta.url)); // another one to see the tests fail

/** Bundles some modules of src, and returns what they export. */
export async function load(...names) {
  const outfile = join(mkdtempSync(join(tmpdir(), "authmount-core-")), "core.mjs");
  await build({
    stdin: { contents: names.map((name) => `export * from "./${name}.ts";`).join("\n"), resolveDir: src },
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    external: ["node:*"],
    logLevel: "error",
  });
  return import(pathToFileURL(outfile));
}
