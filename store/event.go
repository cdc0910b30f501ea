package store

import (
	"maps"
	"time"
)

// EventType names a kind of event.
type EventType string

// The events.
const (
	EventSignedUp        EventType = "user.signed_up"
	EventSignedIn        EventType = "user.signed_in"
	EventSignInFailed    EventType = "sign_in.failed"
	EventRefreshed       EventType = "session.refreshed"
	EventReused          EventType = "refresh_token.reused"
	EventReplayed        EventType = "refresh_token.replayed" // an outdated token was accepted: a response was lost, or two clients share a session
	EventNewDevice       EventType = "device.new"             // a sign-in to an account in use, on a device that is new to it
	EventSessionsEnded   EventType = "session.ended"
	EventEmailVerified   EventType = "email.verified"
	EventEmailChanged    EventType = "email.changed"
	EventUserUpdated     EventType = "user.updated"
	EventUserImported    EventType = "user.imported"
	EventUserDeleted     EventType = "user.deleted"
	EventPasswordChanged EventType = "password.changed"
	EventPasswordReset   EventType = "password.reset"
	EventTakenOver       EventType = "user.taken_over" // an unverified account went to its rightful owner; earlier credentials were removed
	EventAccountSecured  EventType = "user.secured"    // the reader of a notice used the account recovery link in it
	EventMessageFailed   EventType = "message.failed"
	EventPhoneVerified   EventType = "phone.verified"
	EventMFAEnabled      EventType = "mfa.enabled"
	EventMFADisabled     EventType = "mfa.disabled"

	EventRecoveryCodeUsed      EventType = "recovery_code.used"
	EventRecoveryCodesReplaced EventType = "recovery_codes.replaced"

	EventSessionConfirmed EventType = "session.confirmed" // the user authenticated again

	EventSMSBudgetExceeded EventType = "sms.budget_exceeded"

	EventUserBanned      EventType = "user.banned"
	EventUserUnbanned    EventType = "user.unbanned"
	EventRolesChanged    EventType = "user.roles_changed"
	EventRoleChanged     EventType = "role.changed"
	EventRoleDeleted     EventType = "role.deleted"
	EventKeyCreated      EventType = "key.created" // an API key; also the three below
	EventKeyChanged      EventType = "key.changed"
	EventKeyRotated      EventType = "key.rotated"
	EventKeyRevoked      EventType = "key.revoked"
	EventSettingsChanged EventType = "settings.changed"
	EventSettingsTested  EventType = "settings.tested" // an operator tested a sender or a provider
	EventAdminDenied     EventType = "admin.denied"    // an operation of the admin side was refused for lack of permission
	EventUserCreated     EventType = "user.created"    // by an operator
	EventUserUnlocked    EventType = "user.unlocked"   // an operator let more attempts through after failures
	EventPhoneChanged    EventType = "phone.changed"   // by an operator

	EventAuditExported       EventType = "audit.exported"
	EventJobStarted          EventType = "job.started"         // an import, or an operation on many accounts; Method names it
	EventImpersonationBegun  EventType = "impersonation.begun" // an actor acts as the user
	EventImpersonationEnded  EventType = "impersonation.ended"
	EventLinkMade            EventType = "link.made"     // an operator created a link to hand to a user
	EventMessageAsked        EventType = "message.asked" // an operator requested a message, or a retry
	EventUserAnonymized      EventType = "user.anonymized"
	EventUserExported        EventType = "user.exported"
	EventUsersExported       EventType = "users.exported"  // of many users, by an operator
	EventInvited             EventType = "invitation.sent" // also when sent again
	EventInvitationWithdrawn EventType = "invitation.withdrawn"
	EventInvitationAccepted  EventType = "invitation.accepted"

	EventIdentityLinked   EventType = "identity.linked"
	EventIdentityUnlinked EventType = "identity.unlinked"

	EventTOTPRemoved EventType = "totp.removed" // the authenticator app, while another second factor is left (else mfa.disabled)

	EventPasskeyAdded               EventType = "passkey.added"
	EventPasskeyRemoved             EventType = "passkey.removed"
	EventPasskeyCounterNotIncreased EventType = "passkey.counter_not_increased" // the passkey may have been copied
)

// Event is something that has happened, recorded after the commit. It contains no secrets,
// and has a JSON form that survives a round trip (except Err).
type Event struct {
	ID         string    `json:"id"` // UUIDv7
	Type       EventType `json:"type"`
	At         time.Time `json:"at"`
	Actor      Actor     `json:"actor"`                 // responsible for it
	UserID     string    `json:"user_id,omitempty"`     // the user that it is about; empty: none
	SessionID  string    `json:"session_id,omitempty"`  // the session in which, or with which, it happened
	SessionIDs []string  `json:"session_ids,omitempty"` // session.ended: the ended sessions
	Method     string    `json:"method,omitempty"`      // sign-ins: "password", "magic_link", "otp", "oauth"
	Provider   string    `json:"provider,omitempty"`    // of an identity, a failed sign-in or a sign-up
	Message    Kind      `json:"message,omitempty"`     // message.failed; message.asked for a retry
	Left       int       `json:"left,omitempty"`        // recovery_code.used: codes left
	Reason     string    `json:"reason,omitempty"`      // message.failed, sign_in.failed: the reason, for people; user.signed_in: "trusted_device" if that replaced the second factor
	Err        error     `json:"-"`                     // the same reason, for errors.Is
	Client     Client    `json:"client"`
	Other      *Client   `json:"other,omitempty"`  // refresh_token.replayed: the client with the current token
	Record     *Record   `json:"record,omitempty"` // operations of the admin side
}

// Record is the additional data that the audit log keeps for an operation of the admin
// side. It contains no secrets.
type Record struct {
	Actor     string                 `json:"actor,omitempty"`  // a readable name; the account may be deleted by now
	Target    string                 `json:"target,omitempty"` // the readable name of an account, or the name of a role
	RequestID string                 `json:"request_id,omitempty"`
	ServerID  string                 `json:"server_request_id,omitempty"` // if the client chose RequestID: the id that it could not choose
	Operation string                 `json:"operation,omitempty"`         // in the form of the API: "POST /users/{id}/ban"
	Denied    bool                   `json:"denied,omitempty"`            // refused, and nothing changed
	Changes   map[string]FieldChange `json:"changes,omitempty"`           // by field
}

// FieldChange is the value of a field before and after, as in JSON.
type FieldChange struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Clone returns a copy that shares only the values of fields; nil for nil.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	out := *r
	out.Changes = maps.Clone(r.Changes)
	return &out
}

// Actor is the person, key or code responsible for an event. The zero value is unknown.
type Actor struct {
	Kind      ActorKind `json:"kind,omitempty"`
	ID        string    `json:"id,omitempty"`         // of a user or key; the name of a system; the application's own id
	SessionID string    `json:"session_id,omitempty"` // of a user
}

// ActorKind is the kind of an Actor.
type ActorKind string

// The kinds of actors.
const (
	ActorUser   ActorKind = "user"
	ActorKey    ActorKind = "key"
	ActorSystem ActorKind = "system"

	ActorExternal ActorKind = "external" // a person known to the application's own admin login
)
