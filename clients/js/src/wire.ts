// Generated from openapi.json by scripts/types.mjs: change that, not this.

/** An authentication method that the session used. */
export type AMR = {
  method: string;
  timestamp: UnixTime;
};

/** PKCE (RFC 7636) between the application and /exchange, method S256. */
export type CodeChallenge = string;

/** PKCE (RFC 7636); required if the flow started with a code_challenge. */
export type CodeVerifier = string;

/** The account's address must be confirmed first. */
export type ConfirmationRequired = {
  confirmation_required: true;
  /** Opaque. Send it together with the mailed code at /verify-email, or with the code of the text message at /otp/verify. */
  request_id: string;
  user: User;
};

/** The part of OpenID Connect Discovery that verifiers of tokens need. */
export type Discovery = {
  id_token_signing_alg_values_supported: string[];
  issuer: string;
  jwks_uri: string;
  response_types_supported: string[];
  subject_types_supported: string[];
};

export type Email = string;

export type EmailVerified = {
  email_verified: true;
  user: User;
};

export type Empty = Record<string, never>;

/** The session, now at aal2, and the recovery codes, shown only once. */
export type Enabled = {
  /** JWT for the Authorization header; null if it is in a cookie. */
  access_token: string | null;
  expires_at: UnixTime;
  /** Lifetime of the access token in seconds. */
  expires_in: number;
  recovery_codes: TenCodes;
  /** Only after a recovery code was used. */
  recovery_codes_left?: number;
  /** Opaque; use it at /refresh. Null if it is in a cookie. */
  refresh_token: string | null;
  token_type: "bearer";
  user: User;
};

export type Error = {
  /** Stable; compare this. */
  code: string;
  details?: {
    /** validation_failed: the problem of each field. */
    fields?: Record<string, string>;
    /** missing_permission: the permission. */
    permission?: string;
    /** weak_password: the reasons. */
    reasons?: ("length" | "too_long" | "common" | "similar" | "breached")[];
    /** missing_permission: the required role, if the route requires a role. */
    role?: string;
  };
  /** Lifetime of the mfa_token in seconds. */
  expires_in?: number;
  factors?: ("totp" | "recovery_code")[];
  /** For display; may change. */
  message: string;
  /** mfa_required, mfa_enrollment_required: continue with it at /2fa/verify, or as bearer token of the enrolment. */
  mfa_token?: string;
  /** The X-Request-Id of this HTTP request, for the log. It is not the request_id of a sent code. */
  request_id: string;
};

export type Export = {
  devices: {
    first_seen_at: Time;
    last_seen_at: Time;
  }[];
  events: Record<string, unknown>[];
  exported_at: Time;
  factors: ({
    created_at: Time;
    enabled: boolean;
    id: UUID;
    kind: string;
    label: string | null;
    last_used_at: Time | null;
  })[];
  has_password: boolean;
  messages: Held[];
  pending: {
    created_at: Time;
    expires_at: Time;
    purpose: string;
  }[];
  recovery_codes_left: number;
  sessions: SessionInfo[];
  user: User;
};

export type Health = {
  status: "ok";
};

export type Held = {
  created_at: Time;
  expires_at: Time;
};

/** An account at an outside provider. */
export type Identity = {
  created_at: Time;
  email: string | null;
  id: UUID;
  last_sign_in_at: Time | null;
  provider: string;
  subject: string;
};

/** RFC 7517. */
export type JWKS = {
  keys: ({
    alg: "ES256" | "RS256" | "EdDSA";
    kid: string;
    kty: "EC" | "RSA" | "OKP";
    use: "sig";
  })[];
};

/** See /settings for the minimum length. */
export type NewPassword = string;

/** E.164, such as +4930123456. */
export type Phone = string;

export type Prompt = "" | "none" | "login" | "consent" | "select_account";

export type RecoveryCodes = {
  recovery_codes: TenCodes;
};

/** The browser's next page at the end; it must be on the allow-list. */
export type RedirectTo = string;

/** For sessions in cookies: whether the browser keeps them when it is closed. Refreshes keep the value. */
export type Remember = boolean;

export type SentCode = {
  /** Opaque. Send it together with the code: then only this client's attempts count. It identifies the request for a code. The request_id of an error is different: it is the X-Request-Id of one HTTP request. */
  request_id: string;
};

/** A completed sign-in. */
export type Session = {
  /** JWT for the Authorization header; null if it is in a cookie. */
  access_token: string | null;
  expires_at: UnixTime;
  /** Lifetime of the access token in seconds. */
  expires_in: number;
  /** Only after a recovery code was used. */
  recovery_codes_left?: number;
  /** Opaque; use it at /refresh. Null if it is in a cookie. */
  refresh_token: string | null;
  token_type: "bearer";
  user: User;
};

export type SessionInfo = {
  aal: "aal1" | "aal2";
  amr: AMR[];
  created_at: Time;
  current: boolean;
  /** The device's name, such as "Firefox on Linux", from its user agent. */
  device: string | null;
  expires_at: Time;
  id: UUID;
  /** The id of the operator who impersonates the user; null: a session of the user. */
  impersonated_by: string | null;
  ip: string | null;
  last_active_at: Time;
  user_agent: string | null;
};

export type Sessions = {
  sessions: SessionInfo[];
};

export type Settings = {
  email_confirmation_required: boolean;
  enabled: boolean;
  methods: {
    magic_link: boolean;
    oauth: boolean;
    password: boolean;
    phone_otp: boolean;
    totp: boolean;
  };
  mfa_required: boolean;
  password: {
    min_length: number;
  };
  providers: string[];
  signup_enabled: boolean;
};

/** A different person had signed up with the address: all their credentials were removed, also the password. */
export type TakenOver = {
  /** A link to choose a password was mailed. */
  reset_sent: boolean;
  taken_over: true;
};

export type TenCodes = string[];

/** RFC 3339 in UTC, at most microseconds. */
export type Time = string;

export type TOTPSetup = {
  /** The URI as a PNG data URI. */
  qr_code: string;
  /** Base32, for manual entry. */
  secret: string;
  /** otpauth:// URI. */
  uri: string;
};

/** With a valid totp_code, if the service allows trusted devices: the second factor is not required on this device (its cookie, or X-Device-Id) for some time. Otherwise ignored. */
export type TrustDevice = boolean;

/** Unix seconds. */
export type UnixTime = number;

/** The URL for the browser. */
export type URL = {
  url: string;
};

export type User = {
  /** Data of the server; users cannot change it. */
  app_metadata: Record<string, unknown>;
  banned_until: Time | null;
  created_at: Time;
  email: string | null;
  email_verified: boolean;
  email_verified_at: Time | null;
  full_name: string | null;
  id: UUID;
  identities: Identity[];
  last_sign_in_at: Time | null;
  mfa_enabled: boolean;
  phone: string | null;
  phone_verified: boolean;
  phone_verified_at: Time | null;
  roles: string[];
  updated_at: Time;
  /** Data of the user, at most 16 KiB. Never trust it. */
  user_metadata: Record<string, unknown>;
};

/** A UUID; new ones have version 7. */
export type UUID = string;

/** Codes with which the server refuses. */
export type WireCode =
  | "account_exists"
  | "bad_code_verifier"
  | "bad_json"
  | "bad_oauth_state"
  | "bad_token"
  | "body_too_large"
  | "cross_site_request"
  | "email_not_verified"
  | "identity_already_exists"
  | "impersonation_forbidden"
  | "insufficient_aal"
  | "internal"
  | "invalid_api_key"
  | "invalid_code"
  | "invalid_credentials"
  | "invalid_refresh_token"
  | "invalid_token"
  | "invalid_totp_code"
  | "last_owner"
  | "last_sign_in_method"
  | "method_disabled"
  | "method_not_allowed"
  | "mfa_already_enabled"
  | "mfa_enforced"
  | "mfa_enrollment_required"
  | "mfa_not_enabled"
  | "mfa_not_pending"
  | "mfa_required"
  | "missing_token"
  | "not_found"
  | "oauth_denied"
  | "overloaded"
  | "provider_error"
  | "rate_limited"
  | "reauthentication_needed"
  | "redirect_not_allowed"
  | "refresh_token_reused"
  | "same_password"
  | "session_ended"
  | "session_not_found"
  | "signup_disabled"
  | "token_stale"
  | "unavailable"
  | "unknown_provider"
  | "unsupported_media_type"
  | "user_already_exists"
  | "user_banned"
  | "validation_failed"
  | "weak_password";

/** What requests carry, by method and path. */
export type Bodies = {
  /** Change the profile. */
  "PATCH /me": {
    email?: Email;
    full_name?: string | null;
    phone?: Phone;
    user_metadata?: Record<string, unknown>;
  };
  /** Disable the second factor. */
  "POST /2fa/disable": {
    recovery_code?: string;
    totp_code?: string;
  };
  /** Verify the second factor. */
  "POST /2fa/verify": {
    mfa_token?: string;
    recovery_code?: string;
    remember?: Remember;
    totp_code?: string;
    trust_device?: TrustDevice;
  };
  /** Enable the second factor. */
  "POST /2fa/verify-and-enable": {
    remember?: Remember;
    totp_code: string;
  };
  /** Trade the code of a redirect for tokens. */
  "POST /exchange": {
    code: string;
    code_verifier?: CodeVerifier;
    remember?: Remember;
  };
  /** Mail a link to choose a new password. */
  "POST /forgot-password": {
    email: Email;
    redirect_to?: RedirectTo;
  };
  /** Accept an invitation. */
  "POST /invitations/accept": {
    full_name?: string;
    password?: NewPassword;
    remember?: Remember;
    token: string;
  };
  /** Sign in with a password. */
  "POST /login": {
    email?: Email;
    password: string;
    phone?: Phone;
    remember?: Remember;
    /** The code of a user with a second factor; it may be sent to /2fa/verify instead. */
    totp_code?: string;
    trust_device?: TrustDevice;
  };
  /** End sessions. */
  "POST /logout": {
    refresh_token?: string;
  };
  /** Mail a link and a code to sign in with. */
  "POST /magic-link/send": {
    code_challenge?: CodeChallenge;
    code_challenge_method?: "S256";
    create_user?: boolean;
    email: Email;
    redirect_to?: RedirectTo;
    remember?: Remember;
  };
  /** Complete a magic link or its code. */
  "POST /magic-link/verify": {
    /** From the mail, instead of token. */
    code?: string;
    code_verifier?: CodeVerifier;
    email?: Email;
    remember?: Remember;
    /** From /magic-link/send; required with code. */
    request_id?: string;
    token?: string;
  };
  /** Authenticate again. */
  "POST /me/confirm": {
    password?: string;
    totp_code?: string;
  };
  /** Link a provider's identity. */
  "POST /me/identities/{provider}": {
    code_challenge?: CodeChallenge;
    code_challenge_method?: "S256";
    prompt?: Prompt;
    redirect_to?: RedirectTo;
    scopes?: string[];
  };
  /** Change the password. */
  "POST /me/password": {
    current_password?: string;
    new_password: NewPassword;
  };
  /** Sign in with a native app's ID token. */
  "POST /oauth/{provider}/id-token": {
    /** The provider's access token; passed to the application if it belongs to the ID token. */
    access_token?: string;
    id_token: string;
    /** The app's nonce; required if the token has one. If the token's nonce has the form of a SHA-256 in hex or base64, send the value that was hashed. */
    nonce?: string;
    remember?: Remember;
  };
  /** Send a code to sign in with. */
  "POST /otp/send": {
    create_user?: boolean;
    phone: Phone;
  };
  /** Sign in with a code. */
  "POST /otp/verify": {
    otp: string;
    phone: Phone;
    remember?: Remember;
    /** From /otp/send. Without it, the wrong codes of all clients for the phone number count. */
    request_id?: string;
    totp_code?: string;
    trust_device?: TrustDevice;
  };
  /** Trade a refresh token for new tokens. */
  "POST /refresh": {
    refresh_token?: string;
    remember?: Remember;
  };
  /** Choose a new password. */
  "POST /reset-password": {
    new_password: NewPassword;
    token: string;
  };
  /** Secure an account with an account recovery link. */
  "POST /secure-account": {
    token: string;
  };
  /** Create an account. */
  "POST /signup": {
    email?: Email;
    full_name?: string;
    password: NewPassword;
    phone?: Phone;
    redirect_to?: RedirectTo;
    remember?: Remember;
    user_metadata?: Record<string, unknown>;
  };
  /** Confirm the email address. */
  "POST /verify-email": {
    /** From the mail, with email, instead of token. */
    code?: string;
    email?: Email;
    /** With code: the request_id of /signup. It shows that the reader of the mail also signed up. */
    request_id?: string;
    token?: string;
  };
};
