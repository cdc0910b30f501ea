package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// listing is a store that answers a question about invitations as it is told.
type listing struct {
	Store
	asked store.InvitationQuery
	list  []store.Token
	err   error
}

func (s *listing) ListInvitations(_ context.Context, q store.InvitationQuery) ([]store.Token, error) {
	s.asked = q
	return s.list, s.err
}

// Invitations are listed whole, with what to ask for next where there may be more; one
// without particulars is a fault of ours, not one less.
func TestInvitationsAreListedWhole(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	at := &store.InvitationCursor{CreatedAt: now, Subject: "before"}
	token := func(id string, data any) store.Token {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return store.Token{Subject: id, Hash: []byte("hash of " + id), CreatedAt: now.Add(-time.Hour), Data: raw}
	}
	a, b := host.Invitation{ID: "a", Email: "ada@example.com", Metadata: map[string]any{}}, host.Invitation{ID: "b", Email: "bob@example.com", Metadata: map[string]any{}}
	both := []store.Token{token("a", linkData{Invitation: &a}), token("b", linkData{Invitation: &b})}
	odd := token("b", "no particulars")
	for name, c := range map[string]struct {
		store Store
		limit int
		want  []host.Invitation
		next  string
		code  Code
	}{
		"none":                       {&listing{}, 2, nil, "", ""},
		"all":                        {&listing{list: both}, 3, []host.Invitation{a, b}, "", ""},
		"perhaps not all":            {&listing{list: both}, 2, []host.Invitation{a, b}, "b", ""},
		"one":                        {&listing{list: both[:1]}, 1, []host.Invitation{a}, "a", ""},
		"without particulars":        {&listing{list: []store.Token{both[0], token("b", linkData{})}}, 3, nil, "", CodeInternal},
		"with none that can be read": {&listing{list: []store.Token{both[0], odd}}, 3, nil, "", CodeInternal},
		"that cannot be asked for":   {&listing{err: errors.New("away")}, 2, nil, "", CodeUnavailable},
		"of a store that has none":   {&drawing{}, 2, nil, "", CodeInternal},
	} {
		auth := &Auth{store: c.store, cfg: config{now: func() time.Time { return now }}}
		list, hashes, next, err := kit{auth}.Invitations(t.Context(), "id", at, c.limit)
		if c.code != "" {
			if !errors.Is(err, c.code) || list != nil || hashes != nil || next != nil {
				t.Errorf("%s: %+v, %v", name, list, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(list, c.want) || len(hashes) != len(c.want) {
			t.Errorf("%s: %+v, %q, %v", name, list, hashes, err)
		}
		for i, h := range hashes {
			if !bytes.Equal(h, []byte("hash of "+list[i].ID)) {
				t.Errorf("%s: %q", name, hashes)
			}
		}
		if (next != nil) != (c.next != "") || next != nil && *next != (store.InvitationCursor{CreatedAt: now.Add(-time.Hour), Subject: c.next}) {
			t.Errorf("%s: goes on after %+v", name, next)
		}
		if s, ok := c.store.(*listing); ok && !reflect.DeepEqual(s.asked, store.InvitationQuery{Subject: "id", Now: now, After: at, Limit: c.limit}) {
			t.Errorf("%s: asked for %+v", name, s.asked)
		}
	}
}

// A key of the options is known by its name for as long as they have it, and what once
// was one is told from what never was.
func TestSecretKeysByTheirNames(t *testing.T) {
	c := configOf(WithSecretKeys(SecretKey{"sk_test_01234567", []string{"a"}}, SecretKey{"sk_test_12345678", []string{"b"}}))
	kit := kit{&Auth{cfg: c}}
	for _, k := range c.secretKeys {
		if len(k.Name) != len("secret key 01234567") || !strings.HasPrefix(k.Name, "secret key ") {
			t.Errorf("a key is named %q", k.Name)
		}
		if got, named, there := kit.SecretKeyNamed(k.Name); !named || !there || !reflect.DeepEqual(got, k) {
			t.Errorf("%s: %+v, %t, %t", k.Name, got, named, there)
		}
	}
	for name, was := range map[string]bool{"secret key 00000000": true, "nightly export": false, "": false} {
		if got, named, there := kit.SecretKeyNamed(name); named != was || there || got.Name != "" {
			t.Errorf("%q: %+v, %t, %t", name, got, named, there)
		}
	}
}
