package passkey

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/host"
)

func bound(tb testing.TB) *Passkeys {
	tb.Helper()
	p := New(Options{})
	if err := p.Bind(func() *url.URL { return &url.URL{Scheme: "https", Host: "auth.test"} }, func() string { return "Notes" }); err != nil {
		tb.Fatal(err)
	}
	return p
}

const someChallenge = "c29tZSBjaGFsbGVuZ2U"

// registered returns a stored passkey, and the responses of its registration and of a use.
func registered(tb testing.TB, p *Passkeys) (k host.Passkey, created, used json.RawMessage) {
	tb.Helper()
	key := authenticator.New("https://auth.test")
	created, err := key.Create(p.Creation(host.PasskeyCreation{Challenge: someChallenge, Handle: []byte("handle"), Name: "ada@example.com"}))
	if err == nil {
		k, err = p.Register(created, func(c string) (bool, bool) { return c == someChallenge, false })
	}
	if err == nil {
		used, err = key.Get(p.Request(someChallenge, nil))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return k, created, used
}

// Everything that is parsed before a signature is checked ends in an error or a result, and a
// registration that passes can be read again.
func FuzzRegister(f *testing.F) {
	p := bound(f)
	_, created, used := registered(f, p)
	f.Add([]byte(created))
	f.Add([]byte(used))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, response []byte) {
		k, err := p.Register(response, func(string) (bool, bool) { return true, true })
		if err != nil {
			return
		}
		if _, err := readRecord(k.Record); err != nil || len(k.ID) == 0 {
			t.Errorf("%q: %v", response, err)
		}
		p.Describe(k)
	})
}

func FuzzAssertion(f *testing.F) {
	p := bound(f)
	k, created, used := registered(f, p)
	f.Add([]byte(used))
	f.Add([]byte(created))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, response []byte) {
		a, err := p.Assertion(response)
		if err != nil {
			return
		}
		_, _, _ = a.ID(), a.Handle(), a.Challenge()
		if _, err := a.Verify(k, time.Unix(0, 0)); err == nil && string(a.ID()) != string(k.ID) {
			t.Errorf("%q is a valid assertion by another passkey", response)
		}
	})
}

// Stored records come from imports, too.
func FuzzRecord(f *testing.F) {
	p := bound(f)
	k, _, used := registered(f, p)
	f.Add(k.Record, k.State)
	f.Add([]byte(`{"auth_data":"AAAA"}`), []byte(`{}`))
	a, err := p.Assertion(used)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, record, state []byte) {
		other := host.Passkey{ID: k.ID, Record: record, State: state}
		p.Describe(other)
		p.Request(someChallenge, []host.Passkey{other})
		_, _ = a.Verify(other, time.Unix(0, 0))
		p.Confirmed(state)
	})
}

// The state remembers used challenges for as long as they could be used again, and no longer.
func TestUsedChallenges(t *testing.T) {
	var s state
	now := time.Unix(1_800_000_000, 0)
	for i := range maxUsed {
		if err := s.use(string(rune('a'+i)), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.use("more", now); err != errTooMany { //nolint:errorlint // the very value
		t.Errorf("%v", err)
	}
	if err := s.use("a", now.Add(challengeLife*time.Second-1)); err != errUsed { //nolint:errorlint // the very value
		t.Errorf("%v", err)
	}
	if err := s.use("a", now.Add(challengeLife*time.Second)); err != nil || len(s.Used) != 1 {
		t.Errorf("%v, %d remembered", err, len(s.Used))
	}
}

// WebAuthn, section 6.1.1: a counter of 0 on both sides is none.
func TestCounterGrows(t *testing.T) {
	for _, c := range []struct {
		before, now uint32
		want        bool
	}{{0, 0, true}, {0, 1, true}, {1, 2, true}, {1, 1, false}, {2, 1, false}, {1, 0, false}} {
		if got := counterGrew(c.before, c.now); got != c.want {
			t.Errorf("%d after %d: %v", c.now, c.before, got)
		}
	}
}

// Every name belongs to an AAGUID as it is looked up.
func TestNames(t *testing.T) {
	if authenticatorName("fbfc3007-154e-4ecc-8c0b-6e020557d7bd") != "iCloud Keychain" || authenticatorName(uuid.Nil.String()) != "" {
		t.Error(names())
	}
	for id, name := range names() {
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id || name == "" {
			t.Errorf("%q: %q", id, name)
		}
	}
}
