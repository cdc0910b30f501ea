package storetest_test

import (
	"context"

	"github.com/authmount/auth/store"
)

// anonymizeMutants are stores that keep some data of an anonymized user.
func anonymizeMutants() map[string]mutant {
	const deleted = "anonymizing/the ids of deleted users are known"
	const all, told, sent = "anonymizing/whatever tells who somebody was goes, and the id stays", "anonymizing/events tell of them no more", "anonymizing/messages to them are not sent"
	editing := func(edit func(*store.AnonymizeUser)) func(base) store.Store {
		return func(b base) store.Store { return leaves{b, capability[store.AdminStore](b), edit} }
	}
	return map[string]mutant{
		"the anonymous are told of by tokens":   caught(all, editing(func(c *store.AnonymizeUser) { c.Subjects = nil })),
		"the anonymous are sent messages":       caught(sent, editing(func(c *store.AnonymizeUser) { c.Recipients = nil })),
		"the anonymous have another label":      caught(told, editing(func(c *store.AnonymizeUser) { c.Label = "another" })),
		"the anonymous are named still":         caught(told, editing(func(c *store.AnonymizeUser) { c.Names = nil })),
		"the anonymous are patched, not hidden": caught(told, func(b base) store.Store { return onlyPatched{b, capability[store.AdminStore](b)} }),
		"deleted users are forgotten":           caught(deleted, func(b base) store.Store { return forgetsDeleted{b, capability[store.AdminStore](b)} }),
		"the anonymous keep what had ended":     caught(all, func(b base) store.Store { return onlyPatched{b, capability[store.AdminStore](b)} }),
	}
}

// leaves anonymizes less than requested.
type leaves struct {
	base
	store.AdminStore
	edit func(*store.AnonymizeUser)
}

func (s leaves) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (store.User, error) {
	s.edit(&c)
	return s.AdminStore.AnonymizeUser(ctx, c)
}

// onlyPatched changes the account and nothing else.
type onlyPatched struct {
	base
	store.AdminStore
}

func (s onlyPatched) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (store.User, error) {
	return s.UpdateUser(ctx, store.UpdateUser{Change: c.Change, UserID: c.UserID, Patch: *c.Patch()})
}

// forgetsDeleted knows no deleted user.
type forgetsDeleted struct {
	base
	store.AdminStore
}

func (s forgetsDeleted) UserDeleted(context.Context, string) (bool, error) { return false, nil }
