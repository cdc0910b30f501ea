package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// Evidence is valid while the account has the credential that it rests on, and no other.
func TestProofsHoldByWhatTheyRestOn(t *testing.T) {
	has := store.Credentials{PasswordHash: "hash", User: User{Email: "Ada@example.com", Phone: "+49301", Identities: []Identity{{Provider: "github", Subject: "2"}, {Provider: "google", Subject: "1"}}}}
	for name, c := range map[string]struct {
		by    credentialRef
		with  func(*store.Credentials)
		holds bool
	}{
		"an identity":                         {credentialRef{Provider: "google", Subject: "1"}, nil, true},
		"an identity of another subject":      {credentialRef{Provider: "google", Subject: "2"}, nil, false},
		"an identity of another provider":     {credentialRef{Provider: "apple", Subject: "1"}, nil, false},
		"an identity, whatever the address":   {credentialRef{Provider: "google", Subject: "1", Email: "eve@example.com"}, nil, true},
		"no identity, although the address":   {credentialRef{Provider: "google", Subject: "3", Email: "ada@example.com"}, nil, false},
		"an address":                          {credentialRef{Email: "ADA@example.com"}, nil, true},
		"another address":                     {credentialRef{Email: "eve@example.com"}, nil, false},
		"another address, although a number":  {credentialRef{Email: "eve@example.com", Phone: "+49301"}, nil, false},
		"a number":                            {credentialRef{Phone: "+49301"}, nil, true},
		"another number":                      {credentialRef{Phone: "+49302"}, nil, false},
		"a password":                          {byPassword("hash"), nil, true},
		"another password":                    {byPassword("other"), nil, false},
		"a password that is gone":             {byPassword("hash"), func(c *store.Credentials) { c.PasswordHash = "" }, false},
		"no password, where there is none":    {byPassword(""), func(c *store.Credentials) { c.PasswordHash = "" }, false},
		"nothing":                             {credentialRef{}, nil, false},
		"nothing, where there is nothing":     {credentialRef{}, func(c *store.Credentials) { *c = store.Credentials{} }, false},
		"an identity, where there is nothing": {credentialRef{Provider: "google", Subject: "1"}, func(c *store.Credentials) { *c = store.Credentials{} }, false},
	} {
		now := has
		if c.with != nil {
			c.with(&now)
		}
		if got := c.by.isCurrent(now); got != c.holds {
			t.Errorf("%s: holds %t", name, got)
		}
	}
}

// began returns the time in a session's id.
func began(id string) time.Time { return time.Unix(uuid.MustParse(id).Time().UnixTime()) }

// A session starts with all known fields. Clients receive all of them except the
// server's own.
func TestSessionsBeginWhole(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	a := &Auth{cfg: config{now: func() time.Time { return now }}}
	client := Client{IP: netip.MustParseAddr("192.0.2.7"), UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:1.0) Firefox/1.0", Device: "device"}
	ctx := ContextWithClient(t.Context(), client)
	amr := a.newAMR("password")
	if !slices.Equal(amr, []AMR{{Method: "password", Timestamp: now.Unix()}}) {
		t.Errorf("proof %+v", amr)
	}
	want := Session{
		UserID: "ada", AAL: "aal1", AMR: amr, CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour),
		IP: "192.0.2.7", UserAgent: client.UserAgent, Device: "device",
	}
	for life, expires := range map[time.Duration]time.Time{0: {}, -1: {}, time.Minute: now.Add(time.Minute), 2 * time.Hour: now.Add(2 * time.Hour)} {
		a.settings.now.Store(&inForce{settings: Settings{IdleTimeout: time.Hour, Lifetime: life}})
		got := a.newSession(ctx, "ada", amr, now)
		id := got.ID
		want.ExpiresAt = expires
		if got.ID = ""; !reflect.DeepEqual(got, want) || !began(id).Equal(now) {
			t.Errorf("%+v of %s\nwant %+v", got, id, want)
		}
		ends := now.Add(time.Hour + 59*time.Minute).Truncate(time.Hour) // the hour of the idle timeout
		if life == time.Minute {
			ends = expires
		}
		got.ID = id
		for current, is := range map[string]bool{id: true, "": false, "other": false} {
			info := SessionInfo{
				ID: id, CreatedAt: now, LastActiveAt: now, ExpiresAt: ends, IP: client.IP, UserAgent: client.UserAgent, Device: "Firefox on Linux", AAL: "aal1", AMR: amr, Current: is,
			}
			if view := sessionInfo(got, current); !reflect.DeepEqual(view, info) {
				t.Errorf("told of %+v\nwant %+v", view, info)
			}
		}
	}
	bare := a.newSession(t.Context(), "ada", nil, now)
	if bare.IP != "" || bare.UserAgent != "" || bare.Device != "" || sessionInfo(bare, "").IP.IsValid() {
		t.Errorf("of nobody known: %+v", bare)
	}
}

// Session ids are in the order of their creation, even within a millisecond, and unique.
func TestIdsOfSessionsAreInOrder(t *testing.T) {
	a := &Auth{}
	at := time.Unix(1767323045, 0)
	var ids []string
	for i := range 200 {
		ids = append(ids, a.idAt(at.Add(time.Duration(i/100)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("%v", ids)
	}
	for i, id := range ids {
		if !isID(id) || !began(id).Equal(at.Add(time.Duration(i/100)*time.Millisecond)) {
			t.Errorf("%s began at %v", id, began(id))
		}
	}
}

// New evidence replaces earlier evidence of the same method. The session's own list is not
// modified.
func TestProofsTakeEachOthersPlace(t *testing.T) {
	list := []AMR{{Method: "password", Timestamp: 1}, {Method: "totp", Timestamp: 2}, {Method: "password", Timestamp: 3}}
	if got := withAMR(list, AMR{Method: "password", Timestamp: 4}); !slices.Equal(got, []AMR{{Method: "totp", Timestamp: 2}, {Method: "password", Timestamp: 4}}) {
		t.Errorf("%+v", got)
	}
	if got := withAMR(list, AMR{Method: "email", Timestamp: 4}); !slices.Equal(got, append(slices.Clone(list), AMR{Method: "email", Timestamp: 4})) {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(list, []AMR{{Method: "password", Timestamp: 1}, {Method: "totp", Timestamp: 2}, {Method: "password", Timestamp: 3}}) {
		t.Errorf("the list became %+v", list)
	}
}

// liveStore is a store of one session, or an error.
type liveStore struct {
	Store
	err error
}

func (s *liveStore) Session(_ context.Context, id string, _ time.Time) (Session, User, error) {
	return Session{ID: id, UserID: "ada"}, User{ID: "ada"}, s.err
}

// A session belongs to the user that it names, while it is active. Otherwise the caller
// gets the error that it chose.
func TestSessionsAreTheirUsers(t *testing.T) {
	for name, c := range map[string]struct {
		user string
		err  error
		want error
	}{
		"theirs":    {"ada", nil, nil},
		"another's": {"bob", nil, CodeMissingToken},
		"ended":     {"ada", store.ErrSessionEnded, CodeMissingToken},
		"none":      {"ada", store.ErrNotFound, CodeMissingToken},
		"banned":    {"ada", store.ErrBanned, CodeUserBanned},
		"away":      {"ada", errors.New("away"), CodeUnavailable},
	} {
		a := &Auth{store: &liveStore{err: c.err}, cfg: config{now: time.Now}}
		s, u, err := a.liveSession(t.Context(), Caller{UserID: c.user, SessionID: "s"}, CodeMissingToken)
		if !errors.Is(err, c.want) || c.want == nil && (s.ID != "s" || u.ID != "ada") {
			t.Errorf("%s: %+v, %+v, %v", name, s, u, err)
		}
	}
}

// Each requirement is exact at its limit, all must hold, and none can change the input of
// the next.
func TestRequirementsHoldToTheirEdges(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	a := &Auth{cfg: config{now: func() time.Time { return now }}}
	ago := func(d time.Duration) []AMR {
		return []AMR{{Method: "email", Timestamp: now.Add(-time.Hour).Unix()}, {Method: "password", Timestamp: now.Add(-d).Unix()}}
	}
	act := &SessionRef{ID: "s", UserID: "eve"}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	for name, c := range map[string]struct {
		req    Requirement
		claims Claims
		want   error
	}{
		"second factor":            {AAL2(), Claims{AAL: store.LevelAAL2}, nil},
		"no second factor":         {AAL2(), Claims{AAL: store.LevelAAL1}, CodeInsufficientAAL},
		"fresh":                    {FreshAuth(time.Minute), Claims{AMR: ago(59 * time.Second)}, nil},
		"not fresh any more":       {FreshAuth(time.Minute), Claims{AMR: ago(60 * time.Second)}, CodeReauthNeeded},
		"fresh, but another":       {FreshAuth(time.Minute), Claims{AMR: ago(0), Impersonator: act}, CodeImpersonationForbidden},
		"another, of no factor":    {AAL2(), Claims{AAL: store.LevelAAL1, Impersonator: act}, CodeImpersonationForbidden},
		"of no proof":              {FreshAuth(time.Minute), Claims{}, CodeReauthNeeded},
		"themselves":               {NotImpersonated(), Claims{}, nil},
		"another":                  {NotImpersonated(), Claims{Impersonator: act}, CodeImpersonationForbidden},
		"a role":                   {HasRole("editor"), Claims{Roles: []string{"author", "editor"}}, nil},
		"another role":             {HasRole("editor"), Claims{Roles: []string{"author"}}, CodeMissingPermission},
		"a permission":             {HasPermission("notes.write"), Claims{Permissions: []string{"notes.*"}}, nil},
		"another permission":       {HasPermission("notes.write"), Claims{Permissions: []string{"notes.read"}}, CodeMissingPermission},
		"a permission of the name": {HasPermission("editor"), Claims{Roles: []string{"editor"}}, CodeMissingPermission},
	} {
		var e *Error
		err := a.checkRequirements(r, &c.claims, []Requirement{c.req})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if errors.As(err, &e) && (name == "another role" && e.Role != "editor" || name == "another permission" && e.Permission != "notes.write") {
			t.Errorf("%s: says of role %q, permission %q", name, e.Role, e.Permission)
		}
	}
	claims, calls := &Claims{Roles: []string{"author"}}, 0
	greedy := RequirementFunc(func(_ Service, _ *http.Request, c *Claims) error { calls++; c.Roles[0] = RoleOwner; return nil })
	if err := a.checkRequirements(r, claims, []Requirement{greedy, AAL2(), greedy}); !errors.Is(err, CodeInsufficientAAL) || calls != 1 || claims.Roles[0] != "author" {
		t.Errorf("%v after %d calls, roles %v", err, calls, claims.Roles)
	}
	if err := a.checkRequirements(r, claims, nil); err != nil {
		t.Error(err)
	}
}

// A caller who leaves while another one reads the keys receives none.
func TestKeysThatNobodyWaitsFor(t *testing.T) {
	keys := &publicKeys{reading: make(chan struct{}, 1)}
	keys.reading <- struct{}{}
	a := &Auth{publicKeys: keys}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if k, err := a.storedKeys(gone); !errors.Is(err, context.Canceled) || k != nil {
		t.Errorf("%+v, %v", k, err)
	}
}
