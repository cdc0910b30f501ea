/** Why something did not work. What is printed of it holds no token, key or password. */
export interface Failure<Code extends string = string> {
  /** The server's code; "network_error": no answer, or none that could be read; "aborted": by the caller's signal. */
  code: Code | "network_error" | "aborted";
  /** For people; the code itself, where the client found out by itself. */
  message: string;
  /** Status of the response; 0 without one. */
  status: number;
  /** Of the response, for the server's log. */
  requestId: string | null;
  /** Seconds to wait, where the server said so. */
  retryAfter: number | null;
  /** What the server adds to some codes. */
  details: Record<string, unknown>;
  /** Of `mfa_required` and `mfa_enrollment_required`: what POST /2fa/verify takes. A secret, so it is not enumerable. */
  readonly mfaToken?: string;
}

/** What a call comes to: one of the two is null. What the server says is never thrown. */
export type Result<T, Code extends string = string> = { data: T; error: null } | { data: null; error: Failure<Code> };

/** A result without data. */
export const failed = (code: string, status = 0, more?: Partial<Failure>): { data: null; error: Failure } => ({
  data: null,
  error: { code, message: code, status, requestId: null, retryAfter: null, details: {}, ...more },
});

/** Reads the error that a response carries; any other body counts as no answer. */
export async function readFailure(response: Response): Promise<{ data: null; error: Failure }> {
  const { code = "network_error", message = code, details = {}, mfa_token: value } = (await response.json().catch(() => null)) ?? {};
  const header = (name: string) => response.headers.get(name);
  const result = failed(code, response.status, { message, details, requestId: header("x-request-id"), retryAfter: +header("retry-after")! || null });
  Object.defineProperty(result.error, "mfaToken", { value });
  return result;
}

/** The base URL of a server: a bare origin gets the usual path, `/auth/v1`. */
export function baseURL(url: string, path?: string): string {
  const { protocol, origin, pathname, search } = new URL(url);
  if (!/^http/.test(protocol) || search) throw new TypeError("Not an http URL");
  return origin + (path ?? (pathname === "/" ? "/auth/v1" : pathname)).replace(/\/$/, "");
}
