package memstore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// contents is the format of Dump.
type contents struct {
	Users    []savedUser         `json:"users"`
	Sessions []savedSession      `json:"sessions"`
	Tokens   []store.Token       `json:"tokens"`
	Events   []store.Event       `json:"events"`
	Messages []message           `json:"messages"`
	Log      []loggedMessage     `json:"message_log,omitempty"`
	Roles    store.RoleTable     `json:"roles"`
	Keys     []store.APIKey      `json:"keys"`
	Done     []store.Idempotency `json:"done"`

	Counts         []store.Count         `json:"counts,omitempty"`
	Active         []savedActive         `json:"active,omitempty"`
	Settings       store.StoredSettings  `json:"settings,omitzero"`
	Impersonations []store.Impersonation `json:"impersonations,omitempty"`
	Owned          bool                  `json:"owned,omitempty"`
	Deleted        []string              `json:"deleted,omitempty"` // ids of deleted users
	Jobs           []savedJob            `json:"jobs,omitempty"`
}

type savedUser struct {
	User           store.User     `json:"user"`
	Hash           string         `json:"password_hash"`
	Factors        []store.Factor `json:"factors,omitempty"`
	Recovery       [][]byte       `json:"recovery,omitempty"`
	RecoveryOrigin store.Origin   `json:"recovery_origin,omitzero"`
	Notes          string         `json:"notes,omitempty"`

	Devices map[string]device `json:"devices,omitempty"`
}

type savedActive struct {
	Period string    `json:"period"`
	Since  time.Time `json:"since"`
	UserID string    `json:"user_id"`
}

type savedJob struct {
	Job    store.Job        `json:"job"`
	Chunks []store.JobChunk `json:"chunks"`
}

type savedSession struct {
	Session  store.Session  `json:"session"`
	Revoked  bool           `json:"revoked"`
	Rotation store.Rotation `json:"rotation"`
	Order    int64          `json:"order"`
}

// Dump returns everything in the store except rate limits, as JSON, for tests that compare or
// search it. It contains password hashes. The format may change.
func (s *Store) Dump(ctx context.Context) ([]byte, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return json.Marshal(s.contents())
}

func (s *Store) contents() contents {
	all := contents{Events: s.events, Roles: s.roleTable(), Settings: s.settings, Owned: s.owned, Deleted: slices.Sorted(maps.Keys(s.deleted))}
	for _, u := range s.users {
		saved := savedUser{User: u.User, Hash: u.hash, Recovery: u.recovery, RecoveryOrigin: u.recoveryOrigin, Notes: u.notes, Devices: u.devices}
		for _, f := range u.factors {
			saved.Factors = append(saved.Factors, *f)
		}
		all.Users = append(all.Users, saved)
	}
	for _, sess := range s.sessions {
		all.Sessions = append(all.Sessions, savedSession{sess.Session, sess.revoked, sess.rotation, sess.order})
	}
	for _, t := range s.tokens {
		all.Tokens = append(all.Tokens, *t)
	}
	for _, m := range s.messages {
		all.Messages = append(all.Messages, *m)
	}
	for _, l := range s.log {
		all.Log = append(all.Log, *l)
	}
	for _, k := range s.keys {
		all.Keys = append(all.Keys, *k)
	}
	for _, i := range s.done {
		all.Done = append(all.Done, *i)
	}
	for k, n := range s.counts {
		all.Counts = append(all.Counts, store.Count{Metric: k.metric, Label: k.label, At: k.at, N: n})
	}
	for k := range s.active {
		all.Active = append(all.Active, savedActive{k.period, k.since, k.userID})
	}
	for _, j := range s.jobs {
		all.Jobs = append(all.Jobs, savedJob{j.Job, j.chunks})
	}
	for _, i := range s.impersonations {
		if !i.ended {
			all.Impersonations = append(all.Impersonations, i.Impersonation)
		}
	}
	return all
}
