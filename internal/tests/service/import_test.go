package service_test

import (
	"bytes"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// wholeImport is a user with every field set.
func wholeImport(w *harness.World) auth.ImportUserParams {
	day := func(n int) time.Time { return w.Clock.Now().UTC().Truncate(time.Second).AddDate(0, 0, -n) }
	return auth.ImportUserParams{
		ID: "8E1F0C9A-6B0D-4F6E-9C55-0B1D6C3A2F10", Email: "Ada@Example.com", EmailVerifiedAt: day(9), Phone: "+49 30 123456", PhoneVerifiedAt: day(8),
		FullName: "Ada Lovelace", PasswordHash: harness.BcryptHash, TOTPSecret: "jbsw y3dp ehpk 3pxp",
		Identities:   []auth.Identity{{Provider: "google", Subject: "123", Email: "ada@gmail.example", LastSignInAt: day(2)}, {Provider: "github", Subject: "7", CreatedAt: day(3)}},
		UserMetadata: map[string]any{"theme": "dark"}, AppMetadata: map[string]any{"plan": "pro"}, Roles: []string{"editor"},
		CreatedAt: day(10), LastSignInAt: day(1),
	}
}

// All data that another system stored about a user is imported.
func TestImportKeepsEverything(t *testing.T) {
	w := harness.NewWorld(t)
	p := wholeImport(w)
	u, err := w.ImportUser(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range kept.Identities {
		kept.Identities[i].ID = ""
	}
	slices.SortFunc(kept.Identities, func(a, b auth.Identity) int { return -strings.Compare(a.Subject, b.Subject) })
	google, github := p.Identities[0], p.Identities[1]
	google.Sequence, github.Sequence = 1, 1
	google.CreatedAt = p.CreatedAt // not given
	want := auth.User{
		ID: strings.ToLower(p.ID), Email: "Ada@example.com", EmailVerifiedAt: p.EmailVerifiedAt, Phone: "+4930123456", PhoneVerifiedAt: p.PhoneVerifiedAt,
		FullName: p.FullName, UserMetadata: p.UserMetadata, AppMetadata: p.AppMetadata, Roles: p.Roles, MFAEnabled: true,
		Identities: []auth.Identity{github, google}, CreatedAt: p.CreatedAt, LastSignInAt: p.LastSignInAt, UpdatedAt: kept.UpdatedAt, Handle: kept.Handle,
		Sequence: 1, PasswordSequence: 1, EmailSequence: 1, EmailVerifiedSequence: 1, PhoneSequence: 1, PhoneVerifiedSequence: 1,
	}
	if !reflect.DeepEqual(kept, want) {
		t.Errorf("kept\n%+v\nwant\n%+v", kept, want)
	}
	if u.ID != want.ID || !u.MFAEnabled {
		t.Errorf("returned %+v", u)
	}
	w.WantEvents(auth.EventUserImported)
}

// The second factor of an import is required at sign-in, and its secret is stored nowhere in
// the clear.
func TestImportedTOTPSignsIn(t *testing.T) {
	w := harness.NewWorld(t)
	p := wholeImport(w)
	u, err := w.ImportUser(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	factors, _ := store.Capability[store.FactorStore](w.Store)
	list, err := factors.Factors(t.Context(), u.ID)
	if err != nil || len(list.List) != 1 || !list.List[0].Enabled || list.RecoveryLeft != 0 {
		t.Fatalf("factors %+v, %v", list, err)
	}
	secret, _ := base32.StdEncoding.DecodeString("JBSWY3DPEHPK3PXP")
	if bytes.Contains(list.List[0].Secret, secret) || bytes.Contains(list.List[0].Secret, []byte("JBSWY3DP")) {
		t.Error("the secret is kept in the clear")
	}
	in := map[string]any{"email": p.Email, "password": harness.GoodPassword}
	w.Do("POST", "/login", in).Want(403, auth.CodeMFARequired)
	in["totp_code"] = w.Code("JBSWY3DPEHPK3PXP", 0)
	s := w.Do("POST", "/login", in).Session()
	if c := w.ClaimsOf(s); c.AAL != store.LevelAAL2 {
		t.Errorf("level %q", c.AAL)
	}
	w.Do("POST", "/login", in).Want(422, auth.CodeInvalidTOTPCode) // a code is valid once
}

func TestImportedBanHolds(t *testing.T) {
	w := harness.NewWorld(t)
	p := auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true, PasswordHash: harness.BcryptHash, BannedUntil: w.Clock.Now().Add(time.Hour)}
	if _, err := w.ImportUser(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"email": p.Email, "password": harness.GoodPassword}
	w.Do("POST", "/login", in).Want(403, auth.CodeUserBanned)
	w.Clock.Advance(time.Hour)
	w.Do("POST", "/login", in).Want(200)
}

// Data that cannot be stored is refused with the name of its field, and nothing is created.
func TestImportNamesTheBadField(t *testing.T) {
	w := harness.NewWorld(t)
	now := w.Clock.Now()
	identity := func(provider, subject string) []auth.Identity {
		return []auth.Identity{{Provider: provider, Subject: subject}}
	}
	for name, c := range map[string]struct {
		field string
		edit  func(*auth.ImportUserParams)
	}{
		"no id":                {"id", func(p *auth.ImportUserParams) { p.ID = "17" }},
		"id in braces":         {"id", func(p *auth.ImportUserParams) { p.ID = "{8e1f0c9a-6b0d-4f6e-9c55-0b1d6c3a2f10}" }},
		"id of zeros":          {"id", func(p *auth.ImportUserParams) { p.ID = uuid.Nil.String() }},
		"nothing to find them": {"email", func(p *auth.ImportUserParams) { p.Email = "" }},
		"no address":           {"email", func(p *auth.ImportUserParams) { p.Email = "ada" }},
		"verified nothing":     {"email", func(p *auth.ImportUserParams) { p.Email, p.Phone, p.EmailVerified = "", "+4930123456", true }},
		"verified at nothing":  {"phone", func(p *auth.ImportUserParams) { p.PhoneVerifiedAt = now }},
		"no number":            {"phone", func(p *auth.ImportUserParams) { p.Phone = "030" }},
		"md5":                  {"password_hash", func(p *auth.ImportUserParams) { p.PasswordHash = "md5:abc" }},
		"null in a salt": {"password_hash", func(p *auth.ImportUserParams) {
			p.PasswordHash = "pbkdf2_sha256$260000$a\x00b$" + strings.Repeat("A", 43) + "="
		}},
		"not base32":          {"totp_secret", func(p *auth.ImportUserParams) { p.TOTPSecret = "JBSWY3DPEHPK3PX1" }},
		"short secret":        {"totp_secret", func(p *auth.ImportUserParams) { p.TOTPSecret = "JBSWY3DP" }},
		"long secret":         {"totp_secret", func(p *auth.ImportUserParams) { p.TOTPSecret = strings.Repeat("JBSWY3DP", 13) }},
		"provider of no name": {"identities", func(p *auth.ImportUserParams) { p.Identities = identity("Google!", "1") }},
		"no subject":          {"identities", func(p *auth.ImportUserParams) { p.Identities = identity("google", "") }},
		"null in a subject":   {"identities", func(p *auth.ImportUserParams) { p.Identities = identity("google", "a\x00") }},
		"two of one provider": {"identities", func(p *auth.ImportUserParams) {
			p.Identities = append(identity("google", "1"), identity("google", "2")...)
		}},
		"identity of tomorrow": {"identities", func(p *auth.ImportUserParams) {
			p.Identities = []auth.Identity{{Provider: "google", Subject: "1", CreatedAt: now.AddDate(0, 0, 1)}}
		}},
		"null in an address": {"identities", func(p *auth.ImportUserParams) {
			p.Identities = []auth.Identity{{Provider: "google", Subject: "1", Email: "\x00"}}
		}},
		"created tomorrow":  {"created_at", func(p *auth.ImportUserParams) { p.CreatedAt = now.AddDate(0, 0, 1) }},
		"before our era":    {"created_at", func(p *auth.ImportUserParams) { p.CreatedAt = now.AddDate(-5000, 0, 0) }},
		"signed in later":   {"last_sign_in_at", func(p *auth.ImportUserParams) { p.LastSignInAt = now.AddDate(0, 0, 1) }},
		"verified tomorrow": {"email_verified_at", func(p *auth.ImportUserParams) { p.EmailVerifiedAt = now.AddDate(0, 0, 1) }},
		"banned for ever":   {"banned_until", func(p *auth.ImportUserParams) { p.BannedUntil = now.AddDate(9000, 0, 0) }},
		"null in metadata":  {"app_metadata", func(p *auth.ImportUserParams) { p.AppMetadata = map[string]any{"a": "\x00"} }},
		"large metadata":    {"user_metadata", func(p *auth.ImportUserParams) { p.UserMetadata = map[string]any{"a": strings.Repeat("a", 1<<15)} }},
		"null in a role":    {"roles", func(p *auth.ImportUserParams) { p.Roles = []string{"a\x00"} }},
		"unprintable name":  {"full_name", func(p *auth.ImportUserParams) { p.FullName = "a\x00" }},
	} {
		p := auth.ImportUserParams{Email: "ada@example.com"}
		c.edit(&p)
		_, err := w.ImportUser(t.Context(), p)
		var e *auth.Error
		if !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || e.Fields[c.field] == "" {
			t.Errorf("%s: %v, want one about %s", name, err, c.field)
		}
		if p.TOTPSecret != "" && strings.Contains(fmt.Sprint(err), p.TOTPSecret) {
			t.Errorf("%s: the error quotes the secret", name)
		}
	}
	w.WantEvents()
	if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com"}); err != nil {
		t.Error(err) // nobody was created before
	}
}

// A value that is taken is named.
func TestImportNamesWhatIsTaken(t *testing.T) {
	w := harness.NewWorld(t)
	first := wholeImport(w)
	if _, err := w.ImportUser(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		p    auth.ImportUserParams
		code auth.Code
	}{
		"id":       {auth.ImportUserParams{ID: first.ID, Email: "b@example.com"}, auth.CodeUserAlreadyExists},
		"email":    {auth.ImportUserParams{Email: "ADA@example.com"}, auth.CodeUserAlreadyExists},
		"phone":    {auth.ImportUserParams{Phone: "+4930123456"}, auth.CodeUserAlreadyExists},
		"identity": {auth.ImportUserParams{Identities: []auth.Identity{{Provider: "github", Subject: "7"}}}, auth.CodeIdentityAlreadyExists},
	} {
		var results []auth.ImportResult
		_, one := w.ImportUser(t.Context(), c.p)
		_, err := w.ImportUsers(t.Context(), slices.Values([]auth.ImportUserParams{c.p}), func(r auth.ImportResult) { results = append(results, r) })
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %v, %v", field, results, err)
		}
		for _, err := range []error{one, results[0].Err} {
			var taken *store.ConflictError
			if !errors.Is(err, c.code) || !errors.As(err, &taken) || taken.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
}

func TestImportLogsNoSecrets(t *testing.T) {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("import", "user", auth.ImportUserParams{Email: "ada@example.com", PasswordHash: harness.BcryptHash, TOTPSecret: "JBSWY3DPEHPK3PXP"})
	if s := b.String(); strings.Contains(s, harness.BcryptHash) || strings.Contains(s, "JBSWY3DP") || !strings.Contains(s, "ada@example.com") {
		t.Error(s)
	}
}

// people are n users to import, as a sequence that counts how many were read.
func people(n int, read *int) iter.Seq[auth.ImportUserParams] {
	return func(yield func(auth.ImportUserParams) bool) {
		for i := range n {
			*read = i + 1
			if !yield(auth.ImportUserParams{Email: fmt.Sprintf("p%d@example.com", i), EmailVerified: true, PasswordHash: harness.BcryptHash}) {
				return
			}
		}
	}
}

// Many users are imported in few steps. Refused users do not block others, and the result of
// each user is reported in order.
func TestImportUsersTellsOfEach(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{Env: authtest.NewOn(t, tap), T: t}
	if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "p3@example.com"}); err != nil {
		t.Fatal(err)
	}
	seq := func(yield func(auth.ImportUserParams) bool) {
		n, read := 0, 0
		for p := range people(1250, &read) {
			switch n++; n - 1 {
			case 5:
				p.Email = "nobody"
			case 620:
				p.Email = "P7@example.com" // once more
			}
			if !yield(p) {
				return
			}
		}
	}
	steps := 0
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		if method == "CreateUsers" || method == "CreateUser" {
			steps++
		}
	}})
	var results []auth.ImportResult
	sum, err := w.ImportUsers(t.Context(), seq, func(r auth.ImportResult) { results = append(results, r) })
	tap.Reset(storetap.Hooks{})
	if err != nil || sum != (auth.ImportSummary{Created: 1247, Refused: 3}) || len(results) != 1250 || steps != 3 {
		t.Fatalf("%+v, %v, %d results, %d steps", sum, err, len(results), steps)
	}
	for i, r := range results {
		want := map[int]error{3: auth.CodeUserAlreadyExists, 5: auth.CodeValidationFailed, 620: auth.CodeUserAlreadyExists}[i]
		if r.Index != i || !errors.Is(r.Err, want) || (r.ID == "") != (want != nil) {
			t.Errorf("result %d: %+v, want %v", i, r, want)
		}
		if r.Err == nil {
			if u, err := w.Store.User(t.Context(), store.ByID(r.ID)); err != nil || u.Email != fmt.Sprintf("p%d@example.com", i) {
				t.Errorf("user %d: %+v, %v", i, u, err)
			}
		}
	}
	w.Do("POST", "/login", map[string]any{"email": "p1249@example.com", "password": harness.GoodPassword}).Want(200)
}

// The import calls the hooks for each created user, and the store has the same events.
func TestImportUsersTellsHooks(t *testing.T) {
	w := harness.NewWorld(t)
	seq := slices.Values([]auth.ImportUserParams{{Email: "a@example.com"}, {Email: "A@example.com"}, {Email: "b@example.com"}})
	if sum, err := w.ImportUsers(t.Context(), seq, nil); err != nil || sum.Created != 2 {
		t.Fatal(sum, err)
	}
	w.WantEvents(auth.EventUserImported, auth.EventUserImported)
	events, _ := store.Capability[store.Journal](w.Store)
	list, err := events.Events(t.Context(), store.EventQuery{})
	if err != nil || len(list) != 2 || list[0].UserID == list[1].UserID || list[0].UserID == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The hook of new users is called for each, and its refusal affects that user alone.
func TestImportUsersCallsTheHook(t *testing.T) {
	var made []string
	w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{OnUserCreating: func(_ context.Context, u auth.User) error {
		if u.Email == "b@example.com" {
			return auth.Reject(auth.CodeSignupDisabled, "not you")
		}
		made = append(made, u.Email)
		return nil
	}}))
	var refused []int
	seq := slices.Values([]auth.ImportUserParams{{Email: "a@example.com"}, {Email: "b@example.com"}, {Email: "c@example.com", TOTPSecret: "JBSWY3DPEHPK3PXP"}})
	sum, err := w.ImportUsers(t.Context(), seq, func(r auth.ImportResult) {
		if errors.Is(r.Err, auth.CodeSignupDisabled) {
			refused = append(refused, r.Index)
		}
	})
	if err != nil || sum != (auth.ImportSummary{Created: 2, Refused: 1}) || !slices.Equal(refused, []int{1}) || !slices.Equal(made, []string{"a@example.com", "c@example.com"}) {
		t.Errorf("%+v, %v, refused %v, made %v", sum, err, refused, made)
	}
	if u, err := w.Store.User(t.Context(), store.ByEmail("c@example.com")); err != nil || !u.MFAEnabled {
		t.Errorf("%+v, %v", u, err)
	}
}

// A canceled context or a failing store stops an import. All reported users are stored, no
// unreported user is counted, and at most one more step is read.
func TestImportUsersStops(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(cancel func(), tap *storetap.Tap)
		want error
	}{
		"context": {func(cancel func(), _ *storetap.Tap) { cancel() }, context.Canceled},
		"store": {func(_ func(), tap *storetap.Tap) {
			tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault { return storetap.FailsBefore }})
		}, storetap.ErrFault},
		"lost answer": {func(_ func(), tap *storetap.Tap) {
			tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault { return storetap.FailsAfter }})
		}, storetap.ErrFault},
	} {
		t.Run(name, func(t *testing.T) {
			tap := storetap.New(harness.NewStore(t))
			w := &harness.World{Env: authtest.NewOn(t, tap), T: t}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			read, told := 0, 0
			sum, err := w.ImportUsers(ctx, people(10_000, &read), func(r auth.ImportResult) {
				if told++; told == 1250 {
					c.stop(cancel, tap)
				}
			})
			tap.Reset(storetap.Hooks{})
			if !errors.Is(err, c.want) || !errors.Is(err, auth.CodeUnavailable) || sum != (auth.ImportSummary{Created: 1500}) || told != 1500 || read > 2000 {
				t.Errorf("%+v, %v, told %d, read %d", sum, err, told, read)
			}
			for i := range 1500 {
				if _, err := w.Store.User(t.Context(), store.ByEmail(fmt.Sprintf("p%d@example.com", i))); err != nil {
					t.Fatalf("user %d was told and is not there: %v", i, err)
				}
			}
			sum, err = w.ImportUsers(t.Context(), people(1750, &read), nil) // once more
			if err != nil || sum.Created+sum.Refused != 1750 || sum.Refused < 1500 {
				t.Errorf("once more: %+v, %v", sum, err)
			}
		})
	}
}

// Two parallel imports of the same users: each user is stored once and reported by one of the two.
func TestImportUsersInParallel(t *testing.T) {
	w := harness.NewWorld(t)
	created := make(chan string, 1000)
	done := make(chan error)
	for range 4 {
		go func() {
			read := 0
			_, err := w.ImportUsers(t.Context(), people(150, &read), func(r auth.ImportResult) {
				switch {
				case r.Err == nil:
					created <- fmt.Sprint(r.Index)
				case !errors.Is(r.Err, store.ErrConflict):
					t.Errorf("%+v", r)
				}
			})
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	close(created)
	times := map[string]int{}
	for i := range created {
		times[i]++
	}
	for i, n := range times {
		if n != 1 {
			t.Errorf("user %s was created %d times", i, n)
		}
	}
	if len(times) != 150 {
		t.Errorf("%d of 150 were created", len(times))
	}
}
