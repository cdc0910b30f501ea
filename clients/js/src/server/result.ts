/** The error of a failed call. Printing it reveals no token, key or password. */
export interface Failure<Code extends string = string> {
  /** The server's code; "network_error": no response, or an unreadable one; "aborted": the caller's signal aborted. */
  code: Code | "network_error" | "aborted";
  /** The server's text for users; the code itself if the error is from the client. */
  message: string;
  /** HTTP status; 0 without a response. */
  status: number;
  /** The response's X-Request-Id, to find the request in the server's log. */
  requestId: string | null;
  /** Seconds to wait before a retry; null if the server gave none. */
  retryAfter: number | null;
  /** Details that the server adds to some codes. */
  details: Record<string, unknown>;
  /** With `mfa_required` and `mfa_enrollment_required`: the mfa_token for POST /2fa/verify. It is secret, so it is not enumerable. */
  readonly mfaToken?: string;
}

/** The result of a call: either `data` or `error` is null. Errors of the server are returned, never thrown. */
export type Result<T, Code extends string = string> = { data: T; error: null } | { data: null; error: Failure<Code> };

/** Creates a result with an error. */
export const failed = (code: string, status = 0, more?: Partial<Failure>): { data: null; error: Failure } => ({
  data: null,
  error: { code, message: code, status, requestId: null, retryAfter: null, details: {}, ...more },
});

/** Reads the error in a response. A body without a code becomes `network_error`. */
export async function readFailure(response: Response): Promise<{ data: null; error: Failure }> {
  const { code = "network_error", message = code, details = {}, mfa_token: value } = (await response.json().catch(() => null)) ?? {};
  const header = (name: string) => response.headers.get(name);
  const result = failed(code, response.status, { message, details, requestId: header("x-request-id"), retryAfter: +header("retry-after")! || null });
  Object.defineProperty(result.error, "mfaToken", { value });
  return result;
}

/** Returns the base URL of a server. A URL without a path gets `/auth/v1`. */
export function baseURL(url: string, path?: string): string {
  const { protocol, origin, pathname, search } = new URL(url);
  if (!/^http/.test(protocol) || search) throw new TypeError("Not an http URL");
  return origin + (path ?? (pathname === "/" ? "/auth/v1" : pathname)).replace(/\/$/, "");
}
