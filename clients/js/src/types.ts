/** The user, as the server sends it. */
export interface User {
  id: string;
  email: string | null;
  email_verified: boolean;
  email_verified_at: string | null;
  phone: string | null;
  phone_verified: boolean;
  phone_verified_at: string | null;
  full_name: string | null;
  user_metadata: Record<string, unknown>;
  app_metadata: Record<string, unknown>;
  roles: string[];
  mfa_enabled: boolean;
  identities: { id: string; provider: string; subject: string; email: string | null; created_at: string; last_sign_in_at: string | null }[];
  created_at: string;
  updated_at: string;
  last_sign_in_at: string | null;
  banned_until: string | null;
}

/** A completed sign-in; the tokens are null where they are in cookies. */
export interface Session {
  access_token: string | null;
  token_type: "bearer";
  expires_in: number;
  expires_at: number;
  refresh_token: string | null;
  user: User;
}

/** Where somebody is between signed out and signed in. */
export type Status = "loading" | "signed-out" | "mfa" | "enroll" | "confirm" | "signed-in" | "offline";

/** What a client knows: a new object for every change, never changed itself. */
export interface State {
  readonly status: Status;
  readonly user: User | null;
  readonly session: Session | null;
}

/** What frameworks need of a client. */
export interface AuthClient {
  readonly state: State;
  /** Calls the listener now and on every change, until the answer is called. */
  subscribe(listener: (state: State) => void): () => void;
}
