import type { AuthError } from "./error.js";
import type * as wire from "./wire.js";

/**
 * The shape of the users' metadata, for the type parameter of `createClient`. A member that is absent is untyped. The
 * server does not check shapes, and users can store anything in their own `user_metadata`: check values that others rely on.
 */
export interface Metadata {
  user_metadata?: object;
  app_metadata?: object;
}
type Part<M, K extends keyof Metadata> = 0 extends 1 & M ? any : M extends Record<K, infer T> ? T : Record<string, unknown>; // of `any`: any
type UserMetadata<M> = Part<M, "user_metadata">;
type AppMetadata<M> = Part<M, "app_metadata">;
/** A change that is merged (RFC 7396): null removes an optional member. */
type Merge<T> = T extends readonly unknown[] ? T : T extends object ? { [K in keyof T]?: Merge<T[K]> | ({} extends Pick<T, K> ? null : never) } : T;

/** A user account, as the server returns it. */
export type User<M extends Metadata = {}> = Omit<wire.User, "user_metadata" | "app_metadata"> & {
  /** Data of the server; users cannot change it. */
  app_metadata: AppMetadata<M>;
  /** Data of the user, at most 16 KiB. Never trust it. */
  user_metadata: UserMetadata<M>;
};

/** The current session. It does not contain the refresh token, which only the client uses. */
export interface Session {
  /** Access token (JWT) for the Authorization header. Null if the session is in cookies, or while no valid token is available. {@link AuthClient.getToken} returns a valid one. */
  readonly access_token: string | null;
  /** Expiry of the access token, in Unix seconds of the server's clock. Null if unknown. */
  readonly expires_at: number | null;
  /** The session's id in the list of {@link AuthClient.sessions}. Null if the token is not readable, such as in a cookie. */
  readonly id: string | null;
  /** Authenticator assurance level: aal2 after a second factor. Null if the token is not readable. */
  readonly aal: "aal1" | "aal2" | null;
  /** The permissions of the user's roles, from the access token. Use them to show or hide controls; the server enforces them. */
  readonly permissions: readonly string[];
}

/** The status of the sign-in. clients/scenarios/transitions.json lists the transitions. */
export type Status = "loading" | "signed-out" | "mfa" | "enroll" | "confirm" | "signed-in" | "offline";

/** The next step of an incomplete sign-in. */
export interface Pending {
  /** Status mfa: the second factors that the user can use. */
  readonly factors?: readonly ("passkey" | "totp" | "recovery_code")[];
  /** Status mfa and enroll: the deadline for this step, in Unix seconds of the server's clock. */
  readonly expires_at?: number;
  /** Status confirm: the email address to confirm. */
  readonly email?: string;
  /** Status confirm: the phone number to confirm. */
  readonly phone?: string;
}

/** An immutable snapshot of the client's state. Every change creates a new object. `status` is the discriminant. */
export type State<M extends Metadata = {}> = {
  /** Null while no user is signed in, and in a state rendered on a server. With sessions in cookies, its token and the values read from it are null. */
  readonly session: Session | null;
  /** Set in the statuses mfa, enroll and confirm, and while a signed-in user has to use the second factor again. A session that exists when a second factor becomes required also has status mfa or enroll. */
  readonly pending?: Pending;
} & (
  | { readonly status: "signed-in" | "offline"; /** The signed-in user. */ readonly user: User<M> }
  | { readonly status: Exclude<Status, "signed-in" | "offline">; readonly user: null }
);

/** The result of every call: either `data` or `error` is null. Errors of the server and of the network are returned, never thrown. */
export type Result<T> = { data: T; error: null } | { data: null; error: AuthError };

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call, which then returns the error `aborted`. It does not undo changes that the server has already made. */
  signal?: AbortSignal | undefined;
}

/** The data of a completed sign-in. */
export interface SignedIn<M extends Metadata = {}> {
  user: User<M>;
  session: Session;
  /** The number of unused recovery codes. Only set after a sign-in with a recovery code. */
  recovery_codes_left?: number;
  /** New recovery codes, in place of those that an account recovery link dropped. Shown only once. */
  recovery_codes?: string[];
}

/** The data of a sign-up whose email address or phone number has to be confirmed first: nobody is signed in. */
export interface Unconfirmed<M extends Metadata = {}> {
  user: User<M>;
  session: null;
  /** Identifies the sign-up when its code is verified. The client stores it. */
  request_id: string;
}

/** The data after an email address was confirmed: nobody was signed in by that. */
export type Confirmed = { user: null; session: null } & Partial<wire.TakenOver>;

/** The events of {@link AuthClient.onAuthStateChange}. */
export type AuthEvent = "INITIAL_SESSION" | "SIGNED_IN" | "SIGNED_OUT" | "TOKEN_REFRESHED" | "USER_UPDATED";

/** Identifies the account: by its email address or its phone number (E.164), not both. */
export type Who = { email: string; phone?: never } | { phone: string; email?: never };

interface Captcha {
  /** The token from the captcha widget, if the server requires a captcha. */
  captchaToken?: string | undefined;
}
interface Remember {
  /** For sessions in cookies: whether the session outlives the closing of the browser. Default true. */
  remember?: boolean | undefined;
}
interface Trust {
  /** With a code of the authenticator app: skip the second factor on this device for some time, if the server allows trusted devices. Default false. */
  trustDevice?: boolean | undefined;
}
interface Redirect {
  /**
   * The URL that the browser returns to; its origin is the page's or one of `redirectOrigins`. Default in browsers: the
   * current page. For the confirmation mail of `signUp` the default is the server's own page, without a further redirect.
   */
  redirectTo?: string | undefined;
}

/** Parameters of {@link AuthClient.signUp}. */
export type SignUpParams<M extends Metadata = {}> = Who & Captcha & Remember & Redirect & { password: string; fullName?: string | undefined; userMetadata?: UserMetadata<M> | undefined };
interface Confirmation {
  /** If the account is not confirmed yet: the code on the page of the mailed link, or in the mail. */
  confirmationCode?: string | undefined;
}
/** Parameters of {@link AuthClient.signInWithPassword}. */
export type PasswordParams = Who & Captcha & Remember & Trust & Confirmation & { password: string; totpCode?: string | undefined };
/** Parameters of {@link AuthClient.signInWithOAuth}, `oauthURL` and `linkIdentity`. */
export type OAuthParams = Redirect & Remember & Confirmation & {
  provider: string;
  scopes?: string[] | undefined;
  loginHint?: string | undefined;
  prompt?: wire.Prompt | undefined;
  /** The token of an invitation link, to accept it with this sign-in. */
  invitation?: string | undefined;
};
/** Parameters of {@link AuthClient.signInWithOtp}. */
export type OtpParams = Who & Captcha & Redirect & Remember & { /** Whether to create an account if none exists. Default true. */ createUser?: boolean | undefined };
/** Parameters of {@link AuthClient.verifyOtp}: `token`, or `code` with `email` or `phone`. */
export type VerifyOtpParams = Remember & Trust & {
  email?: string | undefined;
  phone?: string | undefined;
  /** The six-digit code from the message. */
  code?: string | undefined;
  /** The token from a link, instead of the email address and code. */
  token?: string | undefined;
  /** The purpose of the code or token. Default: that of this client's last request for a code; without one, "email" for the code of a signed-in user, else "sign-in". */
  type?: "sign-in" | "email" | undefined;
  /** The `request_id` that {@link AuthClient.signInWithOtp} returned. Default: the stored one of the last request. */
  requestId?: string | undefined;
  totpCode?: string | undefined;
  /** The account's password. Required with the token of a sign-up's confirmation link that is opened in another browser. */
  password?: string | undefined;
};
/** A second factor: a code of the authenticator app, or a recovery code. */
export type Factor = { totpCode: string; recoveryCode?: never } | { recoveryCode: string; totpCode?: never };

/** A client of one Authmount server. `M` is the shape of the users' metadata, untyped by default. Every call takes {@link CallOptions} as its last argument. */
export interface AuthClient<M extends Metadata = {}> {
  /** The current state. */
  readonly state: State<M>;
  /** Base URL of the server, including its mount path. */
  readonly url: string;

  /** Calls the listener with the current state and after every change, in a microtask. The returned function unsubscribes. A promise of the listener is not awaited; its exceptions go to `reportError`. */
  subscribe(listener: (state: State<M>) => void): () => void;
  /** Like {@link subscribe}, but calls the listener with an event name and the session, which is null while no user is signed in. */
  onAuthStateChange(listener: (event: AuthEvent, session: Session | null) => void): () => void;

  /** Creates an account and signs in, unless the email address or phone number has to be confirmed first (status `confirm`): then `session` is null. */
  signUp(params: SignUpParams<M>, options?: CallOptions): Promise<Result<SignedIn<M> | Unconfirmed<M>>>;
  /** Signs in with a password. Errors: `invalid_credentials`; `mfa_required` (status `mfa`), `mfa_enrollment_required` (status `enroll`). */
  signInWithPassword(params: PasswordParams, options?: CallOptions): Promise<Result<SignedIn<M>>>;
  /** Redirects the browser to a provider to sign in. {@link completeRedirect} completes the sign-in on the page at `redirectTo`. */
  signInWithOAuth(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Returns the provider's URL for {@link signInWithOAuth} without redirecting the browser. */
  oauthURL(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Signs in with an ID token that an app received from a provider's SDK. `nonce` is the value used in the request to the provider. */
  signInWithIdToken(params: Remember & Confirmation & { provider: string; idToken: string; nonce?: string; accessToken?: string }, options?: CallOptions): Promise<Result<SignedIn<M>>>;
  /** Sends a sign-in link and a code by mail, or a code by text message. */
  signInWithOtp(params: OtpParams, options?: CallOptions): Promise<Result<wire.SentCode>>;
  /** Verifies such a code, or the token of a link. A link signs in to the account that requested it, perhaps an attacker's, so ask the user before you verify a token that this client did not request. Confirming an email address signs nobody in: `user` and `session` are null. */
  verifyOtp(params: VerifyOtpParams, options?: CallOptions): Promise<Result<SignedIn<M> | Confirmed>>;
  /** Sends the last message to an email address or phone number again, with a new code. */
  resend(params: Who & Captcha & Redirect, options?: CallOptions): Promise<Result<Partial<wire.SentCode>>>;
  /** Accepts an invitation with the token of its link. If the invited email address already has an account, its owner has to be signed in and needs no password. */
  acceptInvitation(params: Remember & { token: string; password?: string; fullName?: string; totpCode?: string }, options?: CallOptions): Promise<Result<SignedIn<M>>>;
  /**
   * Completes a redirect: exchanges the `?code=` of the URL (default: the page's) for a session and removes it from the address bar.
   * `data` is null if the URL has no such parameters. Error `other_browser`: the link was requested in another browser; only there is the mail's code valid.
   */
  completeRedirect(url?: string, options?: CallOptions): Promise<Result<SignedIn<M> | null>>;

  /** Fetches the current user from the server. With an access token: the user of that token, without a change of the state. */
  getUser(accessToken?: string | CallOptions, options?: CallOptions): Promise<Result<User<M>>>;
  /** Returns a valid access token and refreshes it if necessary. Null if sessions are in cookies. Error if signed out: `missing_token`. */
  getToken(options?: CallOptions): Promise<Result<string | null>>;
  /** Refreshes the session immediately, such as after a change of roles. */
  refresh(options?: CallOptions): Promise<Result<Session>>;
  /**
   * The platform's fetch with the access token, for the server's origin and `fetchOrigins`; other origins throw a TypeError.
   * Relative URLs resolve against the page, on servers against {@link url}. If signed out, it sends no token.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends sessions. Scope `local` (default): this one; `others`: all except this one; `global`: all. Without cookies, the client is signed out even if the request fails; the call then also returns the error. */
  signOut(params?: { scope?: "local" | "others" | "global" }, options?: CallOptions): Promise<Result<null>>;

  /** Mails a link to choose a new password. The result does not reveal whether the account exists. */
  resetPasswordForEmail(email: string, params?: Captcha & Redirect, options?: CallOptions): Promise<Result<null>>;
  /** Sets a new password with the token of such a link. It does not sign in. */
  resetPassword(params: { token: string; newPassword: string }, options?: CallOptions): Promise<Result<null>>;
  /** Changes the signed-in user's password. Omit `current` if the account has no password. */
  changePassword(params: { current?: string; next: string }, options?: CallOptions): Promise<Result<null>>;
  /** Changes the profile. A new email address or phone number takes effect after confirmation of its code: {@link verifyOtp}, {@link confirmPhone}. The metadata is merged (RFC 7396): null removes a member. */
  updateUser(params: { fullName?: string | null; email?: string; phone?: string; userMetadata?: Merge<UserMetadata<M>> }, options?: CallOptions): Promise<Result<User<M>>>;
  /** Confirms the new phone number of {@link updateUser}. */
  confirmPhone(params: { phone: string; code: string }, options?: CallOptions): Promise<Result<SignedIn<M>>>;
  /** Authenticates again, for calls that return `reauthentication_needed`. */
  confirm(params: { password: string } | { totpCode: string }, options?: CallOptions): Promise<Result<SignedIn<M>>>;
  /** Returns all stored data about the user. Error without recent authentication: `reauthentication_needed` (see {@link confirm}). */
  exportData(options?: CallOptions): Promise<Result<wire.Export>>;
  /** Deletes the account, if the server allows it. Error without recent authentication: `reauthentication_needed` (see {@link confirm}). */
  deleteAccount(options?: CallOptions): Promise<Result<null>>;

  /** Second factor: TOTP and recovery codes. Passkeys are in `authmount/passkey`. */
  readonly mfa: {
    /** Verifies the second factor: completes a sign-in (status `mfa`), or raises the session to aal2. */
    verify(params: Factor & Trust & Remember, options?: CallOptions): Promise<Result<SignedIn<M>>>;
    /** Starts the setup of an authenticator app (signed in, or status `enroll`). Returns the secret as a URI and a QR code. */
    enroll(options?: CallOptions): Promise<Result<wire.TOTPSetup>>;
    /** Completes the setup. Returns the recovery codes, which cannot be read again later. */
    enable(params: { totpCode: string } & Remember, options?: CallOptions): Promise<Result<SignedIn<M> & wire.RecoveryCodes>>;
    /** Disables the second factor. No code is needed if it was verified in the last 15 minutes. */
    disable(params?: Factor | Record<string, never>, options?: CallOptions): Promise<Result<null>>;
    /** Creates new recovery codes and invalidates the old ones. */
    recoveryCodes(options?: CallOptions): Promise<Result<wire.RecoveryCodes>>;
  };
  /** Redirects the browser to a provider to link its account as a sign-in method. {@link completeRedirect} completes it. */
  linkIdentity(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Unlinks a provider's account. Error for the last sign-in method: `last_sign_in_method`. */
  unlinkIdentity(params: { provider: string }, options?: CallOptions): Promise<Result<null>>;
  /** The user's sessions on all devices. */
  readonly sessions: {
    list(options?: CallOptions): Promise<Result<wire.SessionInfo[]>>;
    /** Ends the session with this id; without an id, all sessions except the current one. */
    end(id?: string, options?: CallOptions): Promise<Result<null>>;
  };
  /** Returns the server's public settings, such as its sign-in methods. */
  settings(options?: CallOptions): Promise<Result<wire.Settings>>;
  /** Stops the client's requests, timers and listeners. Later calls return the error `aborted`. The session stays valid. */
  dispose(): void;
}

/** A key-value storage such as localStorage. Its methods may return promises. */
export interface Storage {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): unknown;
  removeItem(key: string): unknown;
}

/** One request, as reported to the `debug` hook. It contains no secrets. */
export interface DebugEvent {
  method: string;
  /** Without the query string. */
  path: string;
  /** HTTP status; 0 if there was no response. */
  status: number;
  code?: string;
  requestId?: string | null;
  /** Duration in milliseconds. */
  ms: number;
}

/** Options of `createClient`. */
export interface Options {
  /** The server's mount path, used if the URL has no path. Default /auth/v1. */
  path?: string;
  /** Keep sessions in HttpOnly cookies, out of reach of scripts. Requires a server on the page's origin with cookies enabled. Default false. */
  cookies?: boolean;
  /** Where tokens are stored. Default: "local" in browsers, else memory. With "session", a duplicated tab copies the session; after one tab refreshes it, the server treats the other's refresh token as stolen and ends the session of both. */
  storage?: "local" | "session" | "memory" | Storage;
  /** The key in the storage. Use a different one for each project on the same origin. Default: derived from the URL. */
  storageKey?: string;
  /** The initial state, such as from server-side rendering. The client then fetches nothing until the first call. */
  initial?: State<any>;
  /** Origins that `fetch` sends the token to, in addition to the server's. */
  fetchOrigins?: string[];
  /** Origins that `redirectTo` may have, in addition to the page's. Write the custom scheme of an app as "myapp:". */
  redirectOrigins?: string[];
  /** Replaces the platform's fetch. */
  fetch?: typeof fetch;
  /** Timeout of a request in milliseconds. Default 20000. */
  timeout?: number;
  /** Called after every request. */
  debug?: (event: DebugEvent) => void;
}
