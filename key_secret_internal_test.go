package auth

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/store"
)

// heldKey is a store of one key.
type heldKey struct {
	store.KeyStore
	key  store.APIKey
	err  error
	used []time.Time
}

func (s *heldKey) Key(_ context.Context, id string) (store.APIKey, error) {
	if id != s.key.ID && s.err == nil {
		return store.APIKey{}, store.ErrNotFound
	}
	return s.key, s.err
}

func (s *heldKey) UseKey(_ context.Context, id string, at time.Time) error {
	if s.used = append(s.used, at); id != s.key.ID {
		return errors.New("another key")
	}
	return nil
}

// A text is a secret key by the very hash that is kept of it, or by the one of before a
// rotation for as long as that is good; while the key is live, and from where it may be
// used. What is wrong with a key is said of nothing but that key.
func TestSecretKeysAreJudgedByAllThatIsKept(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	id := uuid.NewString()
	text := func(id string, public bool) string {
		s, err := apikey.New(apikey.Parts{Public: public, Environment: "live", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	right, former, guessed, other := text(id, false), text(id, false), text(id, false), text(uuid.NewString(), false)
	seen := requestClient{Client: Client{IP: netip.MustParseAddr("192.0.2.7")}}
	unsure := requestClient{Client: seen.Client, unsure: true}
	for name, c := range map[string]struct {
		edit   func(*store.APIKey)
		text   string
		client requestClient
		err    error
		wrong  string // begin of what is wrong; "-" is nothing
		fails  bool
	}{
		"right":                       {nil, right, seen, nil, "-", false},
		"guessed":                     {nil, guessed, seen, nil, errUnknownSecretKey.Error(), false},
		"of another id":               {nil, other, seen, nil, errUnknownSecretKey.Error(), false},
		"the former":                  {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(1) }, former, seen, nil, "-", false},
		"right beside the former":     {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(1) }, right, seen, nil, "-", false},
		"the former, which is over":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now }, former, seen, nil, errUnknownSecretKey.Error(), false},
		"right beside the one over":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now }, right, seen, nil, "-", false},
		"guessed beside the former":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(time.Hour) }, guessed, seen, nil, errUnknownSecretKey.Error(), false},
		"guessed before there is one": {func(k *store.APIKey) { k.PreviousUntil = now.Add(time.Hour) }, guessed, seen, nil, errUnknownSecretKey.Error(), false},
		"of a public key":             {func(k *store.APIKey) { k.Public = true }, right, seen, nil, errUnknownSecretKey.Error(), false},
		"revoked":                     {func(k *store.APIKey) { k.RevokedAt = now }, right, seen, nil, "the secret key " + id + " was revoked", false},
		"revoked, and the former": {func(k *store.APIKey) {
			k.RevokedAt, k.PreviousHash, k.PreviousUntil = now, apikey.Hash(former), now.Add(1)
		}, former, seen, nil, "the secret key " + id + " was revoked", false},
		"revoked, and guessed":           {func(k *store.APIKey) { k.RevokedAt = now }, guessed, seen, nil, errUnknownSecretKey.Error(), false},
		"expired":                        {func(k *store.APIKey) { k.ExpiresAt = now }, right, seen, nil, "the secret key " + id + " was revoked or has expired", false},
		"about to":                       {func(k *store.APIKey) { k.ExpiresAt = now.Add(1) }, right, seen, nil, "-", false},
		"from its network":               {func(k *store.APIKey) { k.Networks = []string{"no network", "192.0.2.0/24"} }, right, seen, nil, "-", false},
		"from its network, as IPv6":      {func(k *store.APIKey) { k.Networks = []string{"192.0.2.0/24"} }, right, requestClient{Client: Client{IP: netip.MustParseAddr("::ffff:192.0.2.7")}}, nil, "-", false},
		"from elsewhere":                 {func(k *store.APIKey) { k.Networks = []string{"198.51.100.0/24", "2001:db8::/32"} }, right, seen, nil, "the secret key " + id + " may not be used", false},
		"from elsewhere, and guessed":    {func(k *store.APIKey) { k.Networks = []string{"198.51.100.0/24"} }, guessed, seen, nil, errUnknownSecretKey.Error(), false},
		"perhaps from its network":       {func(k *store.APIKey) { k.Networks = []string{"192.0.2.0/24"} }, right, unsure, nil, "the secret key " + id + " may not be used", false},
		"perhaps from anywhere":          {nil, right, unsure, nil, "-", false},
		"of one who is not seen":         {func(k *store.APIKey) { k.Networks = []string{"0.0.0.0/0"} }, right, requestClient{}, nil, "the secret key " + id + " may not be used", false},
		"of a store that is away":        {nil, right, seen, errors.New("away"), "", true},
		"of a store that says not found": {nil, guessed, seen, store.ErrNotFound, errUnknownSecretKey.Error(), false},
	} {
		store := &heldKey{key: store.APIKey{ID: id, Hash: apikey.Hash(right), Scopes: []string{"a"}}, err: c.err}
		if c.edit != nil {
			c.edit(&store.key)
		}
		a := &Auth{keyStore: store, cfg: config{now: func() time.Time { return now }}}
		k, wrong, err := a.findSecretKey(context.WithValue(t.Context(), clientKey{}, c.client), c.text)
		switch {
		case (err != nil) != c.fails:
			t.Errorf("%s: %v", name, err)
		case c.wrong == "-" && (wrong != nil || !reflect.DeepEqual(k, store.key)):
			t.Errorf("%s: %+v, %v", name, k, wrong)
		case c.wrong != "-" && (k.Hash != nil || k.ID != ""):
			t.Errorf("%s: it is %+v", name, k)
		case c.wrong != "-" && c.wrong != "" && (wrong == nil || !strings.HasPrefix(wrong.Error(), c.wrong)):
			t.Errorf("%s: %v", name, wrong)
		}
	}
}

// The use of a key is noted once a minute, and of those in the store only.
func TestUsesOfKeysAreNotedOnceAMinute(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	for ago, noted := range map[time.Duration]int{time.Minute: 1, time.Minute - time.Microsecond: 0, 0: 0, time.Hour: 1, -time.Second: 0} {
		st := &heldKey{key: store.APIKey{ID: "k"}}
		a := &Auth{keyStore: st, cfg: config{now: func() time.Time { return now }}}
		a.noteUse(t.Context(), &store.APIKey{ID: "k", LastUsedAt: now.Add(-ago)})
		if len(st.used) != noted || noted == 1 && !st.used[0].Equal(now) {
			t.Errorf("%s ago: noted %v", ago, st.used)
		}
		a.noteUse(t.Context(), &store.APIKey{}) // of an option
		if len(st.used) != noted {
			t.Error("the use of a key that the store has not is noted")
		}
	}
}
