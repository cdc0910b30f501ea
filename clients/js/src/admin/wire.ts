// Written by scripts/admin.mjs from the document of the server. Do not edit.

/** What the server says went wrong. */
export type AdminErrorCode =
  | "bad_json"
  | "bad_token"
  | "body_too_large"
  | "cross_site_request"
  | "idempotency_replayed"
  | "identity_already_exists"
  | "impersonation_forbidden"
  | "insufficient_aal"
  | "internal"
  | "invalid_api_key"
  | "last_owner"
  | "last_sign_in_method"
  | "method_disabled"
  | "method_not_allowed"
  | "mfa_not_enabled"
  | "missing_permission"
  | "missing_token"
  | "not_admin"
  | "not_found"
  | "overloaded"
  | "precondition_failed"
  | "query_too_broad"
  | "rate_limited"
  | "reauthentication_needed"
  | "redirect_not_allowed"
  | "role_in_use"
  | "role_not_found"
  | "session_ended"
  | "session_not_found"
  | "target_stronger"
  | "token_stale"
  | "unavailable"
  | "unknown_provider"
  | "unsupported_media_type"
  | "user_already_exists"
  | "user_banned"
  | "user_not_found"
  | "validation_failed"
  | "weak_password";

/** An authentication method that the session used. */
export interface AMR {
  method: string;
  timestamp: UnixTime;
}

/** An API key without its secret text. */
export interface APIKey {
  /** It belongs to the service and is independent of its creator. */
  adopted: boolean;
  /** The only networks from which it works; none: from anywhere. */
  cidrs: string[];
  created_at: Time;
  /** The account that limits its permissions; null: it belongs to the service. */
  created_by: string | null;
  environment: string;
  expires_at: Time | null;
  id: UUID;
  /** A secret key authenticates a program at the admin side; a public key identifies an application. */
  kind: "secret" | "public";
  /** Accurate to the minute. */
  last_used_at: string | null;
  name: string;
  /** The time until which the previous text works. */
  previous_until: string | null;
  /** Increases with every change; also the ETag, for If-Match. */
  revision: number;
  revoked_at: Time | null;
  /** The time of the last rotation; null: none since created_at. */
  rotated_at: string | null;
  /** Permissions; the key has those that its creator also has. */
  scopes: string[];
  status: "live" | "expired" | "revoked";
}

/** An account as operators see it. */
export interface AdminAccount {
  /** Data of the server; users cannot change it. */
  app_metadata: Record<string, unknown>;
  banned_until: Time | null;
  created_at: Time;
  email: string | null;
  email_verified: boolean;
  email_verified_at: Time | null;
  factors: AdminFactor[];
  full_name: string | null;
  has_password: boolean;
  id: UUID;
  identities: Identity[];
  last_sign_in_at: Time | null;
  /** Limits on failures that are exhausted. */
  locks: {
    limit: "password" | "code" | "factor";
    until: Time;
  }[];
  mfa_enabled: boolean;
  notes: Notes;
  /** Pending verifications. */
  pending_changes: {
    expires_at: Time;
    field: "email" | "phone";
    value: string;
  }[];
  phone: string | null;
  phone_verified: boolean;
  phone_verified_at: Time | null;
  recovery_codes_left: number;
  /** Increases with every change; also the ETag, for If-Match. */
  revision: number;
  roles: string[];
  status: "active" | "banned" | "unconfirmed";
  updated_at: Time;
  /** Data of the user, at most 16 KiB. Never trust it. */
  user_metadata: Record<string, unknown>;
}

/** An actor. */
export interface AdminActor {
  id: string;
  kind: "user" | "key" | "system" | "external";
  /** The name of the actor. */
  label: string;
  session_id: string | null;
}

/** An enabled second factor. */
export interface AdminFactor {
  created_at: Time;
  id: UUID;
  kind: "totp";
  label: string | null;
  last_used_at: Time | null;
}

/** Work in the background. */
export interface AdminJob {
  created_at: Time;
  done: number;
  /** Until then it can be started, or its results can be read. */
  expires_at: string;
  failed: number;
  finished_at: Time | null;
  id: UUID;
  kind: "import" | "bulk";
  rows: number;
  skipped: number;
  /** receiving: it has not started. */
  state: "receiving" | "running" | "done";
}

export interface AdminJobID {
  job_id: UUID;
}

export type AdminMetric = "sign_ups" | "sign_ins" | "sign_in_failures" | "active_users" | "factors" | "messages_sent" | "messages_failed" | "limits_hit" | "tokens_reused" | "operations_denied";

/** The outcome for one account. */
export interface AdminRowResult {
  /** The error code. */
  code?: string;
  field?: string;
  /** The account's id. */
  id?: string;
  message?: string;
  /** skipped: the operator may not do it to this account, or the account exists. */
  result: "done" | "skipped" | "failed";
  /** For imports: the line, from 1. */
  row?: number;
}

export interface AdminSettings {
  /** Rises with every change; also the ETag, for If-Match. */
  revision: number;
  settings: {
    account_deletion: SwitchSetting;
    auto_linking: SwitchSetting;
    cors_origins: ListSetting;
    email_confirmation_required: SwitchSetting;
    enabled: SwitchSetting;
    magic_link_enabled: SwitchSetting;
    mfa_required: SwitchSetting;
    mfa_required_for: ListSetting;
    oauth_enabled: SwitchSetting;
    password_breach_check: SwitchSetting;
    password_enabled: SwitchSetting;
    password_min_length: NumberSetting;
    phone_enabled: SwitchSetting;
    redirect_urls: ListSetting;
    sender_name: TextSetting;
    session_idle_timeout: NumberSetting;
    session_lifetime: NumberSetting;
    signup_enabled: SwitchSetting;
    texts: TextsSetting;
    totp_enabled: SwitchSetting;
  };
}

export interface AdminTotal {
  count: number;
  /** false: an estimate, above 10,000. */
  exact: boolean;
}

/** An account as the admin side shows it. */
export interface AdminUser {
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
  /** Increases with every change; also the ETag, for If-Match. */
  revision: number;
  roles: string[];
  status: "active" | "banned" | "unconfirmed";
  updated_at: Time;
  /** Data of the user, at most 16 KiB. Never trust it. */
  user_metadata: Record<string, unknown>;
}

export interface AuditEvent {
  /** The actor; all null for a stranger. */
  actor: {
    id: string | null;
    kind: "user" | "key" | "system" | "external" | null;
    /** The actor's name at that time; the account may be deleted. */
    label: string | null;
    session_id: string | null;
  };
  at: Time;
  /** By field: the values before and after. */
  changes: Record<string, {
    after: unknown;
    before: unknown;
  }>;
  id: UUID;
  ip: string | null;
  method: string | null;
  /** The method and path, for operations of the admin side. */
  operation: string | null;
  outcome: "done" | "denied" | "failed";
  provider: string | null;
  reason: string | null;
  request_id: string | null;
  session_id: string | null;
  /** The sessions that ended. */
  session_ids: UUID[];
  /** The name of the account or role, for operations of the admin side. */
  target: string | null;
  type: string;
  user_agent: string | null;
  /** The account that the event is about. */
  user_id: string | null;
}

/** The cursor of the next page; null on the last page. */
export type Cursor = string | null;

export interface Diagnostics {
  /** Secret keys that are live, the oldest texts first, at most 50. */
  api_keys: {
    /** Its text is older than a year. */
    ageing: boolean;
    expires_at: Time | null;
    id: UUID;
    last_used_at: Time | null;
    name: string;
    /** When it was made, or rotated last. */
    since: string;
  }[];
  client: {
    /** The headers that speak of another client. */
    forwarded: string[];
    /** Whom limits count by. */
    ip: string;
    /** Who is connected: the client, or a proxy. */
    peer: string;
    trusted_proxies: number;
    /** They count for nothing, as the peer is no trusted proxy. */
    unheeded: boolean;
  };
  feed: {
    /** Feeds of revocations that this instance follows. */
    following: number;
    looked_at: string | null;
  };
  keys: {
    alg: string;
    kid: string;
    signs: boolean;
  }[];
  mail: {
    /** Messages in this instance. */
    here: number;
    oldest: string | null;
    /** In the store, counted up to 10,000. */
    waiting: number | null;
  };
  /** By the clock of the instance that answers. */
  now: string;
  settings: {
    failing: boolean;
    read_at: string | null;
    revision: number;
  };
  store: {
    /** Seconds by which the store's clock is ahead. */
    ahead_by: number | null;
    now: string | null;
    response_seconds: number;
    schema_version: number | null;
  };
}

export interface Export {
  devices: {
    first_seen_at: Time;
    last_seen_at: Time;
  }[];
  events: Record<string, unknown>[];
  exported_at: Time;
  factors: {
    created_at: Time;
    enabled: boolean;
    id: UUID;
    kind: string;
    label: string | null;
    last_used_at: Time | null;
  }[];
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
}

export interface Held {
  created_at: Time;
  expires_at: Time;
}

/** An account at an outside provider. */
export interface Identity {
  created_at: Time;
  email: string | null;
  id: UUID;
  last_sign_in_at: Time | null;
  provider: string;
  subject: string;
}

export interface Impersonation {
  /** The operator. */
  actor_id: string;
  actor_session_id: UUID;
  created_at: Time;
  expires_at: Time;
  id: UUID;
  ip: string | null;
  reason: string;
  user_agent: string | null;
  user_id: UUID;
}

export interface Invitation {
  created_at: Time;
  email: string;
  expires_at: Time;
  /** It does not change when the invitation is sent again: each address has one. */
  id: string;
  /** Its creator. It works only while the creator may still create it. */
  invited_by: {
    id: string | null;
    kind: "user" | "key" | "system" | "external" | null;
    label: string | null;
    session_id: string | null;
  };
  /** The account's future app_metadata. */
  metadata: Record<string, unknown>;
  redirect_to: string | null;
  roles: string[];
  sent_at: Time;
}

export interface ListSetting {
  /** An option of the application says it: it cannot be changed here. */
  locked: boolean;
  locked_because?: string;
  source: "option" | "store" | "default";
  value: string[];
}

/** An API key with its secret text, which is shown only once. */
export interface NewAPIKey {
  adopted: boolean;
  cidrs: string[];
  created_at: Time;
  created_by: string | null;
  environment: string;
  expires_at: Time | null;
  id: UUID;
  /** Store it: the server does not. */
  key: string;
  kind: "secret" | "public";
  last_used_at: Time | null;
  name: string;
  previous_until: Time | null;
  revision: number;
  revoked_at: Time | null;
  rotated_at: Time | null;
  scopes: string[];
  status: "live" | "expired" | "revoked";
}

/** Notes of operators; users never see them. */
export type Notes = string;

export interface NumberSetting {
  /** An option of the application says it: it cannot be changed here. */
  locked: boolean;
  locked_because?: string;
  source: "option" | "store" | "default";
  value: number;
}

/** owner has no times. */
export interface Role {
  created_at: Time | null;
  description: string;
  name: string;
  permissions: string[];
  updated_at: Time | null;
}

export interface RoleChange {
  dry_run: boolean;
  role: Role;
  users: AdminTotal;
}

/** The state of a message, without its content. */
export interface SentMessage {
  /** Completed attempts since it was last queued. */
  attempts: number;
  channel: "mail" | "sms";
  created_at: Time;
  /** The error of the last failed attempt, without address, link and code. */
  error: string | null;
  /** The same in every attempt, and in the Message-ID. */
  id: string;
  /** The template: verify_email, magic_link, reset_password, … */
  kind: string;
  /** sent: accepted for delivery. failed: refused permanently, or too often. dropped: expired or obsolete before it was sent. */
  state: "queued" | "sent" | "failed" | "dropped";
  /** The email address or phone number, masked. */
  to: string;
  updated_at: Time;
  /** The recipient's account; null: none, or unknown. */
  user_id: string | null;
}

export interface SessionInfo {
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
}

export interface Sessions {
  sessions: SessionInfo[];
}

export interface SwitchSetting {
  /** An option of the application says it: it cannot be changed here. */
  locked: boolean;
  locked_because?: string;
  source: "option" | "store" | "default";
  value: boolean;
}

export interface TestResult {
  /** What was reached, or why it was not. */
  detail: string;
  ok: boolean;
  /** Not known yet: it is tried again for a while. */
  queued: boolean;
}

export interface TextSetting {
  /** An option of the application says it: it cannot be changed here. */
  locked: boolean;
  locked_because?: string;
  source: "option" | "store" | "default";
  value: string;
}

export interface TextsSetting {
  /** An option of the application says it: it cannot be changed here. */
  locked: boolean;
  locked_because?: string;
  source: "option" | "store" | "default";
  value: Record<string, string>;
}

/** RFC 3339 in UTC, at most microseconds. */
export type Time = string;

/** A UUID; new ones have version 7. */
export type UUID = string;

/** Unix seconds. */
export type UnixTime = number;

export interface User {
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
}
