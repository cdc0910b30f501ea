// Written by scripts/admin.mjs from the document of the server. Do not edit.

import type { CallOptions, Pages, Result, Rows } from "./call.js";
import type { CheckInput, OverviewInput, StatsInput, UsersListInput, UsersLookupInput, UsersCreateInput, UsersUpdateInput, UsersDeleteInput, UsersAnonymizeInput, UsersBanInput, UsersUnbanInput, UsersUnlockInput, UsersSetPasswordInput, UsersRemoveFactorsInput, UsersRemoveFactorInput, UsersUnlinkIdentityInput, UsersEndSessionsInput, UsersSetRolesInput, UsersImpersonateInput, UsersSendInput, UsersEventsInput, UsersBulkInput, UsersImportRow, UsersImportInput, UsersExportInput, LinksCreateInput, SessionsListInput, SessionsEndInput, SessionsRevokeInput, RolesUsersInput, RolesCreateInput, RolesUpdateInput, RolesDeleteInput, ImpersonationsEndInput, InvitationsListInput, InvitationsCreateInput, MessagesListInput, AuditListInput, AuditExportInput, KeysListInput, KeysCreateInput, KeysUpdateInput, KeysDeleteInput, KeysRotateInput, SettingsUpdateInput } from "./inputs.js";
import type { APIKey, AdminAccount, AdminActor, AdminFactor, AdminJob, AdminJobID, AdminMetric, AdminRowResult, AdminSettings, AdminTotal, AdminUser, AuditEvent, Cursor, Diagnostics, Export, Impersonation, Invitation, NewAPIKey, Role, RoleChange, SentMessage, SessionInfo, Sessions, TestResult, Time, UUID } from "./wire.js";

/** Every operation of the admin side. */
export interface AdminOperations {
  /**
   * The caller on the admin side.
   *
   * `GET /admin/me`
   */
  me(options?: CallOptions): Promise<Result<{
    actor: AdminActor;
    impersonating: boolean;
    permissions: string[];
    user: AdminUser | null;
  }>>;
  /**
   * List the declared permissions.
   *
   * auth.roles.read
   *
   * `GET /admin/permissions`
   */
  permissions(options?: CallOptions): Promise<Result<{
    permissions: {
      description: string;
      name: string;
      privileged: boolean;
    }[];
  }>>;
  /**
   * Check a permission of a user.
   *
   * By the current roles. auth.roles.read
   *
   * `POST /admin/check`
   */
  check(input: CheckInput, options?: CallOptions): Promise<Result<{
    allowed: boolean;
    via: string[];
  }>>;
  /**
   * The state of the service.
   *
   * auth.stats.read
   *
   * `GET /admin/overview`
   */
  overview(input?: OverviewInput, options?: CallOptions): Promise<Result<{
    /** Accounts that were active today, this week (from Monday) and this month, in UTC. */
    active_users: {
      day: number;
      month: number;
      week: number;
    };
    figures: {
      before: number;
      count: number;
      label: string;
      metric: AdminMetric;
    }[];
    from: Time;
    to: Time;
    totals: {
      banned: AdminTotal;
      users: AdminTotal;
      with_factor: AdminTotal;
    };
    warnings: {
      code: "messages_failing" | "limits_hit" | "tokens_reused" | "events_lost" | "keys_ageing";
      count: number;
    }[];
  }>>;
  /**
   * Figures over time.
   *
   * Each instance counts in memory and stores the figures every ten seconds. Labels are the method or provider (sign_ups, sign_ins), the error code (sign_in_failures), the kind (messages_sent, messages_failed), enabled or disabled (factors), and day, week or month (active_users: accounts that were active in it, at its start). auth.stats.read
   *
   * `GET /admin/stats`
   */
  stats(input?: StatsInput, options?: CallOptions): Promise<Result<{
    from: Time;
    interval: "hour" | "day";
    series: {
      label: string;
      metric: AdminMetric;
      points: {
        at: Time;
        count: number;
      }[];
    }[];
    to: Time;
  }>>;
  /**
   * How the service is doing.
   *
   * As the instance that answers sees it. auth.settings.read
   *
   * `GET /admin/diagnostics`
   */
  diagnostics(options?: CallOptions): Promise<Result<Diagnostics>>;
  readonly users: {
    /**
     * Accounts.
     *
     * All filters must match. metadata.<name>=<value> matches a member of app_metadata, up to ten of them: its value is that text, or the number, true, false or null with that spelling. Filters that would read too much together: 422 query_too_broad. auth.users.read
     *
     * `GET /admin/users`
     */
    list(input?: UsersListInput, options?: CallOptions): Pages<{
      count: {
        exact: boolean;
        users: number;
      } | null;
      /** How q was read. */
      matched: "id" | "email" | "phone" | "prefix" | null;
      next_cursor: Cursor;
      users: AdminUser[];
    }, AdminUser>;
    /**
     * Look up an account.
     *
     * One of: an email address (in any case), a phone number, or provider and subject. auth.users.read
     *
     * `GET /admin/users/lookup`
     */
    lookup(input?: UsersLookupInput, options?: CallOptions): Promise<Result<AdminAccount>>;
    /**
     * One account.
     *
     * auth.users.read
     *
     * `GET /admin/users/{id}`
     */
    get(id: string, options?: CallOptions): Promise<Result<AdminAccount>>;
    /**
     * Create an account.
     *
     * With an email address, a phone number, or both. password, password_hash and true verified flags also need auth.credentials; roles also need auth.roles.assign and the permissions of the roles. Either needs a sign-in within the last 15 minutes. auth.users.write
     *
     * `POST /admin/users`
     */
    create(input: UsersCreateInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Edit an account.
     *
     * Absent members keep their values. email, phone and the verified flags also need auth.credentials and a sign-in within the last 15 minutes. A new address or phone number is unverified unless its flag says otherwise; the former and the new address are notified. Operators cannot change their own app_metadata or sign-in methods. auth.users.write
     *
     * `PATCH /admin/users/{id}`
     */
    update(id: string, input: UsersUpdateInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Delete an account.
     *
     * With all its data except its rows of the audit log. auth.users.delete
     *
     * `POST /admin/users/{id}/delete`
     */
    delete(id: string, input: UsersDeleteInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Anonymise an account.
     *
     * Removes everything that identifies its owner, permanently, also from the audit log; the id remains. The account can never sign in again. The reason remains in the audit log, so write no name into it. auth.users.delete
     *
     * `POST /admin/users/{id}/anonymize`
     */
    anonymize(id: string, input: UsersAnonymizeInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Export a user's data.
     *
     * The document of GET /me/export, for a request under data protection law. Other persons who acted are left out. The export itself is recorded. Needs a sign-in within the last 15 minutes. auth.users.export
     *
     * `GET /admin/users/{id}/export`
     */
    exportData(id: string, options?: CallOptions): Promise<Result<Export>>;
    /**
     * Ban an account.
     *
     * Its sessions end. auth.users.ban
     *
     * `POST /admin/users/{id}/ban`
     */
    ban(id: string, input: UsersBanInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Lift a ban.
     *
     * auth.users.ban
     *
     * `POST /admin/users/{id}/unban`
     */
    unban(id: string, input?: UsersUnbanInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Reset the limits on failures.
     *
     * The limits of passwords, codes and second factors, for all names and devices of the account. auth.users.ban
     *
     * `POST /admin/users/{id}/unlock`
     */
    unlock(id: string, input?: UsersUnlockInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Set or remove a password.
     *
     * All sessions of the account end, and its owner is notified by mail. Needs a sign-in within the last 15 minutes. auth.credentials
     *
     * `POST /admin/users/{id}/password`
     */
    setPassword(id: string, input: UsersSetPasswordInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * List an account's second factors.
     *
     * auth.users.read
     *
     * `GET /admin/users/{id}/factors`
     */
    factors(id: string, options?: CallOptions): Promise<Result<{
      factors: AdminFactor[];
    }>>;
    /**
     * Remove all second factors of an account.
     *
     * The recovery codes are removed too. The owner is notified by mail. Needs a sign-in within the last 15 minutes. auth.credentials
     *
     * `DELETE /admin/users/{id}/factors`
     */
    removeFactors(id: string, input?: UsersRemoveFactorsInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Remove one second factor of an account.
     *
     * Like DELETE /admin/users/{id}/factors. auth.credentials
     *
     * `DELETE /admin/users/{id}/factors/{factor}`
     */
    removeFactor(id: string, factor: string, input?: UsersRemoveFactorInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Unlink an identity from an account.
     *
     * Its owner is notified by mail. Needs a sign-in within the last 15 minutes. auth.credentials
     *
     * `DELETE /admin/users/{id}/identities/{identity}`
     */
    unlinkIdentity(id: string, identity: string, input?: UsersUnlinkIdentityInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * List a user's live sessions.
     *
     * Newest first. auth.sessions.read
     *
     * `GET /admin/users/{id}/sessions`
     */
    sessions(id: string, options?: CallOptions): Promise<Result<Sessions>>;
    /**
     * Sign a user out everywhere.
     *
     * auth.sessions.revoke
     *
     * `DELETE /admin/users/{id}/sessions`
     */
    endSessions(id: string, input?: UsersEndSessionsInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Set the roles of a user.
     *
     * Only roles with permissions of the caller. Needs a sign-in within the last 15 minutes. auth.roles.assign
     *
     * `PUT /admin/users/{id}/roles`
     */
    setRoles(id: string, input: UsersSetRolesInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Give a role to a user.
     *
     * Like PUT /admin/users/{id}/roles. auth.roles.assign
     *
     * `POST /admin/users/{id}/roles/{role}`
     */
    addRole(id: string, role: string, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Take a role from a user.
     *
     * Like PUT /admin/users/{id}/roles. auth.roles.assign
     *
     * `DELETE /admin/users/{id}/roles/{role}`
     */
    removeRole(id: string, role: string, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Impersonate a user.
     *
     * For at most 15 minutes, while the operator's own session is live, without refresh. The token opens the application's own routes, GET /me, GET /sessions and POST /logout. The operator needs all of the account's permissions and one more (owners do not need one more), and a sign-in within the last 15 minutes. auth.impersonate
     *
     * `POST /admin/users/{id}/impersonate`
     */
    impersonate(id: string, input: UsersImpersonateInput, options?: CallOptions): Promise<Result<{
      access_token?: string;
      expires_in?: number;
      session_id: UUID;
      /** redirect_to with a code for POST /exchange, valid for a minute. */
      url?: string;
    }>>;
    /**
     * Send a link or code to a user.
     *
     * To the account's own email address, or its phone number (code). It counts against the recipient's limits. auth.messages.send
     *
     * `POST /admin/users/{id}/send`
     */
    send(id: string, input: UsersSendInput, options?: CallOptions): Promise<Result<{
      message_id: UUID;
    }>>;
    /**
     * The timeline of an account.
     *
     * Events about and by the account, newest first; also of a deleted account. auth.audit.read
     *
     * `GET /admin/users/{id}/events`
     */
    events(id: string, input?: UsersEventsInput, options?: CallOptions): Pages<{
      events: AuditEvent[];
      next_cursor: Cursor;
    }, AuditEvent>;
    /**
     * Apply an action to many accounts.
     *
     * With ids: to these accounts, in order. An account that the operator may not change is skipped, and a failure does not stop the others. With filter: to up to 10,000 accounts, in two requests. dry_run reports the outcome for each account and returns a selection; the second request with its id applies the action in the background, to exactly these accounts. A filter needs a sign-in within the last 15 minutes, and one that matches all accounts needs the permission *. Also needs the permission and conditions of the action's own operation.
     *
     * `POST /admin/users/bulk`
     */
    bulk(input: UsersBulkInput, options?: CallOptions): Promise<Result<{
      done: number;
      dry_run: boolean;
      expires_at: Time | null;
      failed: number;
      results: AdminRowResult[];
      selection_id: string | null;
      skipped: number;
    } | AdminJobID>>;
    /**
     * Import accounts.
     *
     * One account per line, up to 256 KiB each, a million lines and 4 GiB in all; an actor may start 120 imports and dry runs of selections an hour. The import runs in the background after the last line has arrived, and never before. A failed row does not stop the others. A hash, an identity, a TOTP secret or a verified flag also needs auth.credentials, roles need auth.roles.assign and their permissions, a ban needs auth.users.ban. No messages are sent, except notices of updates. Needs a sign-in within the last 15 minutes. auth.users.import
     *
     * `POST /admin/users/import`
     */
    import(rows: Rows<UsersImportRow>, input?: UsersImportInput, options?: CallOptions): Promise<Result<AdminJobID>>;
    /**
     * Export accounts.
     *
     * All accounts that match the filters of GET /admin/users, as they are when they are read. password_hash and totp_secret appear only if fields names them, which also needs auth.credentials. They are empty, with secrets_withheld true, for the operator's own account and for accounts that are not weaker. The export itself is recorded in the audit log. An interrupted connection means that the rest is missing. Needs a sign-in within the last 15 minutes. auth.users.export
     *
     * `GET /admin/users/export`
     */
    export(input?: UsersExportInput, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly jobs: {
    /**
     * Read a job.
     *
     * A job survives the crash of its process. It acts with the permissions of its creator, while the creator is signed in. Needs the permission of its operation.
     *
     * `GET /admin/jobs/{id}`
     */
    get(id: string, options?: CallOptions): Promise<Result<AdminJob>>;
    /**
     * Read the results of a job.
     *
     * The completed rows in their order, one AdminRowResult per line. Needs the permission of its operation.
     *
     * `GET /admin/jobs/{id}/results`
     */
    results(id: string, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly links: {
    /**
     * Create a link for a user.
     *
     * A link to pass on to the account's owner. It works like the mailed link of the type, and replaces it. Only for accounts with fewer permissions than the operator. Needs a sign-in within the last 15 minutes. The audit log records its creator, not the link. auth.credentials
     *
     * `POST /admin/links`
     */
    create(input: LinksCreateInput, options?: CallOptions): Promise<Result<{
      expires_at: Time;
      url: string;
    }>>;
  };
  readonly sessions: {
    /**
     * List live sessions.
     *
     * Newest first. All filters must match. auth.sessions.read
     *
     * `GET /admin/sessions`
     */
    list(input?: SessionsListInput, options?: CallOptions): Pages<{
      next_cursor: Cursor;
      sessions: {
        session: SessionInfo;
        user_id: UUID;
      }[];
    }, {
      session: SessionInfo;
      user_id: UUID;
    }>;
    /**
     * End a session.
     *
     * auth.sessions.revoke
     *
     * `DELETE /admin/sessions/{id}`
     */
    end(id: string, input?: SessionsEndInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * End sessions of several accounts.
     *
     * Sessions of these accounts, from this IP address, created before a time: all given conditions must match. At most 1000 accounts in one call. Accounts that the operator may not change are skipped, and the operator's own session remains. all ends the sessions of all users, with their access tokens; it stands alone and needs the permission * and a sign-in within the last 15 minutes. before alone also needs such a sign-in, and is the same as all if it is in the future. auth.sessions.revoke
     *
     * `POST /admin/sessions/revoke`
     */
    revoke(input: SessionsRevokeInput, options?: CallOptions): Promise<Result<{
      ended: number;
      /** There may be more: repeat the request. */
      more: boolean;
      /** Accounts that the operator may not change, or that are deleted. */
      skipped: number;
      /** The accounts of the ended sessions. */
      users: number;
    }>>;
  };
  readonly roles: {
    /**
     * List the roles.
     *
     * Without owner, which permits everything. auth.roles.read
     *
     * `GET /admin/roles`
     */
    list(options?: CallOptions): Promise<Result<{
      revision: number;
      roles: Role[];
    }>>;
    /**
     * The matrix of roles and permissions.
     *
     * Each declared permission with the roles that hold it, by its name or a pattern. auth.roles.read
     *
     * `GET /admin/roles/matrix`
     */
    matrix(options?: CallOptions): Promise<Result<{
      permissions: {
        description: string;
        held_by: {
          role: string;
          /** The permission itself, or the pattern that covers it. */
          via: string;
        }[];
        name: string;
        privileged: boolean;
      }[];
      revision: number;
      /** owner, and the others by name. */
      roles: string[];
    }>>;
    /**
     * Read a role.
     *
     * Also owner. The ETag is the revision of the table of roles. auth.roles.read
     *
     * `GET /admin/roles/{role}`
     */
    get(role: string, options?: CallOptions): Promise<Result<Role>>;
    /**
     * List the holders of a role.
     *
     * Only their identities; GET /admin/users?role= returns accounts. auth.roles.read
     *
     * `GET /admin/roles/{role}/users`
     */
    users(role: string, input?: RolesUsersInput, options?: CallOptions): Pages<{
      next_cursor: Cursor;
      users: {
        banned: boolean;
        id: UUID;
        label: string;
      }[];
    }, {
      banned: boolean;
      id: UUID;
      label: string;
    }>;
    /**
     * Create a role.
     *
     * Only with permissions of the caller. An existing name: 422 validation_failed. With dry_run it is checked, and nothing changes (200). Needs a sign-in within the last 15 minutes. auth.roles.write
     *
     * `POST /admin/roles`
     */
    create(input: RolesCreateInput, options?: CallOptions): Promise<Result<RoleChange>>;
    /**
     * Change a role.
     *
     * Absent members keep their values. Only with permissions of the caller. With dry_run it is checked, and nothing changes. Needs a sign-in within the last 15 minutes. auth.roles.write
     *
     * `PATCH /admin/roles/{role}`
     */
    update(role: string, input: RolesUpdateInput, options?: CallOptions): Promise<Result<RoleChange>>;
    /**
     * Delete a role without holders.
     *
     * With dry_run=true it is checked, and nothing changes. Needs a sign-in within the last 15 minutes. auth.roles.write
     *
     * `DELETE /admin/roles/{role}`
     */
    delete(role: string, input?: RolesDeleteInput, options?: CallOptions): Promise<Result<RoleChange>>;
  };
  readonly impersonations: {
    /**
     * List impersonations.
     *
     * The live ones, newest first, at most 1000. auth.impersonate
     *
     * `GET /admin/impersonations`
     */
    list(options?: CallOptions): Promise<Result<{
      impersonations: Impersonation[];
    }>>;
    /**
     * End an impersonation.
     *
     * auth.impersonate
     *
     * `DELETE /admin/impersonations/{id}`
     */
    end(id: string, input?: ImpersonationsEndInput, options?: CallOptions): Promise<Result<null>>;
  };
  readonly invitations: {
    /**
     * List pending invitations.
     *
     * Newest first, without accepted and expired ones. auth.users.read
     *
     * `GET /admin/invitations`
     */
    list(input?: InvitationsListInput, options?: CallOptions): Pages<{
      invitations: Invitation[];
      next_cursor: Cursor;
    }, Invitation>;
    /**
     * Invite a user.
     *
     * Mails a link that creates an account and works once. It replaces an older invitation to the address. Roles also need auth.roles.assign, their permissions and a sign-in within the last 15 minutes. auth.users.write
     *
     * `POST /admin/invitations`
     */
    create(input: InvitationsCreateInput, options?: CallOptions): Promise<Result<Invitation>>;
    /**
     * Send an invitation again.
     *
     * With a new link; the old one stops working. The caller becomes its creator and needs the same permissions as for a new invitation. auth.users.write
     *
     * `POST /admin/invitations/{id}/resend`
     */
    resend(id: string, options?: CallOptions): Promise<Result<Invitation>>;
    /**
     * Withdraw an invitation.
     *
     * An invitation with roles needs the permission to give them. auth.users.write
     *
     * `DELETE /admin/invitations/{id}`
     */
    delete(id: string, options?: CallOptions): Promise<Result<null>>;
  };
  readonly messages: {
    /**
     * List messages.
     *
     * The messages of the last seven days, newest first: sent, waiting, failed and dropped. All filters must match. auth.messages.read
     *
     * `GET /admin/messages`
     */
    list(input?: MessagesListInput, options?: CallOptions): Pages<{
      messages: SentMessage[];
      next_cursor: Cursor;
    }, SentMessage>;
    /**
     * Send a failed message again.
     *
     * The same message under the same id, within 24 hours and while its link or code is valid. It counts against the recipient's limits of messages by operators. A message that was sent, waits, was dropped or has expired: 422 validation_failed. auth.messages.send
     *
     * `POST /admin/messages/{id}/retry`
     */
    retry(id: string, options?: CallOptions): Promise<Result<{
      message_id: UUID;
    }>>;
  };
  readonly audit: {
    /**
     * Search the audit log.
     *
     * Newest first. All filters must match. Refused and failed operations appear about a second later. auth.audit.read
     *
     * `GET /admin/audit-logs`
     */
    list(input?: AuditListInput, options?: CallOptions): Pages<{
      events: AuditEvent[];
      next_cursor: Cursor;
    }, AuditEvent>;
    /**
     * One event of the audit log.
     *
     * auth.audit.read
     *
     * `GET /admin/audit-logs/{id}`
     */
    get(id: string, options?: CallOptions): Promise<Result<AuditEvent>>;
    /**
     * Export the audit log.
     *
     * All events that match the filters of GET /admin/audit-logs, newest first, streamed. The export itself is recorded in the audit log. An interrupted connection means that the rest is missing. Needs a sign-in within the last 15 minutes. auth.audit.export
     *
     * `GET /admin/audit-logs/export`
     */
    export(input?: AuditExportInput, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly keys: {
    /**
     * List API keys.
     *
     * Newest first, without their secret texts. auth.keys.read
     *
     * `GET /admin/keys`
     */
    list(input?: KeysListInput, options?: CallOptions): Pages<{
      keys: APIKey[];
      next_cursor: Cursor;
    }, APIKey>;
    /**
     * Create an API key.
     *
     * With permissions of the creator, while the creator has them. Needs a sign-in within the last 15 minutes. auth.keys.write
     *
     * `POST /admin/keys`
     */
    create(input: KeysCreateInput, options?: CallOptions): Promise<Result<NewAPIKey>>;
    /**
     * Change an API key.
     *
     * Absent members keep their values. The caller needs all permissions of the key; keys of the service are for owners. Needs a sign-in within the last 15 minutes. auth.keys.write
     *
     * `PATCH /admin/keys/{id}`
     */
    update(id: string, input: KeysUpdateInput, options?: CallOptions): Promise<Result<APIKey>>;
    /**
     * Revoke an API key.
     *
     * Permanently; the key remains in the list. A secret key stops at once, a public one within a second. Needs a sign-in within the last 15 minutes. auth.keys.write
     *
     * `DELETE /admin/keys/{id}`
     */
    delete(id: string, input?: KeysDeleteInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Rotate an API key.
     *
     * For its creator or an owner. Of two simultaneous rotations one succeeds, and the other gets 412. Needs a sign-in within the last 15 minutes. auth.keys.write
     *
     * `POST /admin/keys/{id}/rotate`
     */
    rotate(id: string, input?: KeysRotateInput, options?: CallOptions): Promise<Result<NewAPIKey>>;
  };
  readonly settings: {
    /**
     * The settings.
     *
     * As the store and the options make them. auth.settings.read
     *
     * `GET /admin/settings`
     */
    get(options?: CallOptions): Promise<Result<AdminSettings>>;
    /**
     * Change settings.
     *
     * All that are named or none; null takes back what was said here. In force in every instance within a second. Needs a proof of the last 15 minutes. auth.settings.write
     *
     * `PATCH /admin/settings`
     */
    update(input: SettingsUpdateInput, options?: CallOptions): Promise<Result<AdminSettings>>;
    /**
     * Try out the mailer.
     *
     * Sends a mail to one's own address, and waits up to ten seconds for the first attempt. Needs a proof of the last 15 minutes. auth.settings.write
     *
     * `POST /admin/settings/test-mail`
     */
    testMail(options?: CallOptions): Promise<Result<TestResult>>;
    /**
     * Try out the text messages.
     *
     * Sends a text to one's own number, and waits up to ten seconds for the first attempt. Needs a proof of the last 15 minutes. auth.settings.write
     *
     * `POST /admin/settings/test-sms`
     */
    testSms(options?: CallOptions): Promise<Result<TestResult>>;
    /**
     * Try out a provider.
     *
     * Reads its discovery document and its keys. Needs a proof of the last 15 minutes. auth.settings.write
     *
     * `POST /admin/settings/test-provider/{name}`
     */
    testProvider(name: string, options?: CallOptions): Promise<Result<TestResult>>;
  };
}

/** How each is called: verb, path, where its input goes; then "stream", or what the items of a page are called. */
export const operations = {
  me: "GET /admin/me none",
  permissions: "GET /admin/permissions none",
  check: "POST /admin/check body",
  overview: "GET /admin/overview query",
  stats: "GET /admin/stats query",
  diagnostics: "GET /admin/diagnostics none",
  users: {
    list: "GET /admin/users query users",
    lookup: "GET /admin/users/lookup query",
    get: "GET /admin/users/{id} none",
    create: "POST /admin/users body",
    update: "PATCH /admin/users/{id} body",
    delete: "POST /admin/users/{id}/delete body",
    anonymize: "POST /admin/users/{id}/anonymize body",
    exportData: "GET /admin/users/{id}/export none",
    ban: "POST /admin/users/{id}/ban body",
    unban: "POST /admin/users/{id}/unban body",
    unlock: "POST /admin/users/{id}/unlock body",
    setPassword: "POST /admin/users/{id}/password body",
    factors: "GET /admin/users/{id}/factors none",
    removeFactors: "DELETE /admin/users/{id}/factors body",
    removeFactor: "DELETE /admin/users/{id}/factors/{factor} body",
    unlinkIdentity: "DELETE /admin/users/{id}/identities/{identity} body",
    sessions: "GET /admin/users/{id}/sessions none",
    endSessions: "DELETE /admin/users/{id}/sessions body",
    setRoles: "PUT /admin/users/{id}/roles body",
    addRole: "POST /admin/users/{id}/roles/{role} none",
    removeRole: "DELETE /admin/users/{id}/roles/{role} none",
    impersonate: "POST /admin/users/{id}/impersonate body",
    send: "POST /admin/users/{id}/send body",
    events: "GET /admin/users/{id}/events query events",
    bulk: "POST /admin/users/bulk body",
    import: "POST /admin/users/import rows",
    export: "GET /admin/users/export query stream",
  },
  jobs: {
    get: "GET /admin/jobs/{id} none",
    results: "GET /admin/jobs/{id}/results none stream",
  },
  links: {
    create: "POST /admin/links body",
  },
  sessions: {
    list: "GET /admin/sessions query sessions",
    end: "DELETE /admin/sessions/{id} body",
    revoke: "POST /admin/sessions/revoke body",
  },
  roles: {
    list: "GET /admin/roles none",
    matrix: "GET /admin/roles/matrix none",
    get: "GET /admin/roles/{role} none",
    users: "GET /admin/roles/{role}/users query users",
    create: "POST /admin/roles body",
    update: "PATCH /admin/roles/{role} body",
    delete: "DELETE /admin/roles/{role} query",
  },
  impersonations: {
    list: "GET /admin/impersonations none",
    end: "DELETE /admin/impersonations/{id} body",
  },
  invitations: {
    list: "GET /admin/invitations query invitations",
    create: "POST /admin/invitations body",
    resend: "POST /admin/invitations/{id}/resend none",
    delete: "DELETE /admin/invitations/{id} none",
  },
  messages: {
    list: "GET /admin/messages query messages",
    retry: "POST /admin/messages/{id}/retry none",
  },
  audit: {
    list: "GET /admin/audit-logs query events",
    get: "GET /admin/audit-logs/{id} none",
    export: "GET /admin/audit-logs/export query stream",
  },
  keys: {
    list: "GET /admin/keys query keys",
    create: "POST /admin/keys body",
    update: "PATCH /admin/keys/{id} body",
    delete: "DELETE /admin/keys/{id} body",
    rotate: "POST /admin/keys/{id}/rotate body",
  },
  settings: {
    get: "GET /admin/settings none",
    update: "PATCH /admin/settings body",
    testMail: "POST /admin/settings/test-mail none",
    testSms: "POST /admin/settings/test-sms none",
    testProvider: "POST /admin/settings/test-provider/{name} none",
  },
} as const;

/** Members whose own members are the application's, and keep their names. */
export const open: readonly string[] = ["app_metadata","metadata","texts","user_metadata"];
