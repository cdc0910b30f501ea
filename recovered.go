package auth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// The recovery of an operator's account also ends the invitations and links for others that
// the reported session or a later one created. They outlive their session, so a token
// records, for as long as an invitation lives at most, which sessions were reported.

// reportedSessions are the sessions of an account that one recovery ended.
type reportedSessions struct {
	At       time.Time `json:"at"`
	From, To int64     // their sequences
}

// reportedHash is the key of an account's record. No secret hashes to it.
func reportedHash(userID string) []byte {
	return recordHash("reported sessions", userID)
}

func (a *Auth) reported(ctx context.Context, userID string) ([]reportedSessions, error) {
	t, err := a.store.PeekToken(ctx, store.PurposeStop, reportedHash(userID), a.now())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, storeFailed(err)
	}
	var d linkData
	if err := json.Unmarshal(t.Data, &d); err != nil {
		return nil, fail(CodeInternal, err)
	}
	return d.Reported, nil
}

// recordReported records the sessions that a recovery ends: those from one sequence of the
// account to another. It returns ErrStale if the account has changed.
func (a *Auth) recordReported(ctx context.Context, u User, from, to int64) error {
	list, err := a.reported(ctx, u.ID)
	if err != nil {
		return err
	}
	now := a.now()
	list = slices.DeleteFunc(list, func(r reportedSessions) bool {
		return !now.Before(r.At.Add(mostInvitationLife)) || r.From == from
	})
	_, t := a.newLink(store.PurposeStop, mostInvitationLife, linkData{Reported: append(list, reportedSessions{now, from, to})})
	t.Hash, t.UserID, t.Subject = reportedHash(u.ID), u.ID, "reported "+u.ID
	return a.putToken(ctx, byFlow("account secured"), t, ifCredentialsUnchanged(u))
}

// extendReported adds the sessions that began while the recovery was under way to its
// record. u is the account as the recovery left it. A failure is logged: the recovery itself
// has succeeded.
func (a *Auth) extendReported(ctx context.Context, u User, from int64) {
	_, err := change(func() (struct{}, error) {
		present, err := a.store.User(ctx, store.ByID(u.ID))
		if err == nil {
			err = a.recordReported(ctx, present, from, u.Sequence)
		}
		return struct{}{}, err
	})
	if err != nil {
		a.cfg.log.ErrorContext(ctx, "auth: the invitations of sessions that began during the recovery of an account stay valid", "user_id", u.ID, "error", err)
	}
}

func (k kit) SessionReported(ctx context.Context, userID string, sequence int64) (bool, error) {
	list, err := k.a.reported(ctx, userID)
	return slices.ContainsFunc(list, func(r reportedSessions) bool { return r.From <= sequence && sequence <= r.To }), err
}
