// Prints the path of the document that a running examples/server serves, admin side included,
// as scripts/admin.mjs reads it from ADMIN_DOCUMENT.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../test/lib/server.mjs";

const server = await startServer();
const document = await (await fetch(`${server.url}/auth/v1/openapi.json`)).text();
await server.stop();
const file = join(mkdtempSync(join(tmpdir(), "authmount-document-")), "openapi.json");
writeFileSync(file, document);
console.log(file);
