// Written by scripts/admin.mjs from the document of the server. Do not edit.

/** What {@link AdminOperations} takes for POST /admin/check. */
export interface CheckInput {
  permission: string;
  userId: string;
}

/** What {@link AdminOperations} takes for GET /admin/overview. */
export interface OverviewInput {
  period?: "24h" | "7d" | "30d" | "90d" | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/stats. */
export interface StatsInput {
  /** Rounded to the interval. */
  from?: string | undefined;
  /** In UTC. At most 31 days by hour, 400 by day. */
  interval?: "hour" | "day" | undefined;
  /** Names separated by commas; absent: all. sign_ups, sign_ins, sign_in_failures, active_users, factors, messages_sent, messages_failed, limits_hit, tokens_reused, operations_denied */
  metrics?: string | undefined;
  /** Exclusive; absent: now. */
  to?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/users. */
export interface UsersListInput {
  /** Count all that match, exactly up to 10,000. */
  count?: "estimate" | undefined;
  createdFrom?: string | undefined;
  /** Exclusive. */
  createdTo?: string | undefined;
  /** A cursor of the same query; any other is refused. */
  cursor?: string | undefined;
  /** The complete address, in any case. */
  email?: string | undefined;
  /** Ids separated by commas; at most 200. */
  ids?: string | undefined;
  limit?: number | undefined;
  mfa?: boolean | undefined;
  order?: "asc" | "desc" | undefined;
  phone?: string | undefined;
  /** Accounts with an identity of this provider. */
  provider?: string | undefined;
  /** An id, the complete email address or phone number of an account, or else the start of an address or name; matched reports how it was read. */
  q?: string | undefined;
  role?: string | undefined;
  signedInFrom?: string | undefined;
  /** Exclusive. */
  signedInTo?: string | undefined;
  sort?: "created_at" | "last_sign_in_at" | "email" | undefined;
  /** invited: unconfirmed accounts without a password, which only a mailed link can sign in; they are shown as unconfirmed. */
  status?: "active" | "banned" | "unconfirmed" | "invited" | undefined;
  /** With provider: the subject of the identity. */
  subject?: string | undefined;
  /** By members of app_metadata, up to ten. */
  metadata?: Record<string, string | number | boolean | null> | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/users/lookup. */
export interface UsersLookupInput {
  email?: string | undefined;
  phone?: string | undefined;
  provider?: string | undefined;
  subject?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users. */
export interface UsersCreateInput {
  appMetadata?: Record<string, unknown> | undefined;
  email?: string | undefined;
  emailVerified?: boolean | undefined;
  fullName?: string | undefined;
  /** Absent: a new one. */
  id?: string | undefined;
  notes?: string | undefined;
  /** Absent: none. */
  password?: string | undefined;
  /** Instead of a password: argon2, bcrypt, scrypt or PBKDF2. */
  passwordHash?: string | undefined;
  phone?: string | undefined;
  phoneVerified?: boolean | undefined;
  roles?: string[] | undefined;
  /** verify: mail a verification link. invite: mail a link for seven days with which the owner chooses a password and verifies the address. */
  send?: "verify" | "invite" | undefined;
  userMetadata?: Record<string, unknown> | undefined;
}

/** What {@link AdminOperations} takes for PATCH /admin/users/{id}. */
export interface UsersUpdateInput {
  /** A merge patch (RFC 7396). */
  appMetadata?: Record<string, unknown> | undefined;
  email?: string | null | undefined;
  emailVerified?: boolean | undefined;
  fullName?: string | null | undefined;
  notes?: string | null | undefined;
  phone?: string | null | undefined;
  phoneVerified?: boolean | undefined;
  /** A merge patch (RFC 7396). */
  userMetadata?: Record<string, unknown> | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/delete. */
export interface UsersDeleteInput {
  reason: string;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/anonymize. */
export interface UsersAnonymizeInput {
  reason: string;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/ban. */
export interface UsersBanInput {
  reason: string;
  /** Absent: for ever. */
  until?: string | null | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/unban. */
export interface UsersUnbanInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/unlock. */
export interface UsersUnlockInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/password. */
export interface UsersSetPasswordInput {
  /** null removes it. */
  password: string | null;
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/users/{id}/factors. */
export interface UsersRemoveFactorsInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/users/{id}/factors/{factor}. */
export interface UsersRemoveFactorInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/users/{id}/identities/{identity}. */
export interface UsersUnlinkIdentityInput {
  /** Unlink it even if no sign-in method remains. */
  force?: boolean | undefined;
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/users/{id}/sessions. */
export interface UsersEndSessionsInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for PUT /admin/users/{id}/roles. */
export interface UsersSetRolesInput {
  reason?: string | undefined;
  roles: string[];
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/impersonate. */
export interface UsersImpersonateInput {
  reason: string;
  /** The browser's next page: the response has url instead of the token. */
  redirectTo?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/{id}/send. */
export interface UsersSendInput {
  redirectTo?: string | undefined;
  type: "verify" | "reset" | "magic_link" | "code" | "invite";
}

/** What {@link AdminOperations} takes for GET /admin/users/{id}/events. */
export interface UsersEventsInput {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/users/bulk. */
export interface UsersBulkInput {
  action: "ban" | "unban" | "delete" | "anonymize" | "revoke_sessions" | "add_role" | "remove_role" | "send";
  dryRun?: boolean | undefined;
  /** The filters of GET /admin/users, by name. */
  filter?: Record<string, string | boolean | number> | undefined;
  ids?: string[] | undefined;
  reason?: string | undefined;
  redirectTo?: string | undefined;
  /** For add_role and remove_role. */
  role?: string | undefined;
  /** The selection of a dry run; send only action with it. */
  selectionId?: string | undefined;
  /** For send. */
  type?: "" | "verify" | "reset" | "magic_link" | "code" | "invite" | undefined;
  /** For ban; absent: for ever. */
  until?: string | null | undefined;
}

/** One line of an import. */
export interface UsersImportRow {
  app_metadata?: Record<string, unknown>;
  banned_until?: string;
  created_at?: string;
  email?: string;
  email_verified?: boolean;
  email_verified_at?: string;
  full_name?: string;
  /** Any UUID; absent: a new one. */
  id?: string;
  identities?: {
    created_at?: string;
    email?: string;
    last_sign_in_at?: string;
    provider: string;
    subject: string;
  }[];
  last_sign_in_at?: string;
  /** argon2id, bcrypt, scrypt or PBKDF2, see ValidPasswordHash. */
  password_hash?: string;
  phone?: string;
  phone_verified?: boolean;
  phone_verified_at?: string;
  roles?: string[];
  /** Base32; six digits, SHA-1, 30 seconds. */
  totp_secret?: string;
  user_metadata?: Record<string, unknown>;
}

/** What {@link AdminOperations} takes for POST /admin/users/import. */
export interface UsersImportInput {
  /** The treatment of a row with the id, address, phone number or identity of an existing account. update: the account gets the row's values by the rules of the single operations, and keeps its identities, factor and times. */
  onConflict?: "error" | "skip" | "update" | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/users/export. */
export interface UsersExportInput {
  createdFrom?: string | undefined;
  /** Exclusive. */
  createdTo?: string | undefined;
  /** The complete address, in any case. */
  email?: string | undefined;
  /** Names separated by commas: id, email, email_verified_at, phone, phone_verified_at, full_name, status, roles, mfa_enabled, identities, user_metadata, app_metadata, created_at, updated_at, last_sign_in_at, banned_until, password_hash, totp_secret. Absent: all except the last two. */
  fields?: string | undefined;
  /** ndjson: one object per line. csv: with a header line, lists and objects as JSON; a cell that starts with =, +, -, @, a tab or a carriage return has an apostrophe before it. */
  format?: "ndjson" | "csv" | undefined;
  /** Ids separated by commas; at most 200. */
  ids?: string | undefined;
  mfa?: boolean | undefined;
  order?: "asc" | "desc" | undefined;
  phone?: string | undefined;
  /** Accounts with an identity of this provider. */
  provider?: string | undefined;
  /** An id, the complete email address or phone number of an account, or else the start of an address or name; matched reports how it was read. */
  q?: string | undefined;
  role?: string | undefined;
  signedInFrom?: string | undefined;
  /** Exclusive. */
  signedInTo?: string | undefined;
  sort?: "created_at" | "last_sign_in_at" | "email" | undefined;
  /** invited: unconfirmed accounts without a password, which only a mailed link can sign in; they are shown as unconfirmed. */
  status?: "active" | "banned" | "unconfirmed" | "invited" | undefined;
  /** With provider: the subject of the identity. */
  subject?: string | undefined;
  /** By members of app_metadata, up to ten. */
  metadata?: Record<string, string | number | boolean | null> | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/links. */
export interface LinksCreateInput {
  /** Instead of user_id. */
  email?: string | undefined;
  redirectTo?: string | undefined;
  /** invite: to choose a first password. */
  type: "verify" | "reset" | "magic_link" | "invite";
  userId?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/sessions. */
export interface SessionsListInput {
  aal?: "aal1" | "aal2" | undefined;
  /** Created before. */
  before?: string | undefined;
  /** A part of the user agent, in any case. It needs user, ip or since. */
  client?: string | undefined;
  cursor?: string | undefined;
  ip?: string | undefined;
  limit?: number | undefined;
  /** Created then or later. */
  since?: string | undefined;
  user?: string | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/sessions/{id}. */
export interface SessionsEndInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/sessions/revoke. */
export interface SessionsRevokeInput {
  all?: boolean | undefined;
  before?: string | undefined;
  ip?: string | undefined;
  reason?: string | undefined;
  userIds?: string[] | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/roles/{role}/users. */
export interface RolesUsersInput {
  cursor?: string | undefined;
  limit?: number | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/roles. */
export interface RolesCreateInput {
  description?: string | undefined;
  dryRun?: boolean | undefined;
  name: string;
  permissions?: string[] | undefined;
}

/** What {@link AdminOperations} takes for PATCH /admin/roles/{role}. */
export interface RolesUpdateInput {
  description?: string | undefined;
  dryRun?: boolean | undefined;
  permissions?: string[] | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/roles/{role}. */
export interface RolesDeleteInput {
  dryRun?: boolean | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/impersonations/{id}. */
export interface ImpersonationsEndInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/invitations. */
export interface InvitationsListInput {
  /** next_cursor of the previous page. */
  cursor?: string | undefined;
  /** The number of items. */
  limit?: number | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/invitations. */
export interface InvitationsCreateInput {
  email: string;
  /** Seconds; absent: seven days. */
  expiresIn?: number | null | undefined;
  /** Becomes the app_metadata of a new account. */
  metadata?: Record<string, unknown> | null | undefined;
  redirectTo?: string | undefined;
  roles?: string[] | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/messages. */
export interface MessagesListInput {
  /** next_cursor of the previous page. */
  cursor?: string | undefined;
  /** Created then or later. */
  from?: string | undefined;
  /** As in the response. */
  kind?: string | undefined;
  /** The number of items. */
  limit?: number | undefined;
  state?: "queued" | "sent" | "failed" | "dropped" | undefined;
  /** Created before. */
  to?: string | undefined;
  /** Messages for this account. */
  user?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/audit-logs. */
export interface AuditListInput {
  /** An event type, or a prefix: user.* */
  action?: string | undefined;
  /** The actor: the id of a user or key, or the name of code of the application. */
  actor?: string | undefined;
  cursor?: string | undefined;
  from?: string | undefined;
  ip?: string | undefined;
  limit?: number | undefined;
  outcome?: "done" | "denied" | "failed" | undefined;
  requestId?: string | undefined;
  /** The target: the id of an account, or a name, for example of a role. */
  target?: string | undefined;
  /** Exclusive. */
  to?: string | undefined;
  /** Events about or by this account. */
  user?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/audit-logs/export. */
export interface AuditExportInput {
  /** An event type, or a prefix: user.* */
  action?: string | undefined;
  /** The actor: the id of a user or key, or the name of code of the application. */
  actor?: string | undefined;
  /** ndjson: one AuditEvent per line. csv: with a header line; a cell that starts with =, +, -, @, a tab or a carriage return has an apostrophe before it. */
  format?: "ndjson" | "csv" | undefined;
  from?: string | undefined;
  ip?: string | undefined;
  outcome?: "done" | "denied" | "failed" | undefined;
  requestId?: string | undefined;
  /** The target: the id of an account, or a name, for example of a role. */
  target?: string | undefined;
  /** Exclusive. */
  to?: string | undefined;
  /** Events about or by this account. */
  user?: string | undefined;
}

/** What {@link AdminOperations} takes for GET /admin/keys. */
export interface KeysListInput {
  cursor?: string | undefined;
  kind?: "secret" | "public" | undefined;
  limit?: number | undefined;
  /** Without revoked and expired keys. */
  status?: "live" | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/keys. */
export interface KeysCreateInput {
  cidrs?: string[] | undefined;
  /** Part of the text, to tell keys apart. */
  environment?: string | undefined;
  /** Absent: never. */
  expiresAt?: string | null | undefined;
  kind?: "secret" | "public" | undefined;
  name: string;
  scopes?: string[] | undefined;
}

/** What {@link AdminOperations} takes for PATCH /admin/keys/{id}. */
export interface KeysUpdateInput {
  /** For owners: the key keeps working if its creator is banned, deleted or loses permissions. */
  adopted?: boolean | undefined;
  cidrs?: string[] | undefined;
  /** null: never. */
  expiresAt?: string | null | undefined;
  name?: string | undefined;
  scopes?: string[] | undefined;
}

/** What {@link AdminOperations} takes for DELETE /admin/keys/{id}. */
export interface KeysDeleteInput {
  reason?: string | undefined;
}

/** What {@link AdminOperations} takes for POST /admin/keys/{id}/rotate. */
export interface KeysRotateInput {
  /** Seconds for which the previous text keeps working. */
  overlap?: number | undefined;
}

/** What {@link AdminOperations} takes for PATCH /admin/settings. */
export interface SettingsUpdateInput {
  accountDeletion?: boolean | null | undefined;
  autoLinking?: boolean | null | undefined;
  /** Besides those of the options; only where the option is open. */
  corsOrigins?: string[] | null | undefined;
  emailConfirmationRequired?: boolean | null | undefined;
  /** Off: every endpoint is 404, but for /healthz, the admin side, and the sign-in of those who may change settings. */
  enabled?: boolean | null | undefined;
  magicLinkEnabled?: boolean | null | undefined;
  /** Everybody has to have a second factor. */
  mfaRequired?: boolean | null | undefined;
  /** Roles whose holders have to have a second factor. */
  mfaRequiredFor?: string[] | null | undefined;
  oauthEnabled?: boolean | null | undefined;
  passwordBreachCheck?: boolean | null | undefined;
  passwordEnabled?: boolean | null | undefined;
  /** At least 8. */
  passwordMinLength?: number | null | undefined;
  phoneEnabled?: boolean | null | undefined;
  /** Besides those of the options; only where the option is open. */
  redirectUrls?: string[] | null | undefined;
  /** The name of the application in messages and pages. */
  senderName?: string | null | undefined;
  /** Seconds. Can only be shortened, to 300 at least. */
  sessionIdleTimeout?: number | null | undefined;
  /** Seconds; 0: none. Can only be shortened, to 300 at least. */
  sessionLifetime?: number | null | undefined;
  signupEnabled?: boolean | null | undefined;
  /** What mails say besides their templates, by names such as magic_link.subject, magic_link.intro and footer, each with a language behind it, too (footer.de). Plain, and without links. */
  texts?: Record<string, string> | null | undefined;
  /** Off: no new second factors. */
  totpEnabled?: boolean | null | undefined;
}
