/** The types as a program meets them. A line after @ts-expect-error has to be refused by the compiler. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { problemsOf } from "../lib/compile.mjs";

const at = fileURLToPath(new URL("../../", import.meta.url));
let files = 0;
const compiles = (code) => assert.deepEqual(problemsOf(new Map([[`${at}types-${++files}.ts`, code]])), []);

const signIns = {
  signInWithPassword: `{ email: "a@example.com", password: "p" }`,
  signInWithIdToken: `{ provider: "google", idToken: "t" }`,
  acceptInvitation: `{ token: "t" }`,
  confirmPhone: `{ phone: "+4930123456", code: "123456" }`,
  confirm: `{ password: "p" }`,
  "mfa.verify": `{ totpCode: "123456" }`,
  "mfa.enable": `{ totpCode: "123456" }`,
};

test("a sign-in without an error has a user and a session", () => {
  compiles(`import { createClient, type Session, type User } from "authmount";
const auth = createClient("https://app.example.com");
${Object.entries(signIns).map(([call, params]) => `{
  const { data, error } = await auth.${call}(${params});
  if (error) throw error;
  const session: Session = data.session, user: User = data.user;
}`).join("\n")}
{
  const { data, error } = await auth.completeRedirect();
  if (error || !data) throw error;
  const session: Session = data.session;
}
export {};`);
});

test("a sign-up and a code have a session or none, and the session says which", () => {
  compiles(`import { createClient, type Session, type User } from "authmount";
const auth = createClient("https://app.example.com");
const up = await auth.signUp({ email: "a@example.com", password: "p" });
if (up.error) throw up.error;
// @ts-expect-error: it may wait for a confirmation
const session: Session = up.data.session;
const user: User = up.data.user;
if (up.data.session) up.data.session.access_token;
else up.data.request_id.length;
const code = await auth.verifyOtp({ email: "a@example.com", code: "123456" });
if (code.error) throw code.error;
if (code.data.session) code.data.user.email;
else {
  const nobody: null = code.data.user;
}
export {};`);
});

test("metadata is untyped by default", () => {
  compiles(`import { createClient, type User } from "authmount";
const auth = createClient("https://app.example.com");
await auth.updateUser({ userMetadata: { theme: "dark", gone: null } });
await auth.signUp({ email: "a@example.com", password: "p", userMetadata: { anything: [1] } });
const { user } = auth.state;
if (user) {
  const theme: unknown = user.user_metadata.theme, plan: unknown = user.app_metadata.plan;
  // @ts-expect-error: its shape is unknown
  const text: string = user.user_metadata.theme;
}
export {};`);
});

test("metadata has the shape of the type parameter wherever the user is", () => {
  compiles(`import { createClient, type AuthClient, type State, type User } from "authmount";
import { nativeStorage, followAppState } from "authmount/native";
import { signInWithPopup } from "authmount/popup";
import { createNextAuth } from "authmount/next";
import { AuthProvider, useAuth, useUser } from "authmount/react";
import { authStore, userStore } from "authmount/svelte";
import * as solid from "authmount/solid";
import * as vue from "authmount/vue";
interface Meta { user_metadata: { theme?: "dark" | "light"; locale: string; editor?: { tabs?: number } }; app_metadata: { plan: number } }
const auth = createClient<Meta>("https://app.example.com", null, { initial: await createNextAuth("https://app.example.com").initialState() });
const check = (user: User<Meta>) => {
  const theme: "dark" | "light" | undefined = user.user_metadata.theme, plan: number = user.app_metadata.plan;
  const email: string | null = user.email;
  // @ts-expect-error: not a member of the shape
  user.user_metadata.other;
};
if (auth.state.user) check(auth.state.user);
auth.subscribe(({ user }) => user && check(user));
for (const { data } of [await auth.getUser(), await auth.updateUser({ fullName: "Ada" })]) if (data) check(data);
for (const { data } of [await auth.signInWithPassword({ email: "a", password: "p" }), await auth.signUp({ email: "a", password: "p" }), await auth.completeRedirect(), await signInWithPopup(auth, { provider: "google" })]) if (data) check(data.user);
const reacted = useAuth<Meta>();
const client: AuthClient<Meta> = reacted.client;
for (const user of [useUser<Meta>(), reacted.user, solid.useAuth<Meta>().user(), solid.createAuth(auth).user(), vue.useAuth<Meta>().user.value, vue.useUser<Meta>().value, (await createNextAuth<Meta>("https://app.example.com").getUser()).data]) if (user) check(user);
authStore(auth).subscribe(({ user }) => user && check(user));
userStore(auth).subscribe((user) => user && check(user));
AuthProvider({ client: auth });
followAppState(auth, { addEventListener: () => ({ remove() {} }) });
vue.createAuth(auth);

await auth.signUp({ email: "a", password: "p", userMetadata: { locale: "de" } });
// @ts-expect-error: locale is missing
await auth.signUp({ email: "a", password: "p", userMetadata: { theme: "dark" } });
// A change is merged: null removes what may be absent.
await auth.updateUser({ userMetadata: { theme: null, editor: { tabs: null } } });
// @ts-expect-error: not a theme
await auth.updateUser({ userMetadata: { theme: "blue" } });
// @ts-expect-error: the locale is always there
await auth.updateUser({ userMetadata: { locale: null } });
// @ts-expect-error: the shape is a member of the parameter
createClient<{ theme: string }>("https://app.example.com");
export {};`);
});

test("passkeys have the user's shape, and errors of the client and the server", () => {
  compiles(`import { createClient, type Passkey, type Session } from "authmount";
import * as passkeys from "authmount/passkey";
interface Meta { user_metadata: { theme?: "dark" }; app_metadata: { plan: number } }
const auth = createClient<Meta>("https://app.example.com");
const { data, error } = await passkeys.register(auth, { name: "Laptop", secondFactor: true });
if (error) {
  if (error.code === "passkey_cancelled" || error.code === "passkey_unavailable" || error.code === "passkey_already_exists") throw error;
  // @ts-expect-error: no code
  if (error.code === "passkey_cancelled_by_user") throw error;
} else {
  const passkey: Passkey = data.passkey, session: Session = data.session, plan: number = data.user.app_metadata.plan, codes: string[] = data.recovery_codes;
}
for (const result of [await passkeys.signIn(auth, { conditional: true, signal: AbortSignal.timeout(1) }), await passkeys.verify(auth), await passkeys.confirm(auth)]) if (result.data) result.data.user.app_metadata.plan.toFixed();
const listed: Passkey[] | null = (await passkeys.list(auth)).data;
const renamed: Passkey | null = (await passkeys.rename(auth, "id", "Phone")).data;
const codes: string[] | undefined = (await passkeys.useAsSecondFactor(auth, "id", false)).data?.recovery_codes;
const nothing: null = (await passkeys.remove(auth, "id")).data;
if (auth.state.pending?.factors?.includes("passkey")) await passkeys.verify(auth);
// @ts-expect-error: a second factor is made by hand
await passkeys.signIn(auth, { secondFactor: true });
export {};`);
});

test("the authentication of a request fits the types of SvelteKit, and metadata has its shape", () => {
  compiles(`import type { Handle } from "@sveltejs/kit/hooks";
import { createNuxtAuth, type EventLike } from "authmount/nuxt";
import { createSvelteKitAuth, type RequestAuth } from "authmount/sveltekit";
import { createStartAuth, type StartContext } from "authmount/tanstack-start";
interface Meta { user_metadata: { theme?: "dark" | "light" }; app_metadata: { plan: number } }
const handle: Handle = createSvelteKitAuth("https://app.example.com", { protect: ["/account"] }).handle;
// @ts-expect-error: a list
createSvelteKitAuth("https://app.example.com", { protect: "/account" });
const check = async (auth: RequestAuth<Meta>) => {
  const { data } = await auth.getUser();
  const plan: number | undefined = data?.app_metadata.plan;
  const sub: string = (await auth.requireUser()).sub;
  // @ts-expect-error: it may be absent
  (await auth.verify()).data.sub;
};
await check(createNuxtAuth<Meta>("https://app.example.com")({} as EventLike));
const { response } = await createStartAuth<Meta>("https://app.example.com").middleware({ request: new Request("https://app.example.com"), handlerType: "router" }, async ({ auth }: StartContext<Meta>) => (await check(auth), { response: new Response() })) as { response: Response };
export {};`);
});
