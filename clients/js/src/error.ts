import type { Error as Body, WireCode } from "./wire.js";

/**
 * Why a call failed: a code of the server, or of the client itself.
 *
 * - `network_error`: no answer, or none in time. `bad_response`: not one of this server.
 * - `aborted`: by the caller's signal, or the client was disposed of.
 * - `other_browser`: a link that was asked for elsewhere; nothing of it is used up.
 */
export type ErrorCode = WireCode | "network_error" | "bad_response" | "aborted" | "other_browser";

/** What a call failed with. It carries no token, password or code. */
export class AuthError extends Error {
  override readonly name = "AuthError";
  /** @internal What a second factor is shown with; not enumerable. */
  declare readonly mfa?: { token: string; expires_in: number; factors: ("totp" | "recovery_code")[] };
  constructor(
    /** Compare with this. */
    readonly code: ErrorCode,
    /** For people, in the server's words; of the client's own codes, the code as words. */
    message?: string | false | null,
    /** Of HTTP; 0: the client said so. */
    readonly status = 0,
    /** Which field, why a password is weak, which permission. */
    readonly details: NonNullable<Body["details"]> = {},
    /** The X-Request-Id, to find it in the server's log. */
    readonly requestId: string | null = null,
    /** Seconds to wait before trying again; null: not said. */
    readonly retryAfter: number | null = null,
  ) {
    super(message || code.replace(/_/g, " "));
  }
}

/** Whether an error of a refresh, or of a request with a token, ends the session. Nothing else does. */
export const endsSession = ({ code, status }: AuthError): boolean => /^(400 (invalid_refresh_token|refresh_token_reused|session_ended)|403 user_banned)$/.test(`${status} ${code}`);

/** Whether a token was not taken, and another one may be. */
export const isRefused = ({ code, status }: { code: string; status: number }): boolean => /^401 (token_stale|bad_token|missing_token|session_ended)$/.test(`${status} ${code}`);
