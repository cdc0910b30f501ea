package store

import (
	"slices"
	"time"
)

// AnonymizeUser is the parameter of AdminStore.AnonymizeUser.
type AnonymizeUser struct {
	Change
	UserID     string
	Label      string   // replaces the user's name in events
	Names      []string // the user's names in events about no account
	Subjects   []string // subjects of tokens to delete
	Recipients []string // recipients of messages to delete (SealedMessage.Recipient)
}

// Anonymized reports whether the user was anonymised. An anonymised account is banned
// forever and identifies no person.
func (u *User) Anonymized() bool { return u.BannedUntil.Equal(AnonymizedUntil()) }

// AnonymizedUntil is the BannedUntil of anonymised users, an instant that marks them.
func AnonymizedUntil() time.Time { return time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC) }

// Patch returns the change of the user.
func (c *AnonymizeUser) Patch() *UserPatch {
	until := AnonymizedUntil()
	return &UserPatch{
		FullName: new(string), UserMetadata: map[string]any{}, AppMetadata: map[string]any{}, Roles: &[]string{},
		BannedUntil: &until, DropCredentials: true,
	}
}

// Rewrite returns the anonymised form of an event. Operations that the user carried out as
// an operator keep their actor's name and client, except on the user's own account:
// otherwise anonymising an operator would erase the record of the operator's acts.
func (c *AnonymizeUser) Rewrite(e Event) Event {
	about, by := e.UserID == c.UserID, e.Actor.Kind == ActorUser && e.Actor.ID == c.UserID
	others := e.Actor.Kind == ActorKey || e.Actor.Kind == ActorExternal || e.Actor.Kind == ActorUser && !by
	r := e.Record.Clone()
	operated := by && !about && r != nil
	if about {
		e.Reason = ""
	}
	if about && r != nil {
		r.Target, r.Changes = c.Label, keptChanges(r.Changes)
	}
	if e.UserID == "" && r != nil && r.Target != "" && slices.Contains(c.Names, r.Target) {
		r.Target = c.Label
	}
	if by && about && r != nil {
		r.Actor = c.Label
	}
	if by && !operated || about && !others {
		e.Client, e.Other = Client{}, nil
	}
	e.Record = r
	return e
}

// keptChanges returns the changes that an event about the user keeps.
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
