package storetest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// world is a store with users in it, and a list of the rows to watch.
type world struct {
	*bench
	users, sessions, apiKeys []string
	tokens                   []store.TokenRef
	drawn                    []string // keys of rate limits
	jobs                     []string
}

func newWorld(b *bench) *world { return &world{bench: b} }

// person adds a watched user with every field set to distinct values.
func (w *world) person(roles ...string) store.User {
	w.Helper()
	nu := w.newUser("")
	id := uuid.MustParse(nu.User.ID)
	nu.User.Email, nu.User.EmailVerifiedAt = id.String()+"@example.com", now
	nu.User.Phone, nu.User.PhoneVerifiedAt = fmt.Sprintf("+49%012d", binary.BigEndian.Uint64(id[8:])%1e12), now
	nu.User.Roles, nu.PasswordHash = append([]string{"r"}, roles...), "hash"
	nu.User.AcceptedSequence = int64(len(roles))
	nu.User.Identities = []store.Identity{w.identity("p", nu.User.ID)}
	u, err := w.create(nu)
	w.ok(err)
	w.users = append(w.users, u.ID)
	return u
}

// as reads the current user.
func (w *world) as(id string) store.User {
	w.Helper()
	u, err := w.User(w.ctx(), store.ByID(id))
	w.ok(err)
	return u
}

// device adds a watched session.
func (w *world) device(userID string) store.Session {
	w.Helper()
	s := w.session(userID)
	w.sessions = append(w.sessions, s.ID)
	return s
}

// secret adds a watched token of a user, with its own subject.
func (w *world) secret(userID string, tries int) store.Token {
	w.Helper()
	t := newCode(w.id(), w.id(), tries)
	t.UserID = userID
	w.token(t)
	w.tokens = append(w.tokens, store.TokenRef{Purpose: t.Purpose, Hash: t.Hash})
	return t
}

// newKey describes an API key.
func (w *world) newKey() store.APIKey {
	w.Helper()
	id := w.id()
	w.apiKeys = append(w.apiKeys, id)
	return store.APIKey{ID: id, Name: "key", Hash: hashOf(id), Scopes: []string{"a"}}
}

// state returns every watched row as the store returns it, one per line.
func (w *world) state() []string {
	var lines []string
	add := func(kind, id string, v any, err error) {
		if err != nil {
			v = err
		}
		lines = append(lines, fmt.Sprintf("%s %s: %+v", kind, id, v))
	}
	for _, id := range w.users {
		c, err := w.Credentials(w.ctx(), store.ByID(id))
		c.User = plain(c.User)
		add("user", id, c, err)
		list, err := w.Sessions(w.ctx(), id, now)
		add("sessions of", id, list, err)
		if w.factors != nil {
			f, err := w.factors.Factors(w.ctx(), id)
			add("factors of", id, f, err)
		}
	}
	for _, id := range w.sessions {
		s, _, err := w.Session(w.ctx(), id, now)
		add("session", id, s, err)
	}
	for _, t := range w.tokens {
		token, err := w.PeekToken(w.ctx(), t.Purpose, t.Hash, now)
		add("token", fmt.Sprintf("%s %x", t.Purpose, t.Hash), token, err)
	}
	for _, key := range w.drawn {
		d, err := w.Take(w.ctx(), []store.Draw{{Key: key, Rate: five}}, now)
		add("limit", key, d, err)
	}
	for _, id := range w.jobs {
		j, err := w.admin.Job(w.ctx(), id, now)
		add("job", id, j, err)
	}
	if w.admin != nil {
		list, err := w.admin.Impersonations(w.ctx(), "", now)
		add("impersonations", "of all", list, err)
	}
	if w.project != nil {
		t, err := w.project.Roles(w.ctx())
		add("table", "of roles", t, err)
	}
	if w.project != nil {
		for _, id := range w.apiKeys {
			k, err := w.project.Key(w.ctx(), id)
			add("key", id, k, err)
		}
	}
	if w.project != nil {
		d, err := w.project.Settings(w.ctx())
		add("settings", string(d.Document), d.Revision, err)
	}
	return append(lines, w.recorded()...)
}

// recorded returns the events and messages of the store. It claims the messages for no
// time, so they can be claimed again at once.
func (w *world) recorded() []string {
	var lines []string
	if w.journal != nil {
		list, err := w.journal.Events(w.ctx(), store.EventQuery{Limit: 1000})
		lines = append(lines, fmt.Sprintf("events: %d, %v", len(list), err))
		for _, e := range list {
			lines = append(lines, fmt.Sprintf("event %+v", e))
		}
	}
	if w.journal != nil {
		list, err := w.journal.ClaimMessages(w.ctx(), store.ClaimMessages{Now: now, Until: now, Limit: 1000})
		lines = append(lines, fmt.Sprintf("messages: %d, %v", len(list), err))
		for _, m := range list {
			m.NextAt, m.Attempts = now, 0
			lines = append(lines, fmt.Sprintf("message %+v", m))
		}
	}
	if w.journal != nil {
		for _, r := range w.records(store.MessageQuery{}) {
			lines = append(lines, fmt.Sprintf("record %+v", r))
		}
	}
	return lines
}

// differences returns the lines that only one of two states has.
func differences(before, after []string) []string {
	var lines []string
	for _, l := range before {
		if !slices.Contains(after, l) {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			lines = append(lines, "+ "+l)
		}
	}
	return lines
}

// witness adds an event for each outcome and a message to a change, and returns their ids.
func (w *world) witness(c *store.Change) witnesses {
	w.Helper()
	ids := witnesses{message: w.id()}
	for on := range ids.events {
		ids.events[on] = w.id()
		c.Events = append(c.Events, store.OutcomeEvent{On: store.Outcome(on), Event: store.Event{ID: ids.events[on], Type: store.EventUserUpdated, At: now}})
	}
	log := store.MessageLog{Kind: store.KindMagicLink, Channel: store.ChannelEmail, To: "a•••a@e•••e.com"}
	c.Messages = append(c.Messages, store.SealedMessage{ID: ids.message, Body: []byte("sealed"), CreatedAt: now, NextAt: now, ExpiresAt: now.Add(minute), Log: log})
	return ids
}

// witnesses are the ids of events, by outcome, and of a message.
type witnesses struct {
	events  [store.OutcomeNewDevice + 1]string
	message string
}

var outcomeNames = [...]string{"OutcomeDone", "OutcomeWrongCode", "OutcomeReused", "OutcomeSessionsEnded", "OutcomeReplayed", "OutcomeNewDevice"}

// noticed checks for the events of these outcomes, and no others, with the fields that the
// store filled in, and for the message if one of them is OutcomeDone.
func (w *world) noticed(ids witnesses, about string, ended []string, outcomes ...store.Outcome) {
	w.Helper()
	if w.journal != nil {
		list, err := w.journal.Events(w.ctx(), store.EventQuery{Limit: 1000})
		w.ok(err)
		for on, id := range ids.events {
			i := slices.IndexFunc(list, func(e store.Event) bool { return e.ID == id })
			b, wanted := w.of("event of %s", outcomeNames[on]), slices.Contains(outcomes, store.Outcome(on))
			equal(b, "recorded", i >= 0, wanted)
			if i < 0 || !wanted {
				continue
			}
			equal(b, "Event.UserID", list[i].UserID, about)
			if store.Outcome(on) == store.OutcomeSessionsEnded {
				listed(b, "Event.SessionIDs", list[i].SessionIDs, ended)
			}
		}
	}
	if w.journal != nil {
		list, err := w.journal.ClaimMessages(w.ctx(), store.ClaimMessages{Now: now, Until: now.Add(minute), Limit: 1000})
		w.ok(err)
		got := slices.ContainsFunc(list, func(m store.SealedMessage) bool { return m.ID == ids.message })
		equal(w.bench, "message recorded", got, slices.Contains(outcomes, store.OutcomeDone))
	}
	if w.journal != nil {
		equal(w.bench, "message noted", len(w.records(store.MessageQuery{ID: ids.message})) == 1, slices.Contains(outcomes, store.OutcomeDone))
	}
}
