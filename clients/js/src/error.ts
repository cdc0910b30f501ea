import type { Error as Body, WireCode } from "./wire.js";

/**
 * The code of an error, from the server or from the client. The client's own codes are:
 *
 * - `network_error`: no response in time. `bad_response`: the response is not from an Authmount server.
 * - `aborted`: the caller's signal aborted the call, or the client was disposed.
 * - `other_browser`: the link was requested in another browser. It is still valid there.
 * - `passkey_cancelled`: the user closed the browser's prompt, or has no passkey there; browsers do not say which.
 *   `passkey_unavailable`: this browser or page cannot use passkeys.
 */
export type ErrorCode = WireCode | "network_error" | "bad_response" | "aborted" | "other_browser" | "passkey_cancelled" | "passkey_unavailable";

/** The error of a failed call. Printing it reveals no token, password or one-time code. */
export class AuthError extends Error {
  override readonly name = "AuthError";
  /** A stable code to compare. */
  declare readonly code: ErrorCode;
  /** HTTP status; 0 if the error is from the client. */
  declare readonly status: number;
  /** Details of some codes: invalid fields, reasons for a weak password, a missing permission. */
  declare readonly details: NonNullable<Body["details"]>;
  /** The response's X-Request-Id, to find the request in the server's log. */
  declare readonly requestId: string | null;
  /** Seconds to wait before a retry; null if the server gave none. */
  declare readonly retryAfter: number | null;
  /** @internal The data to continue with the second factor. It is a function so that printing the error does not show the token. */
  declare mfa?: () => { mfa_token: string; expires_in: number; factors: NonNullable<Body["factors"]> };
  /** @param message the server's text for users; default: the code with spaces */
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

/** Whether an error of a refresh, or of a request with a token, means that the session has ended. No other error does. */
export const endsSession = (error: AuthError): boolean => /^(400.*(refresh_token|session_ended)|403user_banned)/.test(error.status + error.code);

/** Whether the server rejected the token and a refreshed one may work. */
export const isRefused = (error: { code: string; status: number }): boolean => /^401.*(token|session)/.test(error.status + error.code);
