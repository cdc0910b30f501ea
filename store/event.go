package store

import (
	"maps"
	"time"
)

// EventType names what has happened.
type EventType string

// The events.
const (
	EventSignedUp        EventType = "user.signed_up"
	EventSignedIn        EventType = "user.signed_in"
	EventSignInFailed    EventType = "sign_in.failed"
	EventRefreshed       EventType = "session.refreshed"
	EventReused          EventType = "refresh_token.reused"
	EventReplayed        EventType = "refresh_token.replayed" // an outdated one was let pass: an answer was lost, or two share a session
	EventNewDevice       EventType = "device.new"             // an account that was in use was signed in to on a device that it was not seen on
	EventSessionsEnded   EventType = "session.ended"
	EventEmailVerified   EventType = "email.verified"
	EventEmailChanged    EventType = "email.changed"
	EventUserUpdated     EventType = "user.updated"
	EventUserImported    EventType = "user.imported"
	EventUserDeleted     EventType = "user.deleted"
	EventPasswordChanged EventType = "password.changed"
	EventPasswordReset   EventType = "password.reset"
	EventTakenOver       EventType = "user.taken_over" // an unproved account went to its rightful owner, with what was set up before removed
	EventAccountSecured  EventType = "user.secured"    // the reader of a notice stopped the session that it told of
	EventMessageFailed   EventType = "message.failed"
	EventPhoneVerified   EventType = "phone.verified"
	EventMFAEnabled      EventType = "mfa.enabled"
	EventMFADisabled     EventType = "mfa.disabled"

	EventRecoveryCodeUsed      EventType = "recovery_code.used"
	EventRecoveryCodesReplaced EventType = "recovery_codes.replaced"

	EventSessionConfirmed EventType = "session.confirmed" // somebody proved again who they are

	EventSMSBudgetExceeded EventType = "sms.budget_exceeded"

	EventUserBanned      EventType = "user.banned"
	EventUserUnbanned    EventType = "user.unbanned"
	EventRolesChanged    EventType = "user.roles_changed"
	EventRoleChanged     EventType = "role.changed"
	EventRoleDeleted     EventType = "role.deleted"
	EventKeyCreated      EventType = "key.created" // an API key; so are those below
	EventKeyChanged      EventType = "key.changed"
	EventKeyRotated      EventType = "key.rotated"
	EventKeyRevoked      EventType = "key.revoked"
	EventSettingsChanged EventType = "settings.changed"
	EventSettingsTested  EventType = "settings.tested" // an operator tried out a sender or a provider
	EventAdminDenied     EventType = "admin.denied"    // somebody tried an operation of the admin side that they may not do
	EventUserCreated     EventType = "user.created"    // by an operator
	EventUserUnlocked    EventType = "user.unlocked"   // an operator cleared the limits on failures
	EventPhoneChanged    EventType = "phone.changed"   // by an operator

	EventAuditExported       EventType = "audit.exported"
	EventJobStarted          EventType = "job.started"         // an import, or an operation on many accounts; Method is which
	EventImpersonationBegun  EventType = "impersonation.begun" // somebody acts as the user
	EventImpersonationEnded  EventType = "impersonation.ended"
	EventLinkMade            EventType = "link.made"     // an operator had a link made, to give to somebody
	EventMessageAsked        EventType = "message.asked" // an operator had one sent, or sent again
	EventUserAnonymized      EventType = "user.anonymized"
	EventUserExported        EventType = "user.exported"
	EventUsersExported       EventType = "users.exported"  // many, by an operator
	EventInvited             EventType = "invitation.sent" // also again
	EventInvitationWithdrawn EventType = "invitation.withdrawn"
	EventInvitationAccepted  EventType = "invitation.accepted"

	EventIdentityLinked   EventType = "identity.linked"
	EventIdentityUnlinked EventType = "identity.unlinked"
)

// Event is something that has happened, after it was committed. It carries no
// secrets, and has a JSON form that survives a round trip (but for Err).
type Event struct {
	ID         string    `json:"id"` // UUIDv7
	Type       EventType `json:"type"`
	At         time.Time `json:"at"`
	Actor      Actor     `json:"actor"`                 // in whose name it happened
	UserID     string    `json:"user_id,omitempty"`     // whom it is about; empty if there is no user
	SessionID  string    `json:"session_id,omitempty"`  // the session in which, or with which, it happened
	SessionIDs []string  `json:"session_ids,omitempty"` // session.ended: those that ended
	Method     string    `json:"method,omitempty"`      // sign-ins: "password", "magic_link", "otp", "oauth"
	Provider   string    `json:"provider,omitempty"`    // identities, and what failed or signed up by one
	Message    Kind      `json:"message,omitempty"`     // message.failed; message.asked of one that was sent again
	Left       int       `json:"left,omitempty"`        // recovery_code.used: how many codes are left
	Reason     string    `json:"reason,omitempty"`      // message.failed, sign_in.failed: why, for people; user.signed_in: "trusted_device" if that stood in for the second factor
	Err        error     `json:"-"`                     // the same, for errors.Is
	Client     Client    `json:"client"`
	Other      *Client   `json:"other,omitempty"`  // refresh_token.replayed: who has the current token
	Record     *Record   `json:"record,omitempty"` // operations of the admin side
}

// Record is what the audit log says of an operation of the admin side besides its
// event. It holds no secrets.
type Record struct {
	Actor     string                 `json:"actor,omitempty"`  // as people call them; the account may be gone by now
	Target    string                 `json:"target,omitempty"` // likewise: an account, or the name of a role
	RequestID string                 `json:"request_id,omitempty"`
	Operation string                 `json:"operation,omitempty"` // as the wire names it: "POST /users/{id}/ban"
	Denied    bool                   `json:"denied,omitempty"`    // it was refused, and nothing changed
	Changes   map[string]FieldChange `json:"changes,omitempty"`   // by field
}

// FieldChange is what a field was and what it became, as in JSON.
type FieldChange struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Clone is a copy that shares nothing but the values of fields; nil of nil.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	out := *r
	out.Changes = maps.Clone(r.Changes)
	return &out
}

// Actor is in whose name something happened. The zero value is a stranger.
type Actor struct {
	Kind      ActorKind `json:"kind,omitempty"`
	ID        string    `json:"id,omitempty"`         // of the user or key; the name of a system; as the application has it
	SessionID string    `json:"session_id,omitempty"` // of a user
}

// ActorKind tells what an Actor is.
type ActorKind string

// The kinds of actors.
const (
	ActorUser   ActorKind = "user"
	ActorKey    ActorKind = "key"
	ActorSystem ActorKind = "system"

	ActorExternal ActorKind = "external" // somebody whom the application's own admin login knows
)
