/** Compiles texts against the types as they are in src. */
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Returns what the compiler says about files, a map from path to text, as "path:line text: message". */
export function problemsOf(files, more = {}) {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) => (files.has(name) ? ts.createSourceFile(name, files.get(name), ...rest.slice(0, 1)) : getSourceFile(name, ...rest));
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  const program = ts.createProgram([...files.keys()], { ...options, rootDir: undefined, noEmit: true, declaration: false, emitDeclarationOnly: false, noUnusedLocals: false, paths: { authmount: [`${root}src/index.ts`], "authmount/*": [`${root}src/*.ts`, `${root}src/*/index.ts`, `${root}src/*/index.tsx`] }, ...more }, host);
  return ts.getPreEmitDiagnostics(program).filter((d) => files.has(d.file?.fileName)).map((d) => {
    const { line } = d.file.getLineAndCharacterOfPosition(d.start);
    return `${d.file.fileName.slice(root.length)}:${line + 1} ${d.file.text.split("\n")[line].trim()}: ${ts.flattenDiagnosticMessageText(d.messageText, "\n")}`;
  });
}
