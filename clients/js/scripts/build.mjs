// Builds dist: ES modules by esbuild, one entry per subpath with what they share in
// chunks, and declarations by tsc. Packages that a subpath needs stay imports.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** Source files that are imported by users, by the name of their subpath. */
export function entries() {
  const found = {};
  for (const name of ["index", "popup", "native", "passkey"]) {
    const file = join(root, "src", `${name}.ts`);
    if (existsSync(file)) found[name] = file;
  }
  for (const dir of readdirSync(join(root, "src"), { withFileTypes: true })) {
    if (!dir.isDirectory()) continue;
    for (const ext of ["ts", "tsx"]) {
      const file = join(root, "src", dir.name, `index.${ext}`);
      if (existsSync(file)) found[`${dir.name}/index`] = file;
    }
  }
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  await build({
    entryPoints: entries(),
    outdir: join(root, "dist"),
    bundle: true,
    splitting: true,
    packages: "external",
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    chunkNames: "chunks/[name]-[hash]",
    logLevel: "warning",
  });
  execFileSync(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", root], { stdio: "inherit" });
}
