/**
 * Passkeys: sign-in by a button or by autofill, second factors, and the account's list.
 *
 * ```ts
 * import * as passkeys from "authmount/passkey";
 *
 * button.hidden = !passkeys.isAvailable();
 * button.onclick = () => passkeys.signIn(auth);
 * void passkeys.signIn(auth, { conditional: true }); // offers passkeys in <input autocomplete="username webauthn">
 * ```
 *
 * Errors of each call that opens a prompt, beside the server's: `passkey_cancelled`, `passkey_unavailable`, `aborted`.
 *
 * @module
 */
import type { Inner } from "./client.js";
import { AuthError } from "./error.js";
import type { AuthClient, CallOptions, Metadata, Result, SignedIn } from "./types.js";
import { inner, until } from "./values.js";
import type * as wire from "./wire.js";

/** Options of the calls that open a prompt and change the session. */
export interface PasskeyOptions extends CallOptions {
  /** For sessions in cookies: whether the session outlives the closing of the browser. Default true. */
  remember?: boolean | undefined;
}

/** Options of {@link signIn}. */
export interface SignInOptions extends PasskeyOptions {
  /** Waits for a choice in the autofill of an input with `autocomplete="username webauthn"`, without a prompt. Default false. */
  conditional?: boolean | undefined;
}

/** Options of {@link register}. */
export interface RegisterOptions extends PasskeyOptions {
  /** The user's own name for the passkey. Default: the product's name. */
  name?: string | undefined;
  /** Makes sign-ins by other methods ask for a second factor. Default false. */
  secondFactor?: boolean | undefined;
  /** Lets the browser create the passkey without a prompt, if it wants to, after a sign-in with a password. Default false. */
  conditional?: boolean | undefined;
}

/** The data of {@link register}. The recovery codes come with the first second factor, and are shown only once. */
export type Registered<M extends Metadata = {}> = SignedIn<M> & wire.ChangedPasskey;

/** How long a challenge is used, in milliseconds: less than its lifetime of five minutes. */
const patience = 240_000;

/** The browser's API; some of its functions are missing in older browsers. */
const browser = (): any => globalThis.PublicKeyCredential;

/** Whether this browser can use passkeys. False on servers: ask after hydration. */
export function isAvailable(): boolean {
  const api = browser();
  return !!(api?.parseCreationOptionsFromJSON && api.parseRequestOptionsFromJSON && api.prototype.toJSON && navigator.credentials);
}

/** Whether the browser has a kind of prompt without a dialogue. */
const hasConditional = (kind: "get" | "create"): Promise<boolean> =>
  kind === "get" ? browser().isConditionalMediationAvailable?.() : browser().getClientCapabilities?.().then((found: any) => found.conditionalCreate);

let autofill: AbortController | undefined; // the sign-in that waits in the page's autofill; browsers have one request at a time

/** Asks the browser for a credential, as JSON. */
async function prompt(kind: "get" | "create", json: object, signal: AbortSignal, conditional: boolean | undefined): Promise<{ id: string }> {
  try {
    const publicKey = browser()[kind === "get" ? "parseRequestOptionsFromJSON" : "parseCreationOptionsFromJSON"](json);
    const options: any = { publicKey, signal, ...(conditional && { mediation: "conditional" }) };
    return ((await until(navigator.credentials[kind](options), signal)) as any).toJSON();
  } catch (error: any) {
    if (error instanceof AuthError) throw error;
    const { name, message } = error;
    if (name === "NotAllowedError") throw new AuthError("passkey_cancelled");
    if (name === "InvalidStateError" && kind === "create") throw new AuthError("passkey_already_exists");
    throw new AuthError(/^(Abort|Operation)/.test(name) ? "aborted" : "passkey_unavailable", message); // OperationError: another prompt is open
  }
}

/** Returns the data of some calls, or their error. */
async function result<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<Result<T>> {
  try {
    return { data: await until(work, signal), error: null } as Result<T>;
  } catch (error) {
    if (error instanceof AuthError) return { data: null, error };
    throw error;
  }
}

const innerOf = (auth: AuthClient<any>, signal?: AbortSignal) => (auth as unknown as Inner)[inner](signal);

/** Runs the calls around a prompt. It ends an autofill that waits. */
async function ceremony<T>(auth: AuthClient<any>, kind: "get" | "create", { signal, conditional }: SignInOptions, run: (control: AbortController, ...calls: ReturnType<Inner[typeof inner]>) => Promise<T>): Promise<Result<T>> {
  const control = new AbortController();
  const stop = () => control.abort();
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  autofill?.abort();
  autofill = conditional && kind === "get" ? control : undefined;
  const work = async () => {
    if (!isAvailable() || (conditional && !(await hasConditional(kind)))) throw new AuthError("passkey_unavailable");
    return run(control, ...innerOf(auth, control.signal));
  };
  const done = await result(work(), control.signal);
  signal?.removeEventListener("abort", stop);
  if (autofill === control) autofill = undefined;
  return done;
}

/** Asks for an assertion, in autofill with a new challenge every four minutes, and sends it. */
async function assert<T>({ signal }: AbortController, conditional: boolean | undefined, begin: () => Promise<wire.PasskeyRequest>, finish: (credential: object, request: wire.PasskeyRequest) => Promise<T>): Promise<T> {
  for (let request = await begin(); ; ) {
    const round = new AbortController();
    const stop = () => round.abort();
    let next: wire.PasskeyRequest | undefined;
    // If the server does not answer, the old challenge is kept until the next attempt.
    const timer: any = conditional && setInterval(() => begin().then((renewed) => ((next = renewed), stop()), () => {}), patience);
    signal.addEventListener("abort", stop);
    let credential;
    try {
      credential = await prompt("get", request.public_key, round.signal, conditional);
      if (conditional) autofill = undefined; // the choice was made: a later prompt does not undo it
    } catch (error) {
      if (!next || signal.aborted) throw error;
      request = next;
      continue;
    } finally {
      clearInterval(timer);
      signal.removeEventListener("abort", stop);
    }
    return finish(credential, request).catch((error) => {
      // Final for the authenticator, so only if the server is sure.
      if (error.code === "passkey_removed") void report("signalUnknownCredential", { rpId: request.public_key.rpId, credentialId: credential.id });
      throw error;
    });
  }
}

/** Reports to the user's authenticators (WebAuthn Level 3, section 5.1.10), which answer nothing. */
async function report(name: string, details: object) {
  try {
    await browser()?.[name]?.(details);
  } catch {
    // the page's origin may not use the RP ID
  }
}

/**
 * Signs in with a passkey: in a prompt, from a click, or with `conditional` in the autofill of the sign-in form. A page has
 * one autofill; each later prompt ends it with the error `aborted`. Abort the signal when the form is removed.
 *
 * Errors: `invalid_passkey`; `passkey_removed`; `mfa_required` (status `mfa`), after which the browser's own passkey is the first factor.
 */
export function signIn<M extends Metadata = {}>(auth: AuthClient<M>, options: SignInOptions = {}): Promise<Result<SignedIn<M>>> {
  const { conditional, remember } = options;
  return ceremony(auth, "get", options, (control, call, enter) =>
    assert(control, conditional, () => call("/passkeys/sign-in/begin", {}), (credential, { request_id }) => enter("/passkeys/sign-in/finish", { credential, request_id, remember }) as Promise<SignedIn<M>>),
  );
}

/** Verifies the second factor with a passkey: completes a sign-in (status `mfa`, if `pending.factors` has "passkey"), or raises the session to aal2. */
export function verify<M extends Metadata = {}>(auth: AuthClient<M>, options: PasskeyOptions = {}): Promise<Result<SignedIn<M>>> {
  const { remember } = options;
  return ceremony(auth, "get", options, (control, call, enter, mfa_token) =>
    assert(control, false, () => call("/2fa/passkey", { mfa_token }, !mfa_token), (passkey) => enter("/2fa/verify", { passkey, mfa_token, remember }, !mfa_token) as Promise<SignedIn<M>>),
  );
}

/** Authenticates again with a passkey, for calls that return `reauthentication_needed`. */
export function confirm<M extends Metadata = {}>(auth: AuthClient<M>, options: CallOptions = {}): Promise<Result<SignedIn<M>>> {
  return ceremony(auth, "get", options, (control, call, enter) => assert(control, false, () => call("/2fa/passkey", {}, true), (passkey) => enter("/me/confirm", { passkey }, true) as Promise<SignedIn<M>>));
}

/**
 * Accepts an invitation for which an account has to show its second factor, with a passkey of that account.
 *
 * Errors: `invalid_token`; `invalid_passkey`; `mfa_not_enabled` if the account has no passkey.
 */
export function acceptInvitation<M extends Metadata = {}>(auth: AuthClient<M>, params: CallOptions & { token: string; password?: string | undefined }): Promise<Result<SignedIn<M>>> {
  const { token, password } = params;
  return ceremony(auth, "get", params, (control, call, enter) =>
    assert(control, false, () => call("/2fa/passkey", { invitation_token: token }), (passkey) => enter("/invitations/accept", { token, password, passkey }) as Promise<SignedIn<M>>),
  );
}

/**
 * Adds a passkey to the account (signed in recently, or status `enroll`).
 *
 * Errors: `reauthentication_needed`; `email_not_verified`; `passkey_already_exists`, also if the browser says so.
 */
export function register<M extends Metadata = {}>(auth: AuthClient<M>, options: RegisterOptions = {}): Promise<Result<Registered<M>>> {
  const { name, secondFactor: second_factor, conditional, remember } = options;
  return ceremony(auth, "create", options, async (control, call, enter, mfaToken) => {
    const as = mfaToken ?? true;
    const { public_key } = await call<wire.PasskeyCreation>("/me/passkeys/begin", { conditional }, as);
    const timer: any = conditional && setTimeout(() => control.abort(), patience); // some browsers never answer
    const credential = await prompt("create", public_key, control.signal, conditional).finally(() => clearTimeout(timer));
    return (await enter<wire.ChangedPasskey>("/me/passkeys", { credential, name, second_factor, remember }, as)) as Registered<M>;
  });
}

/** Reads the list, and reports it to the user's authenticators, which then offer no other passkeys of the account. */
async function read(auth: AuthClient<any>, signal?: AbortSignal): Promise<wire.Passkey[]> {
  const { user } = auth.state;
  const { passkeys, rp_id: rpId, user_handle: userId } = await innerOf(auth, signal)[0]<wire.Passkeys>("/me/passkeys", undefined, true);
  if (userId && user && user.id === auth.state.user?.id) {
    const name = user.email ?? user.phone ?? "";
    void report("signalAllAcceptedCredentials", { rpId, userId, allAcceptedCredentialIds: passkeys.map((p) => p.credential_id) });
    void report("signalCurrentUserDetails", { rpId, userId, name, displayName: user.full_name || name });
  }
  return passkeys;
}

/** Sends a change of a passkey, and reports the list afterwards. */
async function change<T>(auth: AuthClient<any>, id: string, body: object | undefined, signal?: AbortSignal): Promise<T> {
  const answer = await innerOf(auth, signal)[0]<T>("/me/passkeys/" + encodeURIComponent(id), body, true, body ? "PATCH" : "DELETE");
  if (browser()?.signalAllAcceptedCredentials) read(auth).catch(() => {});
  return answer;
}

/** The user's passkeys, the oldest first. */
export const list = (auth: AuthClient<any>, { signal }: CallOptions = {}): Promise<Result<wire.Passkey[]>> => result(read(auth, signal), signal);

/** Renames a passkey. */
export const rename = (auth: AuthClient<any>, id: string, name: string, { signal }: CallOptions = {}): Promise<Result<wire.Passkey>> =>
  result(change<wire.ChangedPasskey>(auth, id, { name }, signal).then(({ passkey }) => passkey), signal);

/** Makes a passkey a second factor, or none with `false`. Returns recovery codes with the first second factor. Error if the session has not used it recently: `insufficient_aal` or `reauthentication_needed` (see {@link confirm}). */
export const useAsSecondFactor = (auth: AuthClient<any>, id: string, second_factor = true, { signal }: CallOptions = {}): Promise<Result<wire.ChangedPasskey>> =>
  result(change<wire.ChangedPasskey>(auth, id, { second_factor }, signal).then((answer) => auth.getUser({ signal }).then(() => answer)), signal);

/** Removes a passkey. Error for the last sign-in method: `last_sign_in_method`. */
export const remove = (auth: AuthClient<any>, id: string, { signal }: CallOptions = {}): Promise<Result<null>> =>
  result(change(auth, id, undefined, signal).then(() => auth.getUser({ signal })).then(() => null), signal);
