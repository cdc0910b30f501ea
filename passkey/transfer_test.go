package passkey_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/store"
)

var encode = base64.RawURLEncoding.EncodeToString

// exported returns the account as an import takes it, by way of the JSON of its export.
func (w *world) exported() auth.ImportUserParams {
	w.t.Helper()
	e, err := w.Export(w.t.Context(), auth.ExportParams{Caller: w.caller()})
	w.must(err)
	var text bytes.Buffer
	w.must(e.Write(w.t.Context(), &text))
	var out struct {
		User       struct{ ID, Email string }
		UserHandle string               `json:"user_handle"`
		Passkeys   []auth.PasskeyRecord `json:"passkeys"`
	}
	w.must(json.Unmarshal(text.Bytes(), &out))
	return auth.ImportUserParams{ID: out.User.ID, Email: out.User.Email, EmailVerified: true, UserHandle: out.UserHandle, Passkeys: out.Passkeys}
}

// arrival is another service.
func arrival(t *testing.T, o passkey.Options, opts ...auth.Option) *world {
	t.Helper()
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, harness.NewStore(t), append([]auth.Option{auth.WithPasskeys(passkey.New(o))}, opts...)...)
	return w
}

// moving is a service with an account of two passkeys, of which one is a second factor, and
// the account's export.
func moving(t *testing.T) (w *world, first, second *authenticator.Authenticator, out auth.ImportUserParams) {
	t.Helper()
	w = newWorld(t)
	first, second = w.key, authenticator.New(origin)
	first.Flags |= authenticator.BackupEligible | authenticator.BackedUp
	_, err := w.add(false)
	w.must(err)
	w.key, second.Step = second, 1
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	w.Clock.Advance(time.Minute)
	in, err := w.signIn()
	w.must(err)
	w.ada.Tokens = *in
	return w, first, second, w.exported()
}

// Passkeys of an export work at another service of the same RP ID, and their export there is
// the same.
func TestPasskeysMove(t *testing.T) {
	from, first, second, out := moving(t)
	if len(out.Passkeys) != 2 || out.Passkeys[0].SecondFactor || !out.Passkeys[1].SecondFactor {
		t.Fatalf("exported %+v", out.Passkeys)
	}
	k := out.Passkeys[1]
	if k.RPID != "auth.test" || k.CredentialID != encode(second.Passkeys[0].ID) || k.Counter != 1 || !k.UserVerified || k.BackupEligible || k.BackedUp || !out.Passkeys[0].BackupEligible || !out.Passkeys[0].BackedUp || k.Name == "" ||
		!slices.Equal(k.Transports, []string{"internal", "hybrid"}) || k.AAGUID != "00000000-0000-0000-0000-000000000000" || k.LastUsedAt == nil || k.CreatedAt.IsZero() || out.Passkeys[0].LastUsedAt != nil {
		t.Errorf("exported %+v", k)
	}
	to := arrival(t, passkey.Options{})
	out.PasswordHash = harness.BcryptHash
	u, err := to.ImportUser(t.Context(), out)
	to.must(err)
	if u.ID != from.ada.User.ID || u.Handle != out.UserHandle || !u.MFAEnabled {
		t.Errorf("imported %+v", u)
	}
	to.key = first
	in, err := to.signIn()
	to.must(err)
	to.ada = &authtest.SignedIn{Tokens: *in}
	if got := to.exported(); got.UserHandle != out.UserHandle || !slices.EqualFunc(got.Passkeys[1:], out.Passkeys[1:], sameRecord) {
		t.Errorf("exported again\n%+v\nnot\n%+v", got, out)
	}
	var e *auth.Error
	_, err = to.Login(t.Context(), auth.LoginParams{Email: out.Email, Password: harness.GoodPassword})
	if !errors.As(err, &e) || e.Code != auth.CodeMFARequired {
		t.Fatalf("the password alone: %v", err)
	}
	begun, err := to.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
	to.must(err)
	response, err := second.Get(begun.PublicKey)
	to.must(err)
	_, err = to.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: response})
	to.must(err)
	second.Passkeys[0].Counter = 0 // a copy of the key: the counter moved along
	to.key = second
	_, err = to.signIn()
	to.must(err)
	to.Mail(t, out.Email, auth.KindPasskeyCopied)
}

func sameRecord(a, b auth.PasskeyRecord) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// A passkey that counts as one factor still does.
func TestUpgradedPasskeysMove(t *testing.T) {
	w := newWorld(t)
	w.silent()
	to := arrival(t, passkey.Options{})
	_, err := to.ImportUser(t.Context(), w.exported())
	to.must(err)
	to.key = w.key
	in, err := to.signIn()
	to.must(err)
	if c := to.claims(in); c.AAL != "aal1" {
		t.Errorf("level %s", c.AAL)
	}
}

// A system that kept no authenticator data can move its passkeys, too.
func TestPasskeysWithoutAuthData(t *testing.T) {
	_, first, _, out := moving(t)
	to := arrival(t, passkey.Options{})
	for i := range out.Passkeys {
		k := &out.Passkeys[i]
		*k = auth.PasskeyRecord{CredentialID: k.CredentialID, RPID: k.RPID, PublicKey: k.PublicKey, UserVerified: true}
	}
	u, err := to.ImportUser(t.Context(), out)
	to.must(err)
	to.key = first
	in, err := to.signIn()
	to.must(err)
	to.ada = &authtest.SignedIn{Tokens: *in}
	if k := to.exported().Passkeys[0]; k.Name != "Passkey" || !k.CreatedAt.Equal(u.CreatedAt) || k.AuthData == "" {
		t.Errorf("%+v", k)
	}
}

// key returns a COSE key.
func coseKey(t *testing.T, members map[int]any) string {
	t.Helper()
	b, err := cbor.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return encode(b)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	b[0] |= 0x80
	return b
}

// An import that is not as an export changes nothing, and names the field.
func TestHostileImports(t *testing.T) {
	from, _, _, good := moving(t)
	to := arrival(t, passkey.Options{})
	otherHandle := encode(random(32))
	rs256 := func(bytes int) string {
		return coseKey(t, map[int]any{1: 3, 3: -257, -1: random(bytes), -2: []byte{1, 0, 1}})
	}
	first := func(change func(k *auth.PasskeyRecord)) func(p *auth.ImportUserParams) {
		return func(p *auth.ImportUserParams) { change(&p.Passkeys[0]) }
	}
	bare := func(key string) func(p *auth.ImportUserParams) { // without the authenticator data of another key
		return first(func(k *auth.PasskeyRecord) { k.PublicKey, k.AuthData = key, "" })
	}
	data := func(change func(b []byte) []byte) func(p *auth.ImportUserParams) {
		return first(func(k *auth.PasskeyRecord) {
			b, err := base64.RawURLEncoding.DecodeString(k.AuthData)
			from.must(err)
			k.AuthData = encode(change(b))
		})
	}
	for name, c := range map[string]struct {
		field, about string
		edit         func(p *auth.ImportUserParams)
	}{
		"no handle":               {"user_handle", "required", func(p *auth.ImportUserParams) { p.UserHandle = "" }},
		"a short handle":          {"user_handle", "32 bytes", func(p *auth.ImportUserParams) { p.UserHandle = encode(random(31)) }},
		"a long handle":           {"user_handle", "32 bytes", func(p *auth.ImportUserParams) { p.UserHandle = encode(random(33)) }},
		"a handle with padding":   {"user_handle", "32 bytes", func(p *auth.ImportUserParams) { p.UserHandle += "=" }},
		"a handle of two lines":   {"user_handle", "32 bytes", func(p *auth.ImportUserParams) { p.UserHandle += "\n" }},
		"a handle of other bits":  {"user_handle", "32 bytes", func(p *auth.ImportUserParams) { p.UserHandle = strings.Repeat("A", 42) + "B" }},
		"no key":                  {"passkeys", "public_key has 0 bytes", bare("")},
		"a key in base64":         {"passkeys", "public_key is not base64url", bare("+/+/")},
		"no COSE key":             {"passkeys", "public_key is not a COSE key", bare(encode(random(77)))},
		"a key with a tail":       {"passkeys", "public_key is not a COSE key", bare(good.Passkeys[0].PublicKey + "AAAA")},
		"a point off the curve":   {"passkeys", "public_key is not a COSE key", bare(coseKey(t, map[int]any{1: 2, 3: -7, -1: 1, -2: random(32), -3: random(32)}))},
		"an algorithm":            {"passkeys", "public_key is not of the algorithm", bare(coseKey(t, map[int]any{1: 3, 3: -37, -1: random(256), -2: []byte{1, 0, 1}}))},
		"RS1":                     {"passkeys", "public_key is not of the algorithm", bare(coseKey(t, map[int]any{1: 3, 3: -65535, -1: random(256), -2: []byte{1, 0, 1}}))},
		"a huge key":              {"passkeys", "public_key has", bare(rs256(16000))},
		"no id":                   {"passkeys", "credential_id has 0 bytes", first(func(k *auth.PasskeyRecord) { k.CredentialID = "" })},
		"a long id":               {"passkeys", "credential_id has 1024 bytes", first(func(k *auth.PasskeyRecord) { k.CredentialID = encode(random(1024)) })},
		"an id with padding":      {"passkeys", "credential_id is not base64url", first(func(k *auth.PasskeyRecord) { k.CredentialID += "=" })},
		"another id":              {"passkeys", "auth_data is of another credential_id", first(func(k *auth.PasskeyRecord) { k.CredentialID = encode(random(32)) })},
		"one id twice":            {"passkeys", "number 2: credential_id is one that the account has twice", func(p *auth.ImportUserParams) { p.Passkeys[1] = p.Passkeys[0] }},
		"another RP ID":           {"passkeys", "rp_id is not auth.test", first(func(k *auth.PasskeyRecord) { k.RPID = "evil.test" })},
		"no RP ID":                {"passkeys", "rp_id is not auth.test", first(func(k *auth.PasskeyRecord) { k.RPID = "" })},
		"no model":                {"passkeys", "aaguid is not a UUID", first(func(k *auth.PasskeyRecord) { k.AAGUID = "iCloud" })},
		"another model":           {"passkeys", "auth_data is of another aaguid", first(func(k *auth.PasskeyRecord) { k.AAGUID = "11111111-1111-1111-1111-111111111111" })},
		"copies of no copy":       {"passkeys", "backed_up is true", first(func(k *auth.PasskeyRecord) { k.BackedUp, k.BackupEligible = true, false })},
		"another's data":          {"passkeys", "auth_data is of another credential_id", func(p *auth.ImportUserParams) { p.Passkeys[0].AuthData = p.Passkeys[1].AuthData }},
		"another's key":           {"passkeys", "auth_data is of another public_key", func(p *auth.ImportUserParams) { p.Passkeys[0].PublicKey = p.Passkeys[1].PublicKey }},
		"data of another RP ID":   {"passkeys", "auth_data is of another rp_id", data(func(b []byte) []byte { b[0] ^= 1; return b })},
		"data of no registration": {"passkeys", "auth_data is not the authenticator data of a registration", data(func(b []byte) []byte { b[32] &^= 0x40; return b[:37] })},
		"data with a tail":        {"passkeys", "auth_data is not the authenticator data", data(func(b []byte) []byte { return append(b, 0) })},
		"huge data":               {"passkeys", "auth_data has", data(func(b []byte) []byte { return append(b, random(3000)...) })},
		"a long name":             {"passkeys", "name", first(func(k *auth.PasskeyRecord) { k.Name = strings.Repeat("x", 101) })},
		"an unprintable name":     {"passkeys", "name", first(func(k *auth.PasskeyRecord) { k.Name = "a\x00" })},
		"tomorrow":                {"passkeys", "future", first(func(k *auth.PasskeyRecord) { k.CreatedAt = to.Clock.Now().AddDate(0, 0, 1) })},
		"used tomorrow":           {"passkeys", "future", first(func(k *auth.PasskeyRecord) { at := to.Clock.Now().AddDate(0, 0, 1); k.LastUsedAt = &at })},
		"too many": {"passkeys", "are more than 20", func(p *auth.ImportUserParams) {
			for range 19 {
				k := auth.PasskeyRecord{RPID: "auth.test", CredentialID: encode(random(16)), PublicKey: p.Passkeys[0].PublicKey}
				p.Passkeys = append(p.Passkeys, k)
			}
		}},
	} {
		p := good
		p.Passkeys = slices.Clone(good.Passkeys)
		c.edit(&p)
		_, err := to.ImportUser(t.Context(), p)
		var e *auth.Error
		if !errors.As(err, &e) || e.Code != auth.CodeValidationFailed || !strings.Contains(e.Fields[c.field], c.about) {
			t.Errorf("%s: %v, want one about %s %s", name, err, c.field, c.about)
		}
		if _, err := to.Store.User(t.Context(), store.ByID(p.ID)); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s: the account exists: %v", name, err)
		}
	}
	_, err := to.ImportUser(t.Context(), good)
	to.must(err)
	// Values of the account that exists now.
	import2 := func(change func(p *auth.ImportUserParams)) (results [2]error) {
		t.Helper()
		p := good
		p.ID, p.Email, p.Passkeys = "", "eve@example.com", slices.Clone(good.Passkeys)
		change(&p)
		_, results[0] = to.ImportUser(t.Context(), p)
		_, err := to.ImportUsers(t.Context(), slices.Values([]auth.ImportUserParams{p}), func(r auth.ImportResult) { results[1] = r.Err })
		to.must(err)
		return results
	}
	taken := func(results [2]error, code auth.Code, field string) {
		t.Helper()
		for _, err := range results {
			var c *store.ConflictError
			if !errors.Is(err, code) || !errors.As(err, &c) || c.Field != field {
				t.Errorf("%v, want %s of %s", err, code, field)
			}
		}
		if _, err := to.Store.User(t.Context(), store.ByEmail("eve@example.com")); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("the account exists: %v", err)
		}
	}
	taken(import2(func(p *auth.ImportUserParams) { p.Passkeys = nil }), auth.CodeUserAlreadyExists, "user_handle")
	taken(import2(func(p *auth.ImportUserParams) { p.UserHandle = otherHandle }), auth.CodePasskeyAlreadyExists, "passkeys")
	// Values of another row of the same import.
	var results []error
	rows := []auth.ImportUserParams{
		{Email: "one@example.com", UserHandle: otherHandle},
		{Email: "two@example.com", UserHandle: otherHandle},
		{Email: "three@example.com", UserHandle: encode(random(32)), Passkeys: []auth.PasskeyRecord{{RPID: "auth.test", CredentialID: "AAAA", PublicKey: good.Passkeys[0].PublicKey}}},
		{Email: "four@example.com", UserHandle: encode(random(32)), Passkeys: []auth.PasskeyRecord{{RPID: "auth.test", CredentialID: "AAAA", PublicKey: good.Passkeys[1].PublicKey}}},
	}
	_, err = to.ImportUsers(t.Context(), slices.Values(rows), func(r auth.ImportResult) { results = append(results, r.Err) })
	to.must(err)
	if results[0] != nil || !errors.Is(results[1], auth.CodeUserAlreadyExists) || results[2] != nil || !errors.Is(results[3], auth.CodePasskeyAlreadyExists) {
		t.Errorf("rows with values of others: %v", results)
	}
}

// Keys of each allowed algorithm can be imported.
func TestImportedAlgorithms(t *testing.T) {
	to := arrival(t, passkey.Options{})
	for name, key := range map[string]string{
		"RS256, 4096 bits": coseKey(t, map[int]any{1: 3, 3: -257, -1: random(512), -2: []byte{1, 0, 1}}),
		"EdDSA":            coseKey(t, map[int]any{1: 1, 3: -8, -1: 6, -2: random(32)}),
	} {
		_, err := to.ImportUser(t.Context(), auth.ImportUserParams{
			Email: strings.ToLower(name[:5]) + "@example.com", UserHandle: encode(random(32)),
			Passkeys: []auth.PasskeyRecord{{RPID: "auth.test", CredentialID: encode(random(1023)), PublicKey: key}},
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A service that is told to keep passkeys of another RP ID imports them, and refuses their
// use.
func TestImportOfAnotherRPID(t *testing.T) {
	_, first, second, out := moving(t)
	to := arrival(t, passkey.Options{OtherRPID: true}, auth.WithBaseURL("https://other.test/auth/v1"))
	_, err := to.ImportUser(t.Context(), out)
	to.must(err)
	for _, key := range []*authenticator.Authenticator{first, second} {
		key.Origin = "https://other.test"
		begun, err := to.BeginPasskeySignIn(t.Context())
		to.must(err)
		response, err := key.Sign(key.Passkeys[0], challengeIn(t, begun.PublicKey))
		to.must(err)
		_, err = to.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: response})
		to.want(err, auth.CodeInvalidPasskey)
	}
}

// The first passkeys of a service may come by an import. They bind the service to its RP ID.
func TestImportsRecordTheRPID(t *testing.T) {
	_, _, _, out := moving(t)
	start := func(st auth.Store) error {
		a, err := auth.New(t.Context(), st, auth.WithSecret([]byte("4f1d0f0c8b1a7e6d5c4b3a29181706f5")), auth.WithBaseURL("https://app.auth.test/auth/v1"),
			auth.WithMailer(noMail{}), auth.WithPasskeys(passkey.New(passkey.Options{})))
		if err == nil {
			err = a.Close(t.Context())
		}
		return err
	}
	for name, imports := range map[string]func(w *world) error{
		"one": func(w *world) error { _, err := w.ImportUser(t.Context(), out); return err },
		"many": func(w *world) error {
			_, err := w.ImportUsers(t.Context(), slices.Values([]auth.ImportUserParams{{Email: "a@example.com"}, out}), nil)
			return err
		},
		"over HTTP": func(w *world) error {
			adm, err := admin.New(t.Context(), w.Auth, admin.Options{})
			w.must(err)
			line, err := json.Marshal(map[string]any{"email": out.Email, "user_handle": out.UserHandle, "passkeys": out.Passkeys})
			w.must(err)
			id, err := adm.ImportUsers(t.Context(), admin.System("test"), admin.ImportUsersParams{}, bytes.NewReader(line))
			w.must(err)
			for {
				j, err := adm.Job(t.Context(), admin.System("test"), id)
				if err != nil || j.State == store.JobDone {
					return err
				}
				runtime.Gosched()
			}
		},
	} {
		to := arrival(t, passkey.Options{})
		if err := start(to.Store); err != nil {
			t.Errorf("%s: without passkeys: %v", name, err)
		}
		if err := imports(to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := start(to.Store); err == nil || !strings.Contains(err.Error(), `"auth.test"`) {
			t.Errorf("%s: another RP ID: %v", name, err)
		}
	}
	to := arrival(t, passkey.Options{OtherRPID: true}, auth.WithBaseURL("https://other.test/auth/v1"))
	_, err := to.ImportUser(t.Context(), out)
	to.must(err)
	if err := start(to.Store); err != nil {
		t.Errorf("passkeys of another RP ID only: %v", err)
	}
}

// A stranger may have had an unverified account with a passkey in the old system. The first
// person who verifies the address owns it, without that passkey.
func TestImportedPasskeyOfAnUnverifiedAccount(t *testing.T) {
	_, first, _, out := moving(t)
	out.EmailVerified = false
	to := arrival(t, passkey.Options{})
	_, err := to.ImportUser(t.Context(), out)
	to.must(err)
	sent, err := to.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: out.Email})
	to.must(err)
	_, err = to.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Email: out.Email, Code: to.Mail(t, out.Email, auth.KindMagicLink).Code, RequestID: sent.RequestID})
	to.must(err)
	to.key = first
	_, err = to.signIn()
	to.want(err, auth.CodeInvalidPasskey)
}
