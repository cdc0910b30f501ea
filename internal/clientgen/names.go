package main

// name holds the clients' names for an operation of the admin API. The document has the
// rest of its definition.
type name struct {
	operation string
	group     string // the TypeScript object of the method; empty: the client itself
	ts        string // the TypeScript method
	method    string // the Go method
	input     string // the Go type of its parameters, if it differs from the method's name with Params, Changes or Query
	result    string // the Go type of its result or of one row, if the document does not name it
}

// names are the operations that accept a secret key, in the TypeScript client's order.
var names = []name{
	{"GET /admin/me", "", "me", "Me", "", "Whoami"},
	{"GET /admin/permissions", "", "permissions", "Permissions", "", "Permission"},
	{"POST /admin/check", "", "check", "Check", "", "CheckResult"},
	{"GET /admin/overview", "", "overview", "Overview", "", "Overview"},
	{"GET /admin/stats", "", "stats", "Stats", "", "Stats"},
	{"GET /admin/diagnostics", "", "diagnostics", "Diagnostics", "", ""},
	{"GET /admin/users", "users", "list", "Users", "UserQuery", ""},
	{"GET /admin/users/lookup", "users", "lookup", "LookupUser", "UserLookup", ""},
	{"GET /admin/users/{id}", "users", "get", "User", "", ""},
	{"POST /admin/users", "users", "create", "CreateUser", "", ""},
	{"PATCH /admin/users/{id}", "users", "update", "UpdateUser", "", ""},
	{"POST /admin/users/{id}/delete", "users", "delete", "DeleteUser", "", ""},
	{"POST /admin/users/{id}/anonymize", "users", "anonymize", "AnonymizeUser", "", ""},
	{"GET /admin/users/{id}/export", "users", "exportData", "ExportUser", "", "json.RawMessage"},
	{"POST /admin/users/{id}/ban", "users", "ban", "BanUser", "BanParams", ""},
	{"POST /admin/users/{id}/unban", "users", "unban", "UnbanUser", "", ""},
	{"POST /admin/users/{id}/unlock", "users", "unlock", "UnlockUser", "", ""},
	{"POST /admin/users/{id}/password", "users", "setPassword", "SetPassword", "", ""},
	{"GET /admin/users/{id}/factors", "users", "factors", "Factors", "", ""},
	{"DELETE /admin/users/{id}/factors", "users", "removeFactors", "RemoveFactors", "", ""},
	{"DELETE /admin/users/{id}/factors/{factor}", "users", "removeFactor", "RemoveFactor", "", ""},
	{"DELETE /admin/users/{id}/identities/{identity}", "users", "unlinkIdentity", "RemoveIdentity", "", ""},
	{"GET /admin/users/{id}/sessions", "users", "sessions", "UserSessions", "", ""},
	{"DELETE /admin/users/{id}/sessions", "users", "endSessions", "EndUserSessions", "", ""},
	{"PUT /admin/users/{id}/roles", "users", "setRoles", "SetRoles", "", ""},
	{"POST /admin/users/{id}/roles/{role}", "users", "addRole", "AddRole", "", ""},
	{"DELETE /admin/users/{id}/roles/{role}", "users", "removeRole", "RemoveRole", "", ""},
	{"POST /admin/users/{id}/send", "users", "send", "Send", "", "MessageID"},
	{"GET /admin/users/{id}/events", "users", "events", "UserEvents", "UserEventQuery", ""},
	{"POST /admin/users/bulk", "users", "bulk", "Bulk", "", "BulkResult"},
	{"POST /admin/users/import", "users", "import", "", "", "ImportRow"}, // the Go method is written by hand, because it streams
	{"GET /admin/users/export", "users", "export", "ExportUsers", "ExportQuery", ""},
	{"GET /admin/jobs/{id}", "jobs", "get", "Job", "", ""},
	{"GET /admin/jobs/{id}/results", "jobs", "results", "JobResults", "", "RowResult"},
	{"POST /admin/links", "links", "create", "CreateLink", "LinkParams", "Link"},
	{"GET /admin/sessions", "sessions", "list", "Sessions", "SessionQuery", "UserSession"},
	{"DELETE /admin/sessions/{id}", "sessions", "end", "EndSession", "", ""},
	{"POST /admin/sessions/revoke", "sessions", "revoke", "RevokeSessions", "RevokeParams", "RevokeResult"},
	{"GET /admin/roles", "roles", "list", "Roles", "", "RoleList"},
	{"GET /admin/roles/matrix", "roles", "matrix", "RoleMatrix", "", "RoleMatrix"},
	{"GET /admin/roles/{role}", "roles", "get", "Role", "", ""},
	{"GET /admin/roles/{role}/users", "roles", "users", "RoleUsers", "RoleUserQuery", "RoleUser"},
	{"GET /admin/invitations", "invitations", "list", "Invitations", "InvitationQuery", ""},
	{"POST /admin/invitations", "invitations", "create", "Invite", "", ""},
	{"POST /admin/invitations/{id}/resend", "invitations", "resend", "ResendInvitation", "", ""},
	{"DELETE /admin/invitations/{id}", "invitations", "delete", "RevokeInvitation", "", ""},
	{"GET /admin/messages", "messages", "list", "Messages", "MessageQuery", ""},
	{"POST /admin/messages/{id}/retry", "messages", "retry", "RetryMessage", "", "MessageID"},
	{"GET /admin/audit-logs", "audit", "list", "AuditEvents", "AuditQuery", ""},
	{"GET /admin/audit-logs/{id}", "audit", "get", "AuditEvent", "", ""},
	{"GET /admin/audit-logs/export", "audit", "export", "ExportAudit", "AuditExportQuery", ""},
	{"POST /admin/keys/verify", "keys", "verify", "VerifyKey", "", "VerifiedKey"},
	{"GET /admin/revocations", "revocations", "list", "Revocations", "RevocationsQuery", ""},
	{"GET /admin/settings", "settings", "get", "Settings", "", ""},
}

// goTypes are Go names of components that differ from the document's names. User and
// SessionInfo are written by hand.
var goTypes = map[string]string{
	"AdminAccount": "Account", "AdminActor": "Actor", "AdminBudget": "Budget", "AdminFactor": "Factor", "AdminJob": "Job", "AdminRowResult": "RowResult", "AdminTotal": "Total",
}

// embedded are the Go types that a type embeds.
var embedded = map[string]string{"AdminUser": "User", "AdminAccount": "AdminUser"}

// separated are query parameters with comma-separated values.
var separated = map[string]bool{"ids": true, "fields": true, "metrics": true}
