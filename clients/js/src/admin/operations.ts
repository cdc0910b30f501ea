// Written by scripts/admin.mjs from the document of the server. Do not edit.

import type { CallOptions, Pages, Result, Rows } from "./call.js";
import type { CheckInput, OverviewInput, StatsInput, UsersListInput, UsersLookupInput, UsersCreateInput, UsersUpdateInput, UsersDeleteInput, UsersAnonymizeInput, UsersBanInput, UsersUnbanInput, UsersUnlockInput, UsersSetPasswordInput, UsersRemoveFactorsInput, UsersRemoveFactorInput, UsersUnlinkIdentityInput, UsersEndSessionsInput, UsersSetRolesInput, UsersImpersonateInput, UsersSendInput, UsersEventsInput, UsersBulkInput, UsersImportRow, UsersImportInput, UsersExportInput, LinksCreateInput, SessionsListInput, SessionsEndInput, SessionsRevokeInput, RolesUsersInput, RolesCreateInput, RolesUpdateInput, RolesDeleteInput, ImpersonationsEndInput, InvitationsListInput, InvitationsCreateInput, MessagesListInput, AuditListInput, AuditExportInput, KeysListInput, KeysCreateInput, KeysUpdateInput, KeysDeleteInput, KeysRotateInput, SettingsUpdateInput } from "./inputs.js";
import type { APIKey, AdminAccount, AdminActor, AdminFactor, AdminJob, AdminJobID, AdminMetric, AdminRowResult, AdminSettings, AdminTotal, AdminUser, AuditEvent, Cursor, Diagnostics, Export, Impersonation, Invitation, NewAPIKey, Role, RoleChange, SentMessage, SessionInfo, Sessions, TestResult, Time, UUID } from "./wire.js";

/** Every operation of the admin side. */
export interface AdminOperations {
  /**
   * Who one is on the admin side.
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
   * The permissions that are declared.
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
   * May somebody do something?.
   *
   * By the roles as they are now. auth.roles.read
   *
   * `POST /admin/check`
   */
  check(input: CheckInput, options?: CallOptions): Promise<Result<{
    allowed: boolean;
    via: string[];
  }>>;
  /**
   * How the service is.
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
   * Counted by each instance and added every ten seconds. Labels are the method or provider (sign_ups, sign_ins), the error code (sign_in_failures), the kind (messages_sent, messages_failed), enabled or disabled (factors), and day, week or month (active_users: accounts that were active in it, at its begin). auth.stats.read
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
     * Filters have to hold together. metadata.<name>=<value> picks by a member of app_metadata, up to ten of them: its value is that text, or the number, true, false or null that it spells. Filters that would read too much together: 422 query_too_broad. auth.users.read
     *
     * `GET /admin/users`
     */
    list(input?: UsersListInput, options?: CallOptions): Pages<{
      count: {
        exact: boolean;
        users: number;
      } | null;
      /** What q was taken for. */
      matched: "id" | "email" | "phone" | "prefix" | null;
      next_cursor: Cursor;
      users: AdminUser[];
    }, AdminUser>;
    /**
     * The one account that has a value.
     *
     * An address (whatever its case), a number, or provider and subject: one of them. auth.users.read
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
     * Make an account.
     *
     * With an address, a number, or both. password, password_hash and true verified flags need auth.credentials, too, roles need auth.roles.assign and the permissions of the roles, and either needs a proof of the last 15 minutes. auth.users.write
     *
     * `POST /admin/users`
     */
    create(input: UsersCreateInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Edit an account.
     *
     * Absent members stay. email, phone and the verified flags need auth.credentials and a proof of the last 15 minutes, too; a new address or number is not verified unless that is said with it, and whoever has the former and the new address is told. Nobody writes their own app_metadata or ways in. auth.users.write
     *
     * `PATCH /admin/users/{id}`
     */
    update(id: string, input: UsersUpdateInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Delete an account.
     *
     * With everything of it but its rows of the audit log. auth.users.delete
     *
     * `POST /admin/users/{id}/delete`
     */
    delete(id: string, input: UsersDeleteInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Make an account nobody's.
     *
     * Whatever tells who it was of goes, for good, also from the audit log; the id stays. Nobody signs in to it any more. The reason stays in the audit log: name nobody there. auth.users.delete
     *
     * `POST /admin/users/{id}/anonymize`
     */
    anonymize(id: string, input: UsersAnonymizeInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Everything that is held about somebody.
     *
     * What GET /me/export has, for a request under data protection law. Who else acted is left out. It is recorded itself. Needs a proof of the last 15 minutes. auth.users.export
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
     * Clear the limits on failures.
     *
     * Those of passwords, codes and second factors, whatever the name and device. auth.users.ban
     *
     * `POST /admin/users/{id}/unlock`
     */
    unlock(id: string, input?: UsersUnlockInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Set or remove somebody's password.
     *
     * All their sessions end, and they are told by mail. Needs a proof of the last 15 minutes. auth.credentials
     *
     * `POST /admin/users/{id}/password`
     */
    setPassword(id: string, input: UsersSetPasswordInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Somebody's second factors.
     *
     * auth.users.read
     *
     * `GET /admin/users/{id}/factors`
     */
    factors(id: string, options?: CallOptions): Promise<Result<{
      factors: AdminFactor[];
    }>>;
    /**
     * Remove all of somebody's second factors.
     *
     * With their recovery codes. They are told by mail. Needs a proof of the last 15 minutes. auth.credentials
     *
     * `DELETE /admin/users/{id}/factors`
     */
    removeFactors(id: string, input?: UsersRemoveFactorsInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Remove one of somebody's second factors.
     *
     * As DELETE /admin/users/{id}/factors. auth.credentials
     *
     * `DELETE /admin/users/{id}/factors/{factor}`
     */
    removeFactor(id: string, factor: string, input?: UsersRemoveFactorInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Take an identity off an account.
     *
     * Its owner is told by mail. Needs a proof of the last 15 minutes. auth.credentials
     *
     * `DELETE /admin/users/{id}/identities/{identity}`
     */
    unlinkIdentity(id: string, identity: string, input?: UsersUnlinkIdentityInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Somebody's live sessions.
     *
     * Newest first. auth.sessions.read
     *
     * `GET /admin/users/{id}/sessions`
     */
    sessions(id: string, options?: CallOptions): Promise<Result<Sessions>>;
    /**
     * Sign somebody out everywhere.
     *
     * auth.sessions.revoke
     *
     * `DELETE /admin/users/{id}/sessions`
     */
    endSessions(id: string, input?: UsersEndSessionsInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Say which roles somebody has.
     *
     * Only roles whose permissions one has. Needs a proof of the last 15 minutes. auth.roles.assign
     *
     * `PUT /admin/users/{id}/roles`
     */
    setRoles(id: string, input: UsersSetRolesInput, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Give somebody a role.
     *
     * As PUT /admin/users/{id}/roles. auth.roles.assign
     *
     * `POST /admin/users/{id}/roles/{role}`
     */
    addRole(id: string, role: string, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Take a role from somebody.
     *
     * As PUT /admin/users/{id}/roles. auth.roles.assign
     *
     * `DELETE /admin/users/{id}/roles/{role}`
     */
    removeRole(id: string, role: string, options?: CallOptions): Promise<Result<AdminUser>>;
    /**
     * Act as somebody else.
     *
     * For 15 minutes at most, and only while one's own session is live. There is no refresh. The token opens the application's own routes, GET /me, GET /sessions and POST /logout. One needs all of the account's permissions and one more, but for owners, and a proof of the last 15 minutes. auth.impersonate
     *
     * `POST /admin/users/{id}/impersonate`
     */
    impersonate(id: string, input: UsersImpersonateInput, options?: CallOptions): Promise<Result<{
      access_token?: string;
      expires_in?: number;
      session_id: UUID;
      /** redirect_to with a code that POST /exchange trades, within a minute. */
      url?: string;
    }>>;
    /**
     * Have a link or code sent to somebody.
     *
     * To the account's own address, or its number (code). Draws the limits of what is sent, by whom it goes to. auth.messages.send
     *
     * `POST /admin/users/{id}/send`
     */
    send(id: string, input: UsersSendInput, options?: CallOptions): Promise<Result<{
      message_id: UUID;
    }>>;
    /**
     * What happened to an account, and what it did.
     *
     * Newest first; of one that is gone, too. auth.audit.read
     *
     * `GET /admin/users/{id}/events`
     */
    events(id: string, input?: UsersEventsInput, options?: CallOptions): Pages<{
      events: AuditEvent[];
      next_cursor: Cursor;
    }, AuditEvent>;
    /**
     * Do something to many accounts.
     *
     * To those of ids, one after the other: one that may not be touched is skipped, and one that fails keeps no other from it. Or to those that a filter picks, up to 10,000: with dry_run first, which says of each what would come of it and returns a selection; with its id it is done behind the caller's back, to these accounts and no others. A filter needs a proof of the last 15 minutes, and one that picks everybody is for those who may do everything. Needs what the action's own operation needs, and its permission.
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
     * One account a line, up to 256 KiB each, a million and 4 GiB in all; 120 imports and dry runs of selections an hour for an actor. They are made behind the caller's back once the last line is there; nothing is made before. A row that cannot be made hinders no other. A hash, an identity, a TOTP secret or something verified needs auth.credentials, too, roles need auth.roles.assign and their permissions, a ban auth.users.ban. No message is sent, but the notices of what an update changes. Needs a proof of the last 15 minutes. auth.users.import
     *
     * `POST /admin/users/import`
     */
    import(rows: Rows<UsersImportRow>, input?: UsersImportInput, options?: CallOptions): Promise<Result<AdminJobID>>;
    /**
     * Export accounts.
     *
     * All accounts that the filters of GET /admin/users pick, as they are when they are read. password_hash and totp_secret come only where fields names them, which needs auth.credentials, too; of accounts that one is not stronger than, and of one's own, they stay empty, and secrets_withheld is true. The export is in the audit log itself. A connection that breaks off means that the rest is missing. Needs a proof of the last 15 minutes. auth.users.export
     *
     * `GET /admin/users/export`
     */
    export(input?: UsersExportInput, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly jobs: {
    /**
     * How far a job is.
     *
     * Goes on whatever becomes of the process that is at it, in the name and with the permissions of who began it, while they are signed in. The permission of what it does
     *
     * `GET /admin/jobs/{id}`
     */
    get(id: string, options?: CallOptions): Promise<Result<AdminJob>>;
    /**
     * What came of each row of a job.
     *
     * Of those that are done, in their order: an AdminRowResult a line. The permission of what it does
     *
     * `GET /admin/jobs/{id}/results`
     */
    results(id: string, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly links: {
    /**
     * Make a link for somebody.
     *
     * To give to the account's owner: it does what the mailed one of the type does, whose place it takes. Only for accounts that may less than oneself. Needs a proof of the last 15 minutes. The audit log has who made it, not the link. auth.credentials
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
     * Live sessions of everybody.
     *
     * Newest first. Filters have to hold together. auth.sessions.read
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
     * Of these accounts, at this address, made before a time: what is given has to hold together. Of 1000 accounts in one call at most; those that one may not touch are skipped, and one's own session goes on. all ends everybody's, with their access tokens; it goes alone, and needs the permission * and a proof of the last 15 minutes. before alone needs such a proof, too, and is all if it is to come. auth.sessions.revoke
     *
     * `POST /admin/sessions/revoke`
     */
    revoke(input: SessionsRevokeInput, options?: CallOptions): Promise<Result<{
      ended: number;
      /** There may be others: repeat it. */
      more: boolean;
      /** Accounts that one may not touch, or that are gone. */
      skipped: number;
      /** Whose they were. */
      users: number;
    }>>;
  };
  readonly roles: {
    /**
     * The roles.
     *
     * owner, which permits everything, is not among them. auth.roles.read
     *
     * `GET /admin/roles`
     */
    list(options?: CallOptions): Promise<Result<{
      revision: number;
      roles: Role[];
    }>>;
    /**
     * Which roles hold which permission.
     *
     * Every permission that is declared, and each role that holds it, by its name or a pattern. auth.roles.read
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
     * A role.
     *
     * owner, too. ETag is the revision of the table of roles. auth.roles.read
     *
     * `GET /admin/roles/{role}`
     */
    get(role: string, options?: CallOptions): Promise<Result<Role>>;
    /**
     * Who has a role.
     *
     * Who they are, and no more: GET /admin/users?role= shows accounts. auth.roles.read
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
     * Make a role.
     *
     * Only with permissions that one has; if there is one of the name: 422 validation_failed. With dry_run it is judged, and nothing is changed (200). Needs a proof of the last 15 minutes. auth.roles.write
     *
     * `POST /admin/roles`
     */
    create(input: RolesCreateInput, options?: CallOptions): Promise<Result<RoleChange>>;
    /**
     * Change a role.
     *
     * What is absent stays. Only with permissions that one has. With dry_run it is judged, and nothing is changed. Needs a proof of the last 15 minutes. auth.roles.write
     *
     * `PATCH /admin/roles/{role}`
     */
    update(role: string, input: RolesUpdateInput, options?: CallOptions): Promise<Result<RoleChange>>;
    /**
     * Delete a role that nobody has.
     *
     * With dry_run=true it is judged, and nothing is changed. Needs a proof of the last 15 minutes. auth.roles.write
     *
     * `DELETE /admin/roles/{role}`
     */
    delete(role: string, input?: RolesDeleteInput, options?: CallOptions): Promise<Result<RoleChange>>;
  };
  readonly impersonations: {
    /**
     * Who acts as whom.
     *
     * Right now, newest first, at most 1000. auth.impersonate
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
     * Invitations that wait.
     *
     * Newest first; those that were accepted or are over are not among them. auth.users.read
     *
     * `GET /admin/invitations`
     */
    list(input?: InvitationsListInput, options?: CallOptions): Pages<{
      invitations: Invitation[];
      next_cursor: Cursor;
    }, Invitation>;
    /**
     * Invite somebody.
     *
     * Mails a link to make an account with, good once. It takes the place of an older one to the address. Roles only if one may give them: that needs auth.roles.assign, too, and a proof of the last 15 minutes. auth.users.write
     *
     * `POST /admin/invitations`
     */
    create(input: InvitationsCreateInput, options?: CallOptions): Promise<Result<Invitation>>;
    /**
     * Send an invitation again.
     *
     * With a new link; the old one dies. It is in one's own name from now on, and takes what making it takes. auth.users.write
     *
     * `POST /admin/invitations/{id}/resend`
     */
    resend(id: string, options?: CallOptions): Promise<Result<Invitation>>;
    /**
     * Take an invitation back.
     *
     * One with roles only if one may give them. auth.users.write
     *
     * `DELETE /admin/invitations/{id}`
     */
    delete(id: string, options?: CallOptions): Promise<Result<null>>;
  };
  readonly messages: {
    /**
     * Which messages went out.
     *
     * Of the last seven days, newest first: sent, waiting, failed and dropped. Filters have to hold together. auth.messages.read
     *
     * `GET /admin/messages`
     */
    list(input?: MessagesListInput, options?: CallOptions): Pages<{
      messages: SentMessage[];
      next_cursor: Cursor;
    }, SentMessage>;
    /**
     * Send a message again that failed.
     *
     * The same message under the same id, within 24 hours and while what it carries is good. Draws the limits of what operators send, by whom it goes to. One that was sent, waits, was dropped or has expired: 422 validation_failed. auth.messages.send
     *
     * `POST /admin/messages/{id}/retry`
     */
    retry(id: string, options?: CallOptions): Promise<Result<{
      message_id: UUID;
    }>>;
  };
  readonly audit: {
    /**
     * What has happened.
     *
     * Newest first. Filters have to hold together. What was refused and what failed is there about a second later. auth.audit.read
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
     * All events that the filters of GET /admin/audit-logs pick, newest first, as they are read. The export is in the audit log itself. A connection that breaks off means that the rest is missing. Needs a proof of the last 15 minutes. auth.audit.export
     *
     * `GET /admin/audit-logs/export`
     */
    export(input?: AuditExportInput, options?: CallOptions): Promise<Result<ReadableStream<Uint8Array>>>;
  };
  readonly keys: {
    /**
     * The API keys.
     *
     * Newest first, without their texts. auth.keys.read
     *
     * `GET /admin/keys`
     */
    list(input?: KeysListInput, options?: CallOptions): Pages<{
      keys: APIKey[];
      next_cursor: Cursor;
    }, APIKey>;
    /**
     * Make an API key.
     *
     * With permissions that one has, and for as long as one has them. Needs a proof of the last 15 minutes. auth.keys.write
     *
     * `POST /admin/keys`
     */
    create(input: KeysCreateInput, options?: CallOptions): Promise<Result<NewAPIKey>>;
    /**
     * Change an API key.
     *
     * What is absent stays. Only keys of which one has all permissions; the service's own are for owners. Needs a proof of the last 15 minutes. auth.keys.write
     *
     * `PATCH /admin/keys/{id}`
     */
    update(id: string, input: KeysUpdateInput, options?: CallOptions): Promise<Result<APIKey>>;
    /**
     * Revoke an API key.
     *
     * For good; it stays in the list. A secret key stops at once, a public one within a second. Needs a proof of the last 15 minutes. auth.keys.write
     *
     * `DELETE /admin/keys/{id}`
     */
    delete(id: string, input?: KeysDeleteInput, options?: CallOptions): Promise<Result<null>>;
    /**
     * Give an API key another text.
     *
     * For who made it, or an owner. Of two at once one happens, and the other is 412. Needs a proof of the last 15 minutes. auth.keys.write
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
