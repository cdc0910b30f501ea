package store

import (
	"slices"
	"time"
)

// AnonymizeUser is the parameter of AdminStore.AnonymizeUser.
type AnonymizeUser struct {
	Change
	UserID     string
	Label      string   // in place of what people call the user, in events
	Names      []string // what events about no account call the user
	Subjects   []string // of tokens
	Recipients []string // of messages, see SealedMessage.Recipient
}

// Anonymized tells whether nobody can tell any more, or be, whose account it was. It
// is banned for good.
func (u *User) Anonymized() bool { return u.BannedUntil.Equal(AnonymizedUntil()) }

// AnonymizedUntil is until when the anonymised are banned: an instant of their own, by
// which they are told.
func AnonymizedUntil() time.Time { return time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC) }

// Patch is what becomes of the user.
func (c *AnonymizeUser) Patch() *UserPatch {
	until := AnonymizedUntil()
	return &UserPatch{
		FullName: new(string), UserMetadata: map[string]any{}, AppMetadata: map[string]any{}, Roles: &[]string{},
		BannedUntil: &until, DropCredentials: true,
	}
}

// Rewrite is what becomes of an event.
func (c *AnonymizeUser) Rewrite(e Event) Event {
	about, by := e.UserID == c.UserID, e.Actor.Kind == ActorUser && e.Actor.ID == c.UserID
	others := e.Actor.Kind == ActorKey || e.Actor.Kind == ActorExternal || e.Actor.Kind == ActorUser && !by
	r := e.Record.Clone()
	if about {
		e.Reason = ""
	}
	if about && r != nil {
		r.Target, r.Changes = c.Label, keptChanges(r.Changes)
	}
	if e.UserID == "" && r != nil && slices.Contains(c.Names, r.Target) {
		r.Target = c.Label
	}
	if by && r != nil {
		r.Actor = c.Label
	}
	if by || about && !others {
		e.Client, e.Other = Client{}, nil
	}
	e.Record = r
	return e
}

// keptChanges are the changes that an event about somebody keeps.
func keptChanges(of map[string]FieldChange) map[string]FieldChange {
	kept := map[string]FieldChange{}
	for field, change := range of {
		if field == "roles" || field == "banned_until" {
			kept[field] = change
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
