package takeover_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// recorder is a store that remembers which tokens it was given.
type recorder struct {
	*memstore.Store
	mu     sync.Mutex
	tokens []store.Token
}

func (r *recorder) PutToken(ctx context.Context, c store.PutToken) error {
	err := r.Store.PutToken(ctx, c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tokens = append(r.tokens, c.Token)
	}
	return err
}

// live lists the purposes of a user's valid tokens, each once.
func (r *recorder) live(t *testing.T, userID string, now time.Time) []store.Purpose {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []store.Purpose{}
	for _, token := range r.tokens {
		_, err := r.PeekToken(t.Context(), token.Purpose, token.Hash, now)
		if token.UserID == userID && err == nil {
			list = append(list, token.Purpose)
		} else if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// leftovers are the parts of an account that a squatter keeps for later.
type leftovers struct {
	v                   *harness.Visitor
	back                url.Values // of a linking
	code, enrol, change string
	magic, reset        string // sent to the owner, requested by the squatter
}

// squat sets up an account with another person's email address or phone number and starts
// every flow that it can.
func squat(t *testing.T, w *harness.World, idp *authtest.Provider, byPhone bool) (userID string, l leftovers) {
	t.Helper()
	who := map[string]any{"email": harness.Ada.Email, "password": harness.GoodPassword}
	if byPhone {
		who = map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
	}
	evil := w.Do("POST", "/signup", who).Session()
	userID = evil.User.ID
	// With a verified credential of their own, the account may get more.
	if byPhone {
		w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode) // so that it is not taken for the owner's
	}
	w.Patch(userID, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: "facebook", Subject: "669", CreatedAt: w.Clock.Now()}})
	w.Patch(userID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	l.enrol = harness.DecodeAs[map[string]any](w.Do("POST", "/login", who).Want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
	// Set up separately, since an account has a factor or must set one up.
	w.Patch(userID, store.UserPatch{AppMetadata: map[string]any{}})
	l.v = w.NewVisitor(idp)
	to := l.v.Link("github", evil, nil)
	idp.SignsIn(harness.EvilGit)
	l.v.Back("github", idp.Authorize(t, to)).Session()
	l.code = w.NewVisitor(idp).SignIn("github", harness.EvilGit, "redirect_to=https://app.test/").Location().Query().Get("code")
	to = l.v.Link("google", evil, nil)
	l.back = idp.Authorize(t, to)
	w.Do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, harness.Bearer(evil.AccessToken)).Want(200)
	l.change = w.LinkToken("evil@example.com", auth.KindChangeEmail)
	if !byPhone {
		l.magic = w.MagicLink(harness.Ada.Email, map[string]any{"code_challenge": harness.ChallengeOf(harness.Verifier)})
		w.Do("POST", "/forgot-password", map[string]any{"email": harness.Ada.Email}).Want(200)
		l.reset = w.LinkToken(harness.Ada.Email, auth.KindResetPassword)
	}
	w.Do("PATCH", "/me", map[string]any{"phone": "+4930777777"}, harness.Bearer(evil.AccessToken)).Want(200)
	return userID, l
}

// refused tests everything that a squatter has kept.
func (l leftovers) refused(w *harness.World) {
	w.T.Helper()
	w.PostExchange(l.code, harness.Verifier).Want(400, auth.CodeInvalidCode)
	l.v.Back("google", l.back).Want(400, auth.CodeBadOAuthState)
	w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(l.enrol)).Want(401, auth.CodeBadToken)
	w.Do("POST", "/verify-email", map[string]any{"token": l.change}).Want(400, auth.CodeInvalidToken)
	if l.magic != "" {
		w.Do("POST", "/magic-link/verify", map[string]any{"token": l.magic, "code_verifier": harness.Verifier}).Want(400, auth.CodeInvalidToken)
		w.Do("POST", "/reset-password", map[string]any{"token": l.reset, "new_password": "another horse battery"}).Want(400, auth.CodeInvalidToken)
	}
}

// A squatter sets up an account with the owner's data and keeps everything that could bring
// them back. However the owner signs in, all of it is then invalid and deleted from the
// store.
func TestTakeoverLeavesNothingPending(t *testing.T) {
	kept := []store.Purpose{store.PurposeEnroll, store.PurposeExchange, store.PurposeOAuth, store.PurposePhoneChange, store.PurposeVerifyEmail}
	more := []store.Purpose{store.PurposeMagicLink, store.PurposeReset}
	owned := map[bool][]any{false: {harness.Ada.Email, true, "", false}, true: {"", false, harness.PhoneNumber, true}}
	for name, begin := range map[string]func(w *harness.World, idp *authtest.Provider) (complete func()){
		"google": func(w *harness.World, idp *authtest.Provider) func() {
			return func() { w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session() }
		},
		"magic link": func(w *harness.World, _ *authtest.Provider) func() {
			token := newLink(w, "/magic-link/send", auth.KindMagicLink)
			return func() { w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Session() }
		},
		"reset": func(w *harness.World, _ *authtest.Provider) func() {
			body := map[string]any{"token": newLink(w, "/forgot-password", auth.KindResetPassword), "new_password": "another horse battery"}
			return func() { w.Do("POST", "/reset-password", body).Want(200) }
		},
		"phone code": func(w *harness.World, _ *authtest.Provider) func() {
			code := w.NewCode("")
			return func() { w.PostOTP(harness.PhoneNumber, code).Session() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp, st := authtest.StartProvider(t), &recorder{Store: memstore.New()}
			w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
			w.Env = authtest.NewOn(t, st, auth.WithProvider(idp.Google(), idp.GitHub()), auth.WithRateLimits(auth.RateLimits{Off: true}))
			idp.Now = w.Clock.Now
			byPhone := name == "phone code"
			id, left := squat(t, w, idp, byPhone)
			want := slices.Clone(kept)
			if !byPhone {
				want = append(want, more...)
			}
			slices.Sort(want)
			if live := st.live(t, id, w.Clock.Now()); !slices.Equal(live, want) {
				t.Fatalf("pending before: %v, want %v", live, want)
			}
			begin(w, idp)()
			if live := st.live(t, id, w.Clock.Now()); len(live) != 0 {
				t.Errorf("pending still: %v", live)
			}
			left.refused(w)
			u, err := w.Store.User(t.Context(), store.ByID(id))
			if got, want := []any{u.Email, u.EmailVerified(), u.Phone, u.PhoneVerified()}, owned[byPhone]; err != nil || !slices.Equal(got, want) {
				t.Errorf("the account is not its owner's: %+v, %v", u, err)
			}
			if slices.ContainsFunc(u.Identities, func(i auth.Identity) bool { return i.Subject == harness.EvilGit.Subject }) {
				t.Errorf("the squatter's identity is left: %+v", u.Identities)
			}
			if got := w.OwnerOf(w.NewVisitor(idp).SignIn("github", harness.EvilGit, "")); got == id || got == "" {
				t.Errorf("the squatter's identity signs in to %q", got)
			}
		})
	}
}

// newLink requests a link to ada's address and waits until a new one arrives.
func newLink(w *harness.World, path string, k auth.Kind) string {
	w.T.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	w.Do("POST", path, map[string]any{"email": harness.Ada.Email}).Want(200)
	ctx, cancel := context.WithTimeout(w.T.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == k && !seen[m.ID] })
	if err != nil {
		w.T.Fatal(err)
	}
	u, err := url.Parse(m.Link)
	if err != nil {
		w.T.Fatal(err)
	}
	return u.Query().Get("token")
}

// A sign-in that waits for the second factor depends on its password, which is the squatter's.
func TestTakeoverEndsPendingFactor(t *testing.T) {
	for name, prove := range map[string]func(w *harness.World, idp *authtest.Provider){
		"google": func(w *harness.World, idp *authtest.Provider) {
			w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session() // without the squatter's factor
		},
		"magic link": func(w *harness.World, _ *authtest.Provider) {
			w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.Ada.Email, nil)}).Session()
		},
		"reset": func(w *harness.World, _ *authtest.Provider) {
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.Ada.Email}).Want(200)
			body := map[string]any{"token": w.LinkToken(harness.Ada.Email, auth.KindResetPassword), "new_password": "another horse battery"}
			w.Do("POST", "/reset-password", body).Want(200)
		},
		"phone code": func(w *harness.World, _ *authtest.Provider) {
			w.PostOTP(harness.PhoneNumber, w.NewCode(w.Mail(t, harness.PhoneNumber, auth.KindPhoneCode).Code)).Session()
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp, st := authtest.StartProvider(t), &recorder{Store: memstore.New()}
			w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
			w.Env = authtest.NewOn(t, st, auth.WithProvider(idp.Google()))
			idp.Now = w.Clock.Now
			who := map[string]any{"email": harness.Ada.Email, "password": harness.GoodPassword}
			if name == "phone code" {
				who = map[string]any{"phone": harness.PhoneNumber, "password": harness.GoodPassword}
			}
			evil := w.Enrol(w.Do("POST", "/signup", who).Session().AccessToken)
			w.Clock.Advance(time.Minute)
			token := harness.DecodeAs[map[string]any](w.Do("POST", "/login", who).Want(403, auth.CodeMFARequired))["mfa_token"].(string)
			first := st.tokens[len(st.tokens)-1]
			prove(w, idp)
			if _, err := st.PeekToken(t.Context(), store.PurposeMFA, first.Hash, w.Clock.Now()); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("pending still: %v", err)
			}
			w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.Code(evil.Secret, 0)}).Want(400, auth.CodeInvalidToken)
		})
	}
}

// The squatter linked an identity of the same provider that the owner signs in with. That is
// no reason to refuse the owner.
func TestTakeoverFromSameProvider(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	evil := w.Squatter(harness.Ada.Email)
	v := w.NewVisitor(idp)
	to := v.Link("google", evil, nil)
	idp.SignsIn(harness.EvilGit)
	v.Back("google", idp.Authorize(t, to)).Session()
	owner := w.NewVisitor(idp).SignIn("google", harness.Ada, "").Session()
	if owner.User.ID != evil.User.ID || len(owner.User.Identities) != 1 || owner.User.Identities[0].Subject != harness.Ada.Subject {
		t.Errorf("user %+v", owner.User)
	}
	if w.Alive(evil.AccessToken) {
		t.Error("the squatter's session goes on")
	}
	if got := w.NewVisitor(idp).SignIn("google", harness.EvilGit, "").Session(); got.User.ID == owner.User.ID {
		t.Error("the squatter's identity still opens the account")
	}
}
