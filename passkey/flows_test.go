package passkey_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
)

const origin = "https://auth.test"

type world struct {
	*authtest.Env
	t   *testing.T
	key *authenticator.Authenticator
	ada *authtest.SignedIn
}

func newWorld(t *testing.T, opts ...auth.Option) *world {
	t.Helper()
	w := &world{t: t, key: authenticator.New(origin)}
	w.Env = authtest.NewOn(t, harness.NewStore(t), append([]auth.Option{auth.WithPasskeys(passkey.New(passkey.Options{}))}, opts...)...)
	w.ada = w.LoginAs(t, "ada@example.com")
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) want(err error, code auth.Code) {
	w.t.Helper()
	if !errors.Is(err, code) {
		w.t.Fatalf("%v, want %s", err, code)
	}
}

// add registers a passkey of ada.
func (w *world) add(second bool) (*auth.AddedPasskey, error) {
	w.t.Helper()
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	if err != nil {
		return nil, err
	}
	response, err := w.key.Create(begun.PublicKey)
	w.must(err)
	return w.AddPasskey(w.t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response, SecondFactor: second})
}

func (w *world) caller() auth.Caller {
	w.t.Helper()
	claims, err := w.Verify(w.ada.AccessToken)
	w.must(err)
	return claims.Caller()
}

// begin starts a sign-in and returns the parameters of its end.
func (w *world) begin() auth.FinishPasskeySignInParams {
	w.t.Helper()
	begun, err := w.BeginPasskeySignIn(w.t.Context())
	w.must(err)
	response, err := w.key.Get(begun.PublicKey)
	w.must(err)
	return auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: response}
}

func (w *world) signIn() (*auth.Tokens, error) {
	w.t.Helper()
	return w.FinishPasskeySignIn(w.t.Context(), w.begin())
}

func (w *world) claims(tokens *auth.Tokens) *auth.Claims {
	w.t.Helper()
	claims, err := w.Verify(tokens.AccessToken)
	w.must(err)
	return claims
}

func TestSignInWithPasskey(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	if added.Passkey.SecondFactor || len(added.RecoveryCodes) != 0 {
		t.Errorf("a passkey became a second factor by itself: %+v", added)
	}
	tokens, err := w.signIn()
	w.must(err)
	claims := w.claims(tokens)
	if claims.UserID != w.ada.User.ID || claims.AAL != "aal2" || len(claims.AMR) != 1 || claims.AMR[0].Method != "passkey" {
		t.Errorf("claims %+v", claims)
	}
	if _, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
		t.Errorf("the password asks for more than before: %v", err)
	}
	list, err := w.ListPasskeys(t.Context(), w.caller())
	w.must(err)
	if len(list.Passkeys) != 1 || list.Passkeys[0].LastUsedAt == nil || list.RPID != "auth.test" || list.Passkeys[0].Name == "" {
		t.Errorf("list %+v", list)
	}
}

// An assertion works once, in the browser that asked, for five minutes.
func TestAssertionWorksOnce(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	used := w.begin()
	_, err = w.FinishPasskeySignIn(t.Context(), used)
	w.must(err)
	_, err = w.FinishPasskeySignIn(t.Context(), used)
	w.want(err, auth.CodeInvalidPasskey)

	other := w.begin()
	other.RequestID = w.begin().RequestID
	_, err = w.FinishPasskeySignIn(t.Context(), other)
	w.want(err, auth.CodeInvalidPasskey)

	late := w.begin()
	w.Clock.Advance(5 * time.Minute)
	_, err = w.FinishPasskeySignIn(t.Context(), late)
	w.want(err, auth.CodeInvalidPasskey)
}

// Of parallel uses of one assertion one succeeds, and parallel sign-ins with several
// assertions all do.
func TestParallelAssertions(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	used := w.begin()
	var own []auth.FinishPasskeySignInParams
	for range 4 {
		own = append(own, w.begin())
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	wins := 0
	for range 8 {
		wg.Go(func() {
			if _, err := w.FinishPasskeySignIn(t.Context(), used); err == nil {
				mu.Lock()
				wins++
				mu.Unlock()
			}
		})
	}
	for _, p := range own {
		wg.Go(func() {
			if _, err := w.FinishPasskeySignIn(t.Context(), p); err != nil {
				t.Errorf("parallel sign-in: %v", err)
			}
		})
	}
	wg.Wait()
	if wins != 1 {
		t.Errorf("one assertion signed in %d times", wins)
	}
}

func TestHostileAssertions(t *testing.T) {
	w := newWorld(t)
	_, err := w.add(false)
	w.must(err)
	for name, lie := range map[string]func(a *authenticator.Authenticator){
		"another origin":        func(a *authenticator.Authenticator) { a.Origin = "https://evil.test" },
		"a subdomain":           func(a *authenticator.Authenticator) { a.Origin = "https://x.auth.test" },
		"http":                  func(a *authenticator.Authenticator) { a.Origin = "http://auth.test" },
		"no verification":       func(a *authenticator.Authenticator) { a.Flags = authenticator.UserPresent },
		"nobody present":        func(a *authenticator.Authenticator) { a.Flags = authenticator.UserVerified },
		"backed up, ineligible": func(a *authenticator.Authenticator) { a.Flags |= authenticator.BackedUp },
	} {
		t.Run(name, func(t *testing.T) {
			honest := *w.key
			defer func() { *w.key = honest }()
			lie(w.key)
			_, err := w.signIn()
			w.want(err, auth.CodeInvalidPasskey)
		})
	}
	p := w.begin()
	var response map[string]any
	w.must(json.Unmarshal(p.Credential, &response))
	fields := response["response"].(map[string]any)
	for _, field := range []string{"clientDataJSON", "authenticatorData", "signature", "userHandle"} {
		was := fields[field]
		for _, value := range []any{"", "AAAA", nil, 7, []string{"x"}} {
			fields[field] = value
			b, err := json.Marshal(response)
			w.must(err)
			_, err = w.FinishPasskeySignIn(t.Context(), auth.FinishPasskeySignInParams{RequestID: p.RequestID, Credential: b})
			w.want(err, auth.CodeInvalidPasskey)
		}
		fields[field] = was
	}
	_, err = w.FinishPasskeySignIn(t.Context(), p)
	w.must(err)
}

// A passkey that became a second factor is asked for after the password, and replaces it.
func TestPasskeyAsSecondFactor(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(true)
	w.must(err)
	if !added.Passkey.SecondFactor || len(added.RecoveryCodes) == 0 || w.claims(added.Tokens).AAL != "aal2" {
		t.Fatalf("added %+v", added)
	}
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeMFARequired)
	var e *auth.Error
	errors.As(err, &e)
	if !slices.Equal(e.Factors, []string{"passkey", "recovery_code"}) && !slices.Equal(e.Factors, []string{"passkey", "recovery"}) {
		t.Errorf("factors %q", e.Factors)
	}
	begun, err := w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{MFAToken: e.MFAToken})
	w.must(err)
	response, err := w.key.Get(begun.PublicKey)
	w.must(err)
	tokens, err := w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: response})
	w.must(err)
	if claims := w.claims(tokens); claims.AAL != "aal2" || len(claims.AMR) != 2 {
		t.Errorf("claims %+v", claims)
	}
	if _, err := w.signIn(); err != nil {
		t.Errorf("alone: %v", err)
	}
	_, err = w.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: e.MFAToken, Passkey: response})
	w.want(err, auth.CodeInvalidToken)
}

// A passkey that a browser created by itself is one factor until it was used with another.
func TestUpgradedPasskeyIsOneFactor(t *testing.T) {
	w := newWorld(t)
	begun, err := w.BeginPasskey(t.Context(), auth.BeginPasskeyParams{Caller: w.caller(), Conditional: true})
	w.must(err)
	w.key.Flags = 0
	response, err := w.key.Create(begun.PublicKey)
	w.must(err)
	_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response, SecondFactor: true})
	w.want(err, auth.CodeValidationFailed)
	_, err = w.AddPasskey(t.Context(), auth.AddPasskeyParams{Caller: w.caller(), Credential: response})
	w.must(err)
	w.key.Flags = authenticator.UserPresent | authenticator.UserVerified
	for range 2 { // the same passkey does not make itself count
		tokens, err := w.signIn()
		w.must(err)
		if claims := w.claims(tokens); claims.AAL != "aal1" {
			t.Errorf("claims %+v", claims)
		}
		by := w.claims(tokens).Caller()
		begun, err = w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{Caller: by})
		w.must(err)
		response, err = w.key.Get(begun.PublicKey)
		w.must(err)
		confirmed, err := w.Confirm(t.Context(), auth.ConfirmParams{Caller: by, Passkey: response})
		w.must(err)
		if claims := w.claims(confirmed); claims.AAL != "aal1" {
			t.Errorf("the same passkey counted twice: %+v", claims)
		}
	}
	begun, err = w.BeginPasskeyFactor(t.Context(), auth.BeginPasskeyFactorParams{Caller: w.caller()})
	w.must(err)
	response, err = w.key.Get(begun.PublicKey)
	w.must(err)
	tokens, err := w.Confirm(t.Context(), auth.ConfirmParams{Caller: w.caller(), Passkey: response})
	w.must(err)
	if claims := w.claims(tokens); claims.AAL != "aal2" {
		t.Errorf("password and passkey: %+v", claims)
	}
	tokens, err = w.signIn()
	w.must(err)
	if claims := w.claims(tokens); claims.AAL != "aal2" {
		t.Errorf("afterwards: %+v", claims)
	}
}

func TestRemovePasskey(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(true)
	w.must(err)
	w.ada.Tokens = *added.Tokens
	late := w.begin()
	w.must(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}))
	_, err = w.FinishPasskeySignIn(t.Context(), late)
	w.want(err, auth.CodePasskeyRemoved)
	if _, err := w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}); err != nil {
		t.Errorf("a second factor is still asked for: %v", err)
	}
	w.want(w.RemovePasskey(t.Context(), auth.RemovePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID}), auth.CodePasskeyNotFound)
	unknown := authenticator.New(origin)
	strange, err := unknown.Create(mustBegin(w).PublicKey)
	w.must(err)
	_ = strange
	w.key = unknown
	_, err = w.signIn()
	w.want(err, auth.CodeInvalidPasskey) // never said of a passkey that was not removed here
}

func mustBegin(w *world) *auth.PasskeyRequest {
	w.t.Helper()
	begun, err := w.BeginPasskey(w.t.Context(), auth.BeginPasskeyParams{Caller: w.caller()})
	w.must(err)
	return begun
}

// A passkey becomes a second factor later, in a session that has just used it.
func TestPasskeyBecomesSecondFactor(t *testing.T) {
	w := newWorld(t)
	added, err := w.add(false)
	w.must(err)
	yes, no, name := true, false, "Phone"
	change := auth.ChangePasskeyParams{Caller: w.caller(), ID: added.Passkey.ID, SecondFactor: &yes, Name: &name}
	_, err = w.ChangePasskey(t.Context(), change)
	w.want(err, auth.CodeInsufficientAAL)
	tokens, err := w.signIn()
	w.must(err)
	change.Caller = w.claims(tokens).Caller()
	changed, err := w.ChangePasskey(t.Context(), change)
	w.must(err)
	if !changed.Passkey.SecondFactor || changed.Passkey.Name != name || len(changed.RecoveryCodes) != 10 {
		t.Errorf("changed %+v", changed)
	}
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.want(err, auth.CodeMFARequired)
	change.SecondFactor, change.Name = &no, nil
	_, err = w.ChangePasskey(t.Context(), change)
	w.must(err)
	_, err = w.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
	w.must(err)
}
