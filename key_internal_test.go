package auth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// The name of an option's secret key identifies the key and cannot authenticate.
func TestSecretKeysOfOptionsHaveNames(t *testing.T) {
	var c config
	scopes := []string{"auth.users.read"}
	WithSecretKeys(SecretKey{Key: "sk_0123456789abc", Scopes: scopes}, SecretKey{Key: "sk_abcdefghijklm", Scopes: []string{"*"}})(&c)
	if len(c.errs) > 0 {
		t.Fatal(c.errs)
	}
	key := func(text string, scopes ...string) store.APIKey {
		return store.APIKey{Name: fmt.Sprintf("secret key %x", apikey.Hash(text)[:4]), Hash: apikey.Hash(text), Scopes: scopes}
	}
	want := []store.APIKey{key("sk_0123456789abc", "auth.users.read"), key("sk_abcdefghijklm", "*")}
	scopes[0] = "*" // belongs to the caller
	if !reflect.DeepEqual(c.secretKeys, want) {
		t.Errorf("%+v\nwant %+v", c.secretKeys, want)
	}
}

// countingKeys is a store of keys that counts reads.
type countingKeys struct {
	store.ProjectStore
	list  []store.APIKey
	reads int
}

func (s *countingKeys) Keys(context.Context, store.KeyQuery) ([]store.APIKey, error) {
	s.reads++
	return s.list, nil
}

func (s *countingKeys) Key(context.Context, string) (store.APIKey, error) {
	s.reads++
	return store.APIKey{}, store.ErrNotFound
}

func (s *countingKeys) UseKey(context.Context, string, time.Time) error { return nil }

// Only texts in the format of stored keys are looked up, and only as their own kind. A
// store without keys has none.
func TestOnlyTextsOfKeysAreLookedUp(t *testing.T) {
	text := func(public bool) string {
		s, err := apikey.New(apikey.Parts{Public: public, Environment: "live", ID: uuid.NewString()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	public, secret := text(true), text(false)
	for name, c := range map[string]struct {
		text          string
		public, reads [2]int // keys found and reads: as a public key, as a secret key
	}{
		"public":       {public, [2]int{1, 0}, [2]int{1, 0}},
		"secret":       {secret, [2]int{0, 0}, [2]int{0, 1}},
		"of no form":   {"pk_live_nothing", [2]int{}, [2]int{}},
		"no secret":    {"sk_live_nothing", [2]int{}, [2]int{}},
		"none":         {"", [2]int{}, [2]int{}},
		"cut off":      {public[:len(public)-1], [2]int{}, [2]int{}},
		"secret's end": {secret[:len(secret)-1], [2]int{}, [2]int{}},
	} {
		for as, look := range []func(a *Auth) (bool, error){
			func(a *Auth) (bool, error) { return a.isStoredKey(t.Context(), c.text) },
			func(a *Auth) (bool, error) {
				k, wrong, err := a.findSecretKey(t.Context(), c.text)
				if wrong == nil {
					t.Errorf("%s: nothing is wrong with it", name)
				}
				return k.Hash != nil, err
			},
		} {
			store := &countingKeys{list: []store.APIKey{{ID: "k", Public: true, Hash: apikey.Hash(public)}}}
			a := &Auth{project: store, publicKeys: &publicKeys{reading: make(chan struct{}, 1)}, cfg: config{now: time.Now}}
			found, err := look(a)
			if err != nil || found != (c.public[as] == 1) || store.reads != c.reads[as] {
				t.Errorf("%s as %d: %t, %v, %d reads", name, as, found, err, store.reads)
			}
			if found, err := look(&Auth{cfg: a.cfg}); found || err != nil {
				t.Errorf("%s as %d, of no store: %t, %v", name, as, found, err)
			}
		}
	}
}

// The keyring contains each kind of key from the options.
func TestKeyringHasEveryKeyOfTheOptions(t *testing.T) {
	one, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	two, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, old := testsecret.Of("s"), testsecret.Of("o")
	for name, c := range map[string]struct {
		config config
		alg    string
		public int // published keys
		ids    int
	}{
		"a secret":            {config{secrets: [][]byte{secret}}, "ES256", 1, 1},
		"two secrets":         {config{secrets: [][]byte{secret, old}}, "ES256", 2, 2},
		"an algorithm":        {config{secrets: [][]byte{secret}, tokens: TokenOptions{Algorithm: "EdDSA"}}, "EdDSA", 1, 1},
		"a signer":            {config{secrets: [][]byte{secret}, signer: one}, "ES256", 1, 1},
		"a signer and before": {config{secrets: [][]byte{secret}, signer: one, verifiers: []crypto.PublicKey{two.Public()}}, "ES256", 2, 1},
		"a shared secret":     {config{secrets: [][]byte{secret}, shared: [][]byte{secret, old}}, "HS256", 0, 1},
	} {
		k, err := c.config.newKeys()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := strings.Count(string(k.JWKS()), `"kid"`); k.Signing().Algorithm != c.alg || n != c.public || len(k.IDs()) != c.ids {
			t.Errorf("%s: signs by %s, publishes %d, has %d ids", name, k.Signing().Algorithm, n, len(k.IDs()))
		}
		if _, ok := c.config.signer.(*ecdsa.PrivateKey); ok && k.Signing().Key != any(one) {
			t.Errorf("%s: signs by another key", name)
		}
	}
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&config{secrets: [][]byte{secret}, signer: one, verifiers: []crypto.PublicKey{other.Public()}, shared: [][]byte{[]byte("short")}}).newKeys(); err == nil {
		t.Error("keys that will not do are taken")
	}
}

// tokenMaker is a service that can issue tokens.
func tokenMaker(t *testing.T, now time.Time) *Auth {
	t.Helper()
	a := &Auth{cfg: config{secrets: [][]byte{[]byte("a secret of the tests', 32 bytes")}, now: func() time.Time { return now }}}
	if err := a.buildTokens(); err != nil {
		t.Fatal(err)
	}
	return a
}

// A token that cannot be issued is an internal error. The actor of a token is named with
// their session.
func TestTokensThatCannotBeMade(t *testing.T) {
	now := time.Unix(1767323045, 0)
	unwritable := map[string]any{"x": make(chan int)}
	a := tokenMaker(t, now)
	for name, c := range map[string]struct {
		user   User
		custom map[string]any
		want   Code
	}{
		"good":                      {User{ID: "ada"}, map[string]any{"plan": "free"}, ""},
		"of no custom claims":       {User{ID: "ada"}, unwritable, CodeInternal},
		"of metadata that are none": {User{ID: "ada", AppMetadata: unwritable}, nil, CodeInternal},
	} {
		text, until, err := a.accessToken(t.Context(), c.user, Session{ID: "s"}, c.custom, now)
		switch {
		case c.want == "" && (err != nil || text == "" || !until.Equal(now.Add(15*time.Minute))):
			t.Errorf("%s: %q until %v, %v", name, text, until, err)
		case c.want != "" && (!errors.Is(err, c.want) || text != "" || !until.IsZero()):
			t.Errorf("%s: %q until %v, %v", name, text, until, err)
		}
	}
	by := &store.Impersonation{ActorID: "eve", ActorSessionID: "e", UserRevision: 1, RolesRevision: 2, ActorRevision: 3}
	text, until, err := a.signAccess(t.Context(), User{ID: "ada"}, Session{ID: "s"}, by, nil, now, now.Add(time.Minute))
	if err != nil || !until.Equal(now.Add(time.Minute)) {
		t.Fatalf("%v, %v", until, err)
	}
	claims, err := a.Verify(text)
	if err != nil {
		t.Fatal(err)
	}
	if claims.Impersonator == nil || *claims.Impersonator != (SessionRef{ID: "e", UserID: "eve"}) || claims.UserID != "ada" || claims.SessionID != "s" {
		t.Errorf("%+v", claims)
	}
}

// Errors of access tokens have codes and causes.
func TestRefusedTokensHaveCodes(t *testing.T) {
	now := time.Unix(1767323045, 0)
	a := tokenMaker(t, now)
	text, _, err := a.accessToken(t.Context(), User{ID: "ada"}, Session{ID: "s"}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	other := &Auth{cfg: a.cfg}
	other.cfg.secrets = [][]byte{[]byte("another of the tests', 32 bytes.")}
	if err := other.buildTokens(); err != nil {
		t.Fatal(err)
	}
	later := &Auth{cfg: a.cfg}
	later.cfg.now = func() time.Time { return now.Add(time.Hour) }
	if err := later.buildTokens(); err != nil {
		t.Fatal(err)
	}
	service := func(r store.Revocation) *Auth {
		r.At = now
		b := tokenMaker(t, now)
		b.Revoke(r)
		return b
	}
	for name, c := range map[string]struct {
		by    *Auth
		token string
		want  string
	}{
		"good":          {a, text, ""},
		"too long":      {a, strings.Repeat("x", token.MaxLength+1), "auth: bad_token: too long"},
		"of no form":    {a, "x", "auth: bad_token: token is malformed: token contains an invalid number of segments"},
		"expired":       {later, text, "auth: bad_token: token has invalid claims: token is expired"},
		"of other keys": {other, text, "auth: bad_token: " + errOtherKey.Error()},
		"revoked":       {service(store.Revocation{SessionID: "s"}), text, "auth: session_ended: revoked"},
		"stale":         {service(store.Revocation{UserID: "ada", Stale: 1}), text, "auth: token_stale"},
	} {
		_, err := c.by.Verify(c.token)
		var e *Error
		switch {
		case c.want == "" && err != nil, c.want != "" && (!errors.As(err, &e) || e.Error() != c.want):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case errors.As(err, &mistake{}) != (name == "of other keys"):
			t.Errorf("%s: a mistake of the developer's: %t", name, !errors.As(err, &mistake{}))
		}
	}
}

// usedKeys is a store that fails to record the use of keys.
type usedKeys struct {
	store.ProjectStore
	noted []string
	err   error
}

func (s *usedKeys) UseKey(_ context.Context, id string, _ time.Time) error {
	s.noted = append(s.noted, id)
	return s.err
}

// The use of a key is recorded once a minute, and a failure to record it fails no request.
func TestUseOfKeysIsNoted(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	for name, c := range map[string]struct {
		key  store.APIKey
		err  error
		want int
		log  string
	}{
		"the first":      {store.APIKey{ID: "k"}, nil, 1, ""},
		"a minute later": {store.APIKey{ID: "k", LastUsedAt: now.Add(-time.Minute)}, nil, 1, ""},
		"before that":    {store.APIKey{ID: "k", LastUsedAt: now.Add(-time.Minute + 1)}, nil, 0, ""},
		"of the options": {store.APIKey{}, nil, 0, ""},
		"not":            {store.APIKey{ID: "k"}, errors.New("away"), 1, "the use of an API key was not recorded"},
	} {
		var log bytes.Buffer
		s := &usedKeys{err: c.err}
		a := &Auth{project: s, cfg: config{now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil))}}
		a.noteUse(t.Context(), &c.key)
		if len(s.noted) != c.want || (log.Len() > 0) != (c.log != "") || !strings.Contains(log.String(), c.log) {
			t.Errorf("%s: noted %v, the log says %q", name, s.noted, log.String())
		}
	}
}

// heldKey is a store of one key.
type heldKey struct {
	store.ProjectStore
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

// A secret key matches by its stored hash or, for a limited time after a rotation, by the
// previous one. The key must be active and used from an allowed IP address. Errors name
// their reason only for a matching key.
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
	right, former, wrong, other := text(id, false), text(id, false), text(id, false), text(uuid.NewString(), false)
	seen := requestClient{Client: Client{IP: netip.MustParseAddr("192.0.2.7")}}
	unsure := requestClient{Client: seen.Client, unsure: true}
	for name, c := range map[string]struct {
		edit   func(*store.APIKey)
		text   string
		client requestClient
		err    error
		wrong  string // start of the error; "-": none
		fails  bool
	}{
		"right":                       {nil, right, seen, nil, "-", false},
		"guessed":                     {nil, wrong, seen, nil, errUnknownSecretKey.Error(), false},
		"of another id":               {nil, other, seen, nil, errUnknownSecretKey.Error(), false},
		"the former":                  {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(1) }, former, seen, nil, "-", false},
		"right beside the former":     {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(1) }, right, seen, nil, "-", false},
		"the former, which is over":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now }, former, seen, nil, errUnknownSecretKey.Error(), false},
		"right beside the one over":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now }, right, seen, nil, "-", false},
		"guessed beside the former":   {func(k *store.APIKey) { k.PreviousHash, k.PreviousUntil = apikey.Hash(former), now.Add(time.Hour) }, wrong, seen, nil, errUnknownSecretKey.Error(), false},
		"guessed before there is one": {func(k *store.APIKey) { k.PreviousUntil = now.Add(time.Hour) }, wrong, seen, nil, errUnknownSecretKey.Error(), false},
		"of a public key":             {func(k *store.APIKey) { k.Public = true }, right, seen, nil, errUnknownSecretKey.Error(), false},
		"revoked":                     {func(k *store.APIKey) { k.RevokedAt = now }, right, seen, nil, "the secret key " + id + " was revoked", false},
		"revoked, and the former": {func(k *store.APIKey) {
			k.RevokedAt, k.PreviousHash, k.PreviousUntil = now, apikey.Hash(former), now.Add(1)
		}, former, seen, nil, "the secret key " + id + " was revoked", false},
		"revoked, and guessed":           {func(k *store.APIKey) { k.RevokedAt = now }, wrong, seen, nil, errUnknownSecretKey.Error(), false},
		"expired":                        {func(k *store.APIKey) { k.ExpiresAt = now }, right, seen, nil, "the secret key " + id + " was revoked or has expired", false},
		"about to":                       {func(k *store.APIKey) { k.ExpiresAt = now.Add(1) }, right, seen, nil, "-", false},
		"from its network":               {func(k *store.APIKey) { k.Networks = []string{"no network", "192.0.2.0/24"} }, right, seen, nil, "-", false},
		"from its network, as IPv6":      {func(k *store.APIKey) { k.Networks = []string{"192.0.2.0/24"} }, right, requestClient{Client: Client{IP: netip.MustParseAddr("::ffff:192.0.2.7")}}, nil, "-", false},
		"from elsewhere":                 {func(k *store.APIKey) { k.Networks = []string{"198.51.100.0/24", "2001:db8::/32"} }, right, seen, nil, "the secret key " + id + " may not be used", false},
		"from elsewhere, and guessed":    {func(k *store.APIKey) { k.Networks = []string{"198.51.100.0/24"} }, wrong, seen, nil, errUnknownSecretKey.Error(), false},
		"perhaps from its network":       {func(k *store.APIKey) { k.Networks = []string{"192.0.2.0/24"} }, right, unsure, nil, "the secret key " + id + " may not be used", false},
		"perhaps from anywhere":          {nil, right, unsure, nil, "-", false},
		"of one who is not seen":         {func(k *store.APIKey) { k.Networks = []string{"0.0.0.0/0"} }, right, requestClient{}, nil, "the secret key " + id + " may not be used", false},
		"of a store that is away":        {nil, right, seen, errors.New("away"), "", true},
		"of a store that says not found": {nil, wrong, seen, store.ErrNotFound, errUnknownSecretKey.Error(), false},
	} {
		store := &heldKey{key: store.APIKey{ID: id, Hash: apikey.Hash(right), Scopes: []string{"a"}}, err: c.err}
		if c.edit != nil {
			c.edit(&store.key)
		}
		a := &Auth{project: store, cfg: config{now: func() time.Time { return now }}}
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

// The use of a key is recorded once a minute, and only for keys in the store.
func TestUsesOfKeysAreNotedOnceAMinute(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	for ago, noted := range map[time.Duration]int{time.Minute: 1, time.Minute - time.Microsecond: 0, 0: 0, time.Hour: 1, -time.Second: 0} {
		st := &heldKey{key: store.APIKey{ID: "k"}}
		a := &Auth{project: st, cfg: config{now: func() time.Time { return now }}}
		a.noteUse(t.Context(), &store.APIKey{ID: "k", LastUsedAt: now.Add(-ago)})
		if len(st.used) != noted || noted == 1 && !st.used[0].Equal(now) {
			t.Errorf("%s ago: noted %v", ago, st.used)
		}
		a.noteUse(t.Context(), &store.APIKey{}) // key of an option
		if len(st.used) != noted {
			t.Error("the use of a key that the store has not is noted")
		}
	}
}
