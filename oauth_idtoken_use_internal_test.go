package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/oidc"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// A token is used up once, is none that lives too long to remember that, and whoever
// runs the service can read which of both it was; a fault of the store is neither. What
// was used up by our own fault is given back as it was drawn.
func TestIDTokensAreUsedUp(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	p := &oauthClient{Provider: provider.Provider{Name: "google"}}
	for name, c := range map[string]struct {
		left   time.Duration
		d      store.Decision
		err    error
		draws  int
		reason string
		code   Code
	}{
		"good":                     {maxIDTokenLife, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 1, "", ""},
		"over already":             {-time.Second, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 1, "", ""},
		"of a store that is away":  {time.Hour, store.Decision{}, errors.New("away"), 1, "", CodeUnavailable},
		"used":                     {time.Hour, store.Decision{Remaining: []int{0}, RetryAfter: time.Hour}, nil, 1, "was used already", ""},
		"that lives for too long":  {maxIDTokenLife + 1, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 0, "lives too long", ""},
		"used, and lives too long": {maxIDTokenLife + time.Hour, store.Decision{Remaining: []int{0}}, nil, 0, "lives too long", ""},
	} {
		var drawn []store.Draw
		st := &drawing{take: func(draws []store.Draw) (store.Decision, error) { drawn = append(drawn, draws...); return c.d, c.err }}
		a := &Auth{keys: testKeys(t), store: st, counter: &journal.Counter{}, cfg: config{now: func() time.Time { return now }}}
		token := nativeToken{expires: now.Add(c.left), sum: [32]byte{1}}
		err := a.useIDToken(t.Context(), p, token)
		var fault *oidc.TokenError
		switch {
		case len(drawn) != c.draws:
			t.Errorf("%s: drew %+v", name, drawn)
		case c.reason != "" && (!errors.As(err, &fault) || fault.Reason != c.reason || !strings.HasSuffix(err.Error(), c.reason)):
			t.Errorf("%s: %v", name, err)
		case c.reason == "" && c.code == "" && err != nil, c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%s: %v", name, err)
		}
		if c.draws == 0 {
			continue
		}
		c.err, c.d = nil, store.Decision{Allowed: true, Remaining: []int{1}}
		a.returnIDToken(t.Context(), p, token)
		if back := drawn[len(drawn)-1]; len(drawn) != 2 || drawn[0].Cost != 1 || back.Cost != -1 || back.Key != drawn[0].Key || back.Rate != drawn[0].Rate {
			t.Errorf("%s: drew %+v", name, drawn)
		}
	}
}
