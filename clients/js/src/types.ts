import type { AuthError } from "./error.js";
import type * as wire from "./wire.js";

/** The user, as the server sends it. */
export type User = wire.User;

/** A session as the application sees it. The refresh token stays with the client. */
export interface Session {
  /** For the Authorization header; null where it is in a cookie, or not there now. {@link AuthClient.getToken} keeps it fresh. */
  readonly access_token: string | null;
  /** When the access token expires, in Unix seconds of the server's clock; null where that is not known. */
  readonly expires_at: number | null;
  /** Names the session in the list of {@link AuthClient.sessions}; null where the token cannot be read. */
  readonly id: string | null;
  /** The level of proof: aal2 after a second factor; null where the token cannot be read. */
  readonly aal: "aal1" | "aal2" | null;
  /** What the roles of the user permit, from the access token, to decide what to show. The server decides what is done. */
  readonly permissions: readonly string[];
}

/** Where somebody is between signed out and signed in; clients/scenarios/transitions.json says what follows what. */
export type Status = "loading" | "signed-out" | "mfa" | "enroll" | "confirm" | "signed-in" | "offline";

/** What a sign-in waits for. */
export interface Pending {
  /** mfa: the factors that can be shown. */
  readonly factors?: readonly ("totp" | "recovery_code")[];
  /** mfa and enroll: until when, in Unix seconds of the server's clock. */
  readonly expires_at?: number;
  /** confirm: the address to be confirmed. */
  readonly email?: string;
  /** confirm: the number to be confirmed. */
  readonly phone?: string;
}

/** What a client knows: a new object for every change, never changed itself. Its status says what is there. */
export type State = {
  /** Null while nobody is signed in, and in what a server rendered. Absent values of it are null where the session is in cookies. */
  readonly session: Session | null;
  /** In mfa, enroll and confirm; of somebody signed in while a second factor is asked for once more. */
  readonly pending?: Pending;
} & (
  | { readonly status: "signed-in" | "offline"; /** Who is signed in. */ readonly user: User }
  | { readonly status: Exclude<Status, "signed-in" | "offline">; readonly user: null }
);

/** What every call returns: data, or why there is none. It does not throw for what a server said or a network did. */
export type Result<T> = { data: T; error: null } | { data: null; error: AuthError };

/** Of one call. */
export interface CallOptions {
  /** Gives the call up; it then returns the error `aborted`. What the server has done by then stays done. */
  signal?: AbortSignal | undefined;
}

/** What a completed sign-in returns. */
export interface SignedIn {
  user: User;
  /** Null: the address has to be confirmed first. */
  session: Session | null;
  /** How many recovery codes are left; only after one was used. */
  recovery_codes_left?: number;
}

/** What {@link AuthClient.onAuthStateChange} tells. */
export type AuthEvent = "INITIAL_SESSION" | "SIGNED_IN" | "SIGNED_OUT" | "TOKEN_REFRESHED" | "USER_UPDATED";

/** Who signs in: by one of the two. */
export type Who = { email: string; phone?: never } | { phone: string; email?: never };

interface Captcha {
  /** Where the server asks for one: what the captcha's widget said. */
  captchaToken?: string | undefined;
}
interface Remember {
  /** Of a session in cookies: whether the browser keeps it when it is closed. Default true. */
  remember?: boolean | undefined;
}
interface Trust {
  /** Together with a code of the authenticator app: this device is not asked again for some time, where the server allows that. */
  trustDevice?: boolean | undefined;
}
interface Redirect {
  /**
   * Where the browser comes back to: same origin, or one of `redirectOrigins`. Default, in browsers: this page; of a
   * confirmation that `signUp` asks for: the server's own page, and no further.
   */
  redirectTo?: string | undefined;
}

/** Of {@link AuthClient.signUp}. */
export type SignUpParams = Who & Captcha & Remember & Redirect & { password: string; fullName?: string | undefined; userMetadata?: Record<string, unknown> | undefined };
/** Of {@link AuthClient.signInWithPassword}. */
export type PasswordParams = Who & Captcha & Remember & Trust & { password: string; totpCode?: string | undefined };
/** Of {@link AuthClient.signInWithOAuth} and its kin. */
export type OAuthParams = Redirect & Remember & {
  provider: string;
  scopes?: string[] | undefined;
  loginHint?: string | undefined;
  prompt?: wire.Prompt | undefined;
  /** From an invitation's link. */
  invitation?: string | undefined;
};
/** Of {@link AuthClient.signInWithOtp}. */
export type OtpParams = Who & Captcha & Redirect & Remember & { /** Whether an account is made where there is none. Default true. */ createUser?: boolean | undefined };
/** Of {@link AuthClient.verifyOtp}. */
export type VerifyOtpParams = Remember & Trust & {
  email?: string | undefined;
  phone?: string | undefined;
  /** The six digits. */
  code?: string | undefined;
  /** Of a link, in place of address and code. */
  token?: string | undefined;
  /** What the code or token is for. Default: what was asked for last; then, of somebody signed in, their address; else a sign-in. */
  type?: "sign-in" | "email" | undefined;
  /** What {@link AuthClient.signInWithOtp} returned; by default it is remembered. */
  requestId?: string | undefined;
  totpCode?: string | undefined;
};
/** A proof of the second factor. */
export type Factor = { totpCode: string; recoveryCode?: never } | { recoveryCode: string; totpCode?: never };

/** A client of one project. Every call takes {@link CallOptions} last. */
export interface AuthClient {
  /** What is known now. */
  readonly state: State;
  /** Where the server is, with the path of its mount. */
  readonly url: string;

  /** Calls the listener with the state as it is and on every change, in a microtask, until the returned function is called. What it returns is not awaited; what it throws is reported. */
  subscribe(listener: (state: State) => void): () => void;
  /** The same by the name of what happened; the session is null while nobody is signed in. */
  onAuthStateChange(listener: (event: AuthEvent, session: Session | null) => void): () => void;

  /** Makes an account, and signs in unless the address has to be confirmed (state `confirm`). */
  signUp(params: SignUpParams, options?: CallOptions): Promise<Result<SignedIn>>;
  /** Errors: `invalid_credentials`; `mfa_required` and `mfa_enrollment_required` change the state. */
  signInWithPassword(params: PasswordParams, options?: CallOptions): Promise<Result<SignedIn>>;
  /** Sends the browser to a provider; {@link completeRedirect} ends it. */
  signInWithOAuth(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Where {@link signInWithOAuth} would send the browser to. */
  oauthURL(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Signs in with an ID token that a provider gave an app. The nonce is the one that it was asked for with. */
  signInWithIdToken(params: Remember & { provider: string; idToken: string; nonce?: string; accessToken?: string }, options?: CallOptions): Promise<Result<SignedIn>>;
  /** Sends a link and a code by mail, or a code by text message. */
  signInWithOtp(params: OtpParams, options?: CallOptions): Promise<Result<wire.SentCode>>;
  /** Takes such a code, or the token of a link: whoever wrote that link is who is signed in then, so ask before taking one that nobody asked for here. For a confirmed address the data's user and session are null: it signs nobody in. */
  verifyOtp(params: VerifyOtpParams, options?: CallOptions): Promise<Result<SignedIn | ({ user: null; session: null } & Partial<wire.TakenOver>)>>;
  /** Sends once more what was sent last to an address or number. */
  resend(params: Who & Captcha & Redirect, options?: CallOptions): Promise<Result<Partial<wire.SentCode>>>;
  /** Accepts an invitation by the token of its link. Where the address has an account, its owner has to be signed in, and needs no password. */
  acceptInvitation(params: Remember & { token: string; password?: string; fullName?: string }, options?: CallOptions): Promise<Result<SignedIn>>;
  /**
   * Ends what began with a redirect: trades the `?code=` of the page's URL for a session, and takes it out of the address bar.
   * Null data: the URL has nothing of that. Error `other_browser`: the link was asked for in another browser, where the mail's code is good; here it is not.
   */
  completeRedirect(url?: string, options?: CallOptions): Promise<Result<SignedIn | null>>;

  /** The user, from the server. With an access token: whoever that is of, and the state is left alone. */
  getUser(accessToken?: string | CallOptions, options?: CallOptions): Promise<Result<User>>;
  /** An access token that is good now, refreshed if need be. Null where sessions are in cookies. Signed out: error `missing_token`. */
  getToken(options?: CallOptions): Promise<Result<string | null>>;
  /** Trades the refresh token now, such as after roles have changed. */
  refresh(options?: CallOptions): Promise<Result<Session>>;
  /**
   * The platform's fetch, with the token: to the project's origin and `fetchOrigins`; to others it throws. Relative
   * URLs are the page's, and on servers the project's. Signed out, it goes without a token.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** `local`: this session; `others`: all but this one; `global`: all. The browser is signed out even if the server cannot be told; then there is an error, too. */
  signOut(params?: { scope?: "local" | "others" | "global" }, options?: CallOptions): Promise<Result<null>>;

  /** Mails a link to choose a new password, whether or not there is an account. */
  resetPasswordForEmail(email: string, params?: Captcha & Redirect, options?: CallOptions): Promise<Result<null>>;
  /** Chooses one by the token of such a link. Nobody is signed in by it. */
  resetPassword(params: { token: string; newPassword: string }, options?: CallOptions): Promise<Result<null>>;
  /** Changes the password of who is signed in; without `current` where none is set. */
  changePassword(params: { current?: string; next: string }, options?: CallOptions): Promise<Result<null>>;
  /** Changes particulars. A new address or number holds once its code is confirmed: {@link verifyOtp}, {@link confirmPhone}. */
  updateUser(params: { fullName?: string | null; email?: string; phone?: string; userMetadata?: Record<string, unknown> }, options?: CallOptions): Promise<Result<User>>;
  /** Confirms the number asked for by {@link updateUser}. */
  confirmPhone(params: { phone: string; code: string }, options?: CallOptions): Promise<Result<SignedIn>>;
  /** A fresh proof, for what answers `reauthentication_needed`. */
  confirm(params: { password: string } | { totpCode: string }, options?: CallOptions): Promise<Result<null>>;
  /** Everything that is held about the user. Needs a fresh proof. */
  exportData(options?: CallOptions): Promise<Result<wire.Export>>;
  /** Ends the account, where the server allows that. Needs a fresh proof. */
  deleteAccount(options?: CallOptions): Promise<Result<null>>;

  /** The second factor. */
  readonly mfa: {
    /** Shows it: completes a sign-in (state `mfa`), or raises the session to aal2. */
    verify(params: Factor & Trust & Remember, options?: CallOptions): Promise<Result<SignedIn>>;
    /** Begins to set one up (signed in, or state `enroll`). */
    enroll(options?: CallOptions): Promise<Result<wire.TOTPSetup>>;
    /** Ends it. The recovery codes are shown this once. */
    enable(params: { totpCode: string } & Remember, options?: CallOptions): Promise<Result<SignedIn & wire.RecoveryCodes>>;
    /** Switches it off; without a code where it was shown within the last 15 minutes. */
    disable(params?: Factor | Record<string, never>, options?: CallOptions): Promise<Result<null>>;
    /** Makes new recovery codes; the old ones are dead. */
    recoveryCodes(options?: CallOptions): Promise<Result<wire.RecoveryCodes>>;
  };
  /** Sends the browser to a provider, to add its account as a way in; {@link completeRedirect} ends it. */
  linkIdentity(params: OAuthParams, options?: CallOptions): Promise<Result<{ url: string }>>;
  /** Takes one away. The last way in stays: `last_sign_in_method`. */
  unlinkIdentity(params: { provider: string }, options?: CallOptions): Promise<Result<null>>;
  /** Where the user is signed in. */
  readonly sessions: {
    list(options?: CallOptions): Promise<Result<wire.SessionInfo[]>>;
    /** Ends one; without an id all others. */
    end(id?: string, options?: CallOptions): Promise<Result<null>>;
  };
  /** What the server offers. */
  settings(options?: CallOptions): Promise<Result<wire.Settings>>;
  /** Ends the client: requests, timers, listeners. Later calls return the error `aborted`. The session stays. */
  dispose(): void;
}

/** A place for strings, such as localStorage; its methods may return promises. */
export interface Storage {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): unknown;
  removeItem(key: string): unknown;
}

/** What is told to the debug hook. Nothing of it is secret. */
export interface DebugEvent {
  method: string;
  /** Without its query. */
  path: string;
  /** 0: there was no answer. */
  status: number;
  code?: string;
  requestId?: string | null;
  /** How long it took, in milliseconds. */
  ms: number;
}

/** Of createClient. */
export interface Options {
  /** The path of the mount, for a URL that is a bare origin. Default /auth/v1. */
  path?: string;
  /** Sessions in HttpOnly cookies of the server, and nothing in script. The server has to be on the page's origin, with cookies on. */
  cookies?: boolean;
  /** Where tokens are kept. Default: local in browsers, else memory. With session a duplicated tab has a copy of the session: when the other has renewed it, the server takes the copy for a stolen one and ends both. */
  storage?: "local" | "session" | "memory" | Storage;
  /** Under which name; another one for each project of an origin. Default: one made of the URL. */
  storageKey?: string;
  /** What is known already, such as from a server's rendering: then nothing is fetched until something is asked for. */
  initial?: State;
  /** Origins besides the project's that `fetch` gives the token to. */
  fetchOrigins?: string[];
  /** Origins besides the page's that `redirectTo` may have; an application's own scheme as "myapp:". */
  redirectOrigins?: string[];
  /** Replaces the platform's fetch. */
  fetch?: typeof fetch;
  /** Milliseconds after which a request counts as failed. Default 20000. */
  timeout?: number;
  /** Is told of every request. */
  debug?: (event: DebugEvent) => void;
}
