/**
 * Client of an Authmount server, for browsers and other JavaScript runtimes.
 *
 * ```ts
 * const auth = createClient("https://app.example.com", "pk_your_key");
 * const { data, error } = await auth.signInWithPassword({ email, password });
 * ```
 *
 * @module
 */
export { createClient } from "./client.js";
export { AuthError, type ErrorCode } from "./error.js";
export type * from "./types.js";
export type { Export, Identity, Passkey, Prompt, RecoveryCodes, SentCode, SessionInfo, Settings, TakenOver, TOTPSetup, WireCode } from "./wire.js";
