/** A person, their second factor and a server that verifies their tokens, in whatever runtime this is. */
import { createClient } from "authmount";
import { createAdminClient } from "authmount/admin";
import { createServerClient } from "authmount/server";
import { createHmac } from "node:crypto";

const [url, secretKey, email] = process.argv.slice(2);
const password = "correct horse battery staple";
const seen = [];

async function good(call) {
  const { data, error } = await call;
  if (error) throw new Error(`${error.code}: ${error.message}`);
  return data;
}

/** RFC 6238. */
function totp(secret, at) {
  const bits = [...secret.replace(/=+$/, "")].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join("");
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const mac = createHmac("sha1", Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)))).update(counter).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

const auth = createClient(url);
auth.subscribe(({ status }) => seen.at(-1) !== status && seen.push(status));
await good(auth.signUp({ email, password, fullName: "Ada" }));
const setup = await good(auth.mfa.enroll());
await good(auth.mfa.enable({ totpCode: totp(setup.secret, Date.now()) }));
await good(auth.signOut());
const { error } = await auth.signInWithPassword({ email, password });
if (error?.code !== "mfa_required") throw new Error(`not asked for a factor: ${error?.code}`);
await good(auth.mfa.verify({ totpCode: totp(setup.secret, Date.now() + 30_000) }));
await good(auth.refresh());
const token = await good(auth.getToken());

const server = createServerClient(url);
const claims = await good(server.verify(token));
const forged = await server.verify(`${token.slice(0, -6)}AAAAAA`);
const mine = await auth.fetch(`${url}/auth/v1/me`);

const found = [];
for await (const one of createAdminClient(url, secretKey).users.list({ limit: 1 })) found.push(one.email);
await good(auth.signOut());
auth.dispose();
console.log(JSON.stringify({ seen, aal: claims.aal, forged: forged.error?.code, me: (await mine.json()).email, found: found.includes(email) }));
