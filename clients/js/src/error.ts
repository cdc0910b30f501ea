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
  /** Compare with this. */
  declare readonly code: ErrorCode;
  /** Of HTTP; 0: the client said so. */
  declare readonly status: number;
  /** Which field, why a password is weak, which permission. */
  declare readonly details: NonNullable<Body["details"]>;
  /** The X-Request-Id, to find it in the server's log. */
  declare readonly requestId: string | null;
  /** Seconds to wait before trying again; null: not said. */
  declare readonly retryAfter: number | null;
  /** @internal What a second factor is shown with; a function, not to be seen by who prints the error. */
  declare mfa?: () => { mfa_token: string; expires_in: number; factors: ("totp" | "recovery_code")[] };
  /** @param message for people, in the server's words; of the client's own codes, the code as words */
  constructor(code: ErrorCode, message?: string | false | null, status = 0, body: { details?: Body["details"]; request_id?: string | null } = {}, retryAfter: number | null = null) {
    super(message || code.replace(/_/g, " "));
    this.code = code;
    this.status = status;
    this.details = body.details ?? {};
    this.requestId = body.request_id ?? null;
    this.retryAfter = retryAfter;
    if ((body as any).mfa_token) this.mfa = () => body as any;
  }
}

/** Whether an error of a refresh, or of a request with a token, ends the session. Nothing else does. */
export const endsSession = (error: AuthError): boolean => /^(400.*(refresh_token|session_ended)|403user_banned)/.test(error.status + error.code);

/** Whether a token was not taken, and another one may be. */
export const isRefused = (error: { code: string; status: number }): boolean => /^401.*(token|session)/.test(error.status + error.code);
