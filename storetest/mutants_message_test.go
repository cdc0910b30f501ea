package storetest_test

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// messageMutants are stores that handle the states of messages wrongly.
func messageMutants() map[string]mutant {
	const (
		noted  = "message log/it is noted what became of a message"
		sent   = "message log/of a message that was sent nothing else is noted"
		decoys = "message log/decoys are in no list"
		again  = "message log/a message that failed is kept, and sent again under its id"
		longer = "message log/a message that failed is kept no longer than it is of use"
		once   = "message log/of parallel retries one has a message sent again"
		listed = "message log/lists hold the messages that a query picks, newest first, page by page"
		user   = "message log/what is noted of messages goes with their user"
		nobody = "message log/what is noted of messages to the anonymised goes"
		claims = "message log/a claim without an outcome is no attempt"
		swept  = "message log/a sweep notes what it drops, and deletes what is old"
	)
	posting := func(m postOffice) func(base) store.Store {
		return func(b base) store.Store {
			m.base, m.Journal = b, capability[store.Journal](b)
			return m
		}
	}
	query := func(edit func(*store.MessageQuery)) func(base) store.Store { return posting(postOffice{query: edit}) }
	finish := func(edit func(*store.FinishMessage)) func(base) store.Store { return posting(postOffice{finish: edit}) }
	return map[string]mutant{
		"a list of messages forgets the state":  caught(listed, query(func(q *store.MessageQuery) { q.State = "" })),
		"a list of messages forgets the kind":   caught(listed, query(func(q *store.MessageQuery) { q.Kind = "" })),
		"a list of messages forgets the user":   caught(listed, query(func(q *store.MessageQuery) { q.UserID = "" })),
		"a list of messages forgets its end":    caught(listed, query(func(q *store.MessageQuery) { q.To = time.Time{} })),
		"a list of messages begins again":       caught(listed, query(func(q *store.MessageQuery) { q.After = nil })),
		"messages that failed are erased":       caught(again, finish(func(f *store.FinishMessage) { f.KeepUntil = time.Time{} })),
		"messages that failed are kept forever": caught(longer, finish(func(f *store.FinishMessage) { f.KeepUntil = f.KeepUntil.Add(1000 * time.Hour) })),
		"nothing is said of attempts":           caught(noted, finish(func(f *store.FinishMessage) { f.Attempts = 0 })),
		"claims are counted as attempts":        caught(claims, posting(postOffice{claims: map[string]int{}})),
		"nothing is said of errors":             caught(noted, finish(func(f *store.FinishMessage) { f.Error = "" })),
		"decoys are told of":                    caught(decoys, posting(postOffice{change: func(m *store.SealedMessage) { m.Log.Kind = "decoy" }})),
		"records have no user":                  caught(user, posting(postOffice{change: func(m *store.SealedMessage) { m.Log.UserID = "" }})),
		"records have no recipient":             caught(nobody, posting(postOffice{change: func(m *store.SealedMessage) { m.Recipient = "" }})),
		"records are as old as they are read":   caught(swept, posting(postOffice{change: func(m *store.SealedMessage) { m.CreatedAt = m.NextAt }})),
		"a message is retried twice":            caught(once, posting(postOffice{retries: 1})),
		"what was sent has failed":              caught(sent, func(b base) store.Store { return forgetful{b, capability[store.Journal](b), &store.MessageRecord{}} }),
	}
}

// postOffice is a store with faulty messages.
type postOffice struct {
	base
	store.Journal
	query   func(*store.MessageQuery)
	finish  func(*store.FinishMessage)
	change  func(*store.SealedMessage)
	retries int            // losing retries report success
	claims  map[string]int // the number of claims, returned as the attempt
}

func (s postOffice) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	list, err := s.Journal.ClaimMessages(ctx, c)
	for i := range list {
		if s.claims != nil {
			s.claims[list[i].ID]++
			list[i].Attempts = s.claims[list[i].ID]
		}
	}
	return list, err
}

func (s postOffice) ListMessages(ctx context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	if s.query != nil {
		s.query(&q)
	}
	return s.Journal.ListMessages(ctx, q)
}

func (s postOffice) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	if s.finish != nil {
		s.finish(&f)
	}
	return s.Journal.FinishMessage(ctx, f)
}

func (s postOffice) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	var list []store.SealedMessage
	for _, m := range c.Messages {
		if s.change != nil {
			s.change(&m)
		}
		list = append(list, m)
	}
	c.Messages = list
	return s.base.UpdateUser(ctx, c)
}

func (s postOffice) RetryMessage(ctx context.Context, c store.RetryMessage) error {
	err := s.Journal.RetryMessage(ctx, c)
	if s.retries > 0 {
		return nil
	}
	return err
}

// forgetful keeps only the last state of a message.
type forgetful struct {
	base
	store.Journal
	last *store.MessageRecord
}

func (s forgetful) ListMessages(ctx context.Context, q store.MessageQuery) ([]store.MessageRecord, error) {
	list, err := s.Journal.ListMessages(ctx, q)
	for i := range list {
		list[i].State, list[i].UpdatedAt, list[i].Attempts = s.last.State, s.last.UpdatedAt, s.last.Attempts
	}
	return list, err
}

func (s forgetful) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	s.last.State, s.last.UpdatedAt, s.last.Attempts = f.State, f.At, f.Attempts
	return s.Journal.FinishMessage(ctx, f)
}
