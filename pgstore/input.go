package pgstore

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// How auth's types become parameters. A list of any length is one parameter in JSON, so
// that the statement's text does not depend on the length. One record type reads each
// list; its columns are named as in the table.

// eventInput is an event to be recorded if the change has the outcome On. The database
// function note_events reads it.
type eventInput struct {
	On        store.Outcome   `json:"on"`
	Must      bool            `json:"must"` // the change fails without it
	ID        string          `json:"id"`
	Type      store.EventType `json:"type"`
	At        time.Time       `json:"at"`
	UserID    *string         `json:"user_id"`
	SessionID *string         `json:"session_id"`
	Data      eventData       `json:"data"`
}

const messageRecord = `m (id uuid, user_id uuid, purpose text, hash bytea, body bytea,
			created_at timestamptz, next_at timestamptz, expires_at timestamptz, attempts integer, recipient text,
			kind text, channel text, shown text, about uuid)`

type messageInput struct {
	ID        string        `json:"id"`
	UserID    *string       `json:"user_id"`
	Purpose   store.Purpose `json:"purpose"`
	Hash      bytea         `json:"hash"`
	Body      bytea         `json:"body"`
	CreatedAt time.Time     `json:"created_at"`
	NextAt    time.Time     `json:"next_at"`
	ExpiresAt time.Time     `json:"expires_at"`
	Attempts  int           `json:"attempts"`
	Recipient string        `json:"recipient"`

	Kind    store.Kind    `json:"kind"`
	Channel store.Channel `json:"channel"`
	Shown   string        `json:"shown"`
	About   *string       `json:"about"`
}

const sessionRecord = `s (id uuid, counter bigint, rotated_at timestamptz, aal text, amr jsonb, created_at timestamptz,
			last_active_at timestamptz, idle_until timestamptz, expires_at timestamptz, ip text, user_agent text, device text)`

type sessionInput struct {
	ID           string      `json:"id"`
	Counter      uint32      `json:"counter"`
	RotatedAt    time.Time   `json:"rotated_at"`
	AAL          string      `json:"aal"`
	AMR          []store.AMR `json:"amr"`
	CreatedAt    time.Time   `json:"created_at"`
	LastActiveAt time.Time   `json:"last_active_at"`
	IdleUntil    time.Time   `json:"idle_until"`
	ExpiresAt    *time.Time  `json:"expires_at"`
	IP           string      `json:"ip"`
	UserAgent    string      `json:"user_agent"`
	Device       string      `json:"device"`
}

//nolint:gosec // names of columns
const tokenRecord = `t (purpose text, hash bytea, subject text, user_id uuid, data bytea,
			created_at timestamptz, expires_at timestamptz, max_tries integer, tries integer, code bytea, code_expires_at timestamptz, sequence bigint, added_by bigint)`

type tokenInput struct {
	Purpose   store.Purpose `json:"purpose"`
	Hash      bytea         `json:"hash"`
	Subject   string        `json:"subject"`
	UserID    *string       `json:"user_id"`
	Data      bytea         `json:"data"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at"`
	MaxTries  int           `json:"max_tries"`
	Tries     int           `json:"tries"`
	Code      *bytea        `json:"code"`

	CodeExpiresAt *time.Time `json:"code_expires_at"`

	Sequence *int64 `json:"sequence"` // null: the user's current sequence
	AddedBy  int64  `json:"added_by"`
}

const identityRecord = `i (id uuid, provider text, subject text, email text, created_at timestamptz, last_sign_in_at timestamptz)`

type identityInput struct {
	ID           string     `json:"id"`
	Provider     string     `json:"provider"`
	Subject      string     `json:"subject"`
	Email        string     `json:"email"`
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
}

// none is an empty list.
const none = "[]"

// eventsInput returns the parameter for events. The statement fills in the data that
// only the store knows, unless chosen has done so before.
func eventsInput(must bool, list []store.OutcomeEvent) string {
	return listOf(list, func(o store.OutcomeEvent) eventInput {
		e := o.Event
		return eventInput{On: o.On, Must: must, ID: e.ID, Type: e.Type, At: micro(e.At), UserID: orNull(e.UserID), SessionID: orNull(e.SessionID), Data: dataOf(e)}
	})
}

func messagesInput(list []store.SealedMessage) string {
	return listOf(list, func(m store.SealedMessage) messageInput {
		return messageInput{ID: m.ID, UserID: orNull(m.UserID), Purpose: m.Token.Purpose, Hash: m.Token.Hash, Body: m.Body,
			CreatedAt: micro(m.CreatedAt), NextAt: micro(m.NextAt), ExpiresAt: micro(m.ExpiresAt), Attempts: m.Attempts, Recipient: m.Recipient,
			Kind: m.Log.Kind, Channel: m.Log.Channel, Shown: m.Log.To, About: orNull(m.Log.UserID)}
	})
}

func sessionsInput(list ...store.Session) string {
	return listOf(list, func(s store.Session) sessionInput {
		return sessionInput{ID: s.ID, Counter: s.Counter, RotatedAt: micro(s.RotatedAt), AAL: s.AAL, AMR: nonNil(s.AMR), CreatedAt: micro(s.CreatedAt),
			LastActiveAt: micro(s.LastActiveAt), IdleUntil: micro(s.IdleUntil), ExpiresAt: moment(s.ExpiresAt), IP: s.IP, UserAgent: s.UserAgent, Device: s.Device}
	})
}

// tokensInput leaves out tokens that a later one in the list supersedes, because a
// statement cannot write a row twice.
func tokensInput(list ...store.Token) string {
	var last []store.Token
	for i, t := range list {
		superseded := func(o store.Token) bool { return t.Subject != "" && o.Purpose == t.Purpose && o.Subject == t.Subject }
		if !slices.ContainsFunc(list[i+1:], superseded) {
			last = append(last, t)
		}
	}
	return listOf(last, func(t store.Token) tokenInput {
		return tokenInput{Purpose: t.Purpose, Hash: t.Hash, Subject: t.Subject, UserID: orNull(t.UserID), Data: t.Data,
			CreatedAt: micro(t.CreatedAt), ExpiresAt: micro(t.ExpiresAt), MaxTries: t.MaxAttempts, Tries: t.Attempts, Code: maybeBytes(t.Code), CodeExpiresAt: moment(t.CodeExpiresAt), Sequence: orNull(t.Sequence), AddedBy: t.AddedBy}
	})
}

// withOrigin returns copies of tokens with an origin. The zero origin stands for the
// user's current sequence.
func withOrigin(list []store.Token, by store.Origin) []store.Token {
	list = slices.Clone(list)
	for i := range list {
		list[i].Origin = by
	}
	return list
}

func identitiesInput(list ...store.Identity) string {
	return listOf(list, func(i store.Identity) identityInput {
		return identityInput{ID: i.ID, Provider: i.Provider, Subject: i.Subject, Email: i.Email, CreatedAt: micro(i.CreatedAt), LastSignInAt: moment(i.LastSignInAt)}
	})
}

func listOf[A, B any](list []A, input func(A) B) string {
	if len(list) == 0 {
		return none
	}
	inputs := make([]B, len(list))
	for i, v := range list {
		inputs[i] = input(v)
	}
	return text(inputs)
}

// asText replaces invalid UTF-8, as JSON does.
func asText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// text returns a value as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: only strings, numbers and times
	}
	return string(b)
}

// micro returns a time as the database stores it. It truncates, because the database
// would round times that it reads from JSON. Years have at most four digits.
func micro(t time.Time) time.Time {
	if t.After(forever) {
		return forever
	}
	return t.UTC().Truncate(time.Microsecond)
}

// moment returns a time as the database stores it, or nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = micro(t)
	return &t
}

// maybeBytes returns nil for an empty slice.
func maybeBytes(b []byte) *bytea {
	if len(b) == 0 {
		return nil
	}
	return (*bytea)(&b)
}

// bytea marshals bytes as Postgres reads them from JSON.
type bytea []byte

// MarshalText implements encoding.TextMarshaler.
func (b bytea) MarshalText() ([]byte, error) { return hex.AppendEncode([]byte(`\x`), b), nil }

// object returns a map as JSON for jsonb.
func object(m map[string]any) (string, error) {
	if len(m) == 0 {
		return "{}", nil
	}
	b, err := json.Marshal(m)
	return string(b), err
}

// orNull returns nil for the zero value.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// canonical returns an id as the database writes it. ok is false if it is not a UUID,
// which no row has.
func canonical(id string) (string, bool) {
	u, err := uuid.Parse(id)
	if err != nil {
		return "", false
	}
	return u.String(), true
}

// canonicalAll returns the canonical form of all valid ids, without duplicates.
func canonicalAll(ids ...string) []string {
	list := []string{}
	for _, id := range ids {
		if c, ok := canonical(id); ok && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// nonNil returns an empty list for nil, which JSON would write as null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
