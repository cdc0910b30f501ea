/**
 * What a verified access token says: the claims of RFC 7519 and RFC 9068, and those of the
 * server, under the names they have on the wire. Claims that the application adds are there too.
 */
export interface Claims {
  /** Issuer: the base URL of the server, unless it was configured otherwise. */
  iss: string;
  /** Id of the user. */
  sub: string;
  /** Audience; "authenticated" by default. */
  aud: string | string[];
  /** When it was issued, in seconds since 1970. */
  iat: number;
  /** When it expires, in seconds since 1970. */
  exp: number;
  /** Id of this token. */
  jti: string;
  /** Id of the session. */
  session_id: string;
  /** Role in the database, "authenticated"; not one of {@link Claims.roles}. */
  role: string;
  /** Names of the roles that the user holds. */
  roles: string[];
  /** What those roles permit; absent where it was too long, see {@link Claims.omitted}. */
  permissions?: string[];
  email: string | null;
  email_verified: boolean;
  phone: string | null;
  /** Level of the session: "aal2" once a second factor was shown. */
  aal: "aal1" | "aal2";
  /** How the user signed in, and when (seconds since 1970). */
  amr: { method: string; timestamp: number }[];
  /** The server's metadata of the user; absent where it was too long. */
  app_metadata?: Record<string, unknown>;
  /** Names of claims that were left out because the token would have become too long. */
  omitted?: string[];
  /** Who acts as the user, where an operator does (RFC 8693, section 4.1). */
  act?: { sub: string; session_id: string };
  [claim: string]: unknown;
}
