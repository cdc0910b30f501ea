/**
 * The claims of a verified access token: those of RFC 7519 and RFC 9068, and those of the server,
 * with the names of the JWT. Claims that the application adds are included.
 */
export interface Claims {
  /** Issuer; by default the base URL of the server. */
  iss: string;
  /** Id of the user. */
  sub: string;
  /** Audience; "authenticated" by default. */
  aud: string | string[];
  /** Time of issue, in Unix seconds. */
  iat: number;
  /** Time of expiry, in Unix seconds. */
  exp: number;
  /** Id of this token. */
  jti: string;
  /** Id of the session. */
  session_id: string;
  /** Database role, "authenticated". It is not one of {@link Claims.roles}. */
  role: string;
  /** Names of the user's roles. */
  roles: string[];
  /** Permissions of those roles. Absent if the list was too long, see {@link Claims.omitted}. */
  permissions?: string[];
  email: string | null;
  email_verified: boolean;
  phone: string | null;
  /** Authenticator assurance level of the session: "aal2" after a second factor. */
  aal: "aal1" | "aal2";
  /** Authentication methods of the session, with their times in Unix seconds. */
  amr: { method: string; timestamp: number }[];
  /** Metadata of the user that only the server can change. Absent if it was too long. */
  app_metadata?: Record<string, unknown>;
  /** Names of claims that were omitted because the token would have been too long. */
  omitted?: string[];
  /** The operator who impersonates the user, if any (RFC 8693, section 4.1). */
  act?: { sub: string; session_id: string };
  [claim: string]: unknown;
}
