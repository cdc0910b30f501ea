package auth_test

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

// live lists the purposes of a user's tokens that are good still, each once.
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

// leftovers is what a squatter keeps of an account for later.
type leftovers struct {
	v                   *visitor
	back                url.Values // of a linking
	code, enrol, change string
	magic, reset        string // sent to the owner, asked for by the squatter
}

// squat sets an account up that is somebody else's, by address or by number, and
// begins whatever can be begun.
func squat(t *testing.T, w *world, idp *authtest.Provider, byPhone bool) (userID string, l leftovers) {
	t.Helper()
	who := map[string]any{"email": ada.Email, "password": goodPassword}
	if byPhone {
		who = map[string]any{"phone": number, "password": goodPassword}
	}
	evil := w.do("POST", "/signup", who).session()
	userID = evil.User.ID
	// With another way in of their own, proved, the account may grow more.
	at, phone := w.Clock.Now(), "+4930555555"
	if byPhone {
		w.Mail(t, number, auth.KindPhoneCode) // so that it is not taken for the owner's
		w.patch(userID, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: "facebook", Subject: "669", CreatedAt: at}})
	} else {
		w.patch(userID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	}
	w.patch(userID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
	l.enrol = decodeAs[map[string]any](w.do("POST", "/login", who).want(403, auth.CodeMFAEnrollmentRequired))["mfa_token"].(string)
	// Kept apart, since an account has a factor or is asked to set one up.
	w.patch(userID, store.UserPatch{AppMetadata: map[string]any{}})
	l.v = w.visitor(idp)
	to := l.v.link("github", evil, nil)
	idp.SignsIn(evilGit)
	l.v.back("github", idp.Authorize(t, to)).session()
	l.code = w.visitor(idp).signIn("github", evilGit, "redirect_to=https://app.test/").location().Query().Get("code")
	to = l.v.link("google", evil, nil)
	l.back = idp.Authorize(t, to)
	w.do("PATCH", "/me", map[string]any{"email": "evil@example.com"}, bearer(evil.AccessToken)).want(200)
	l.change = w.linkToken("evil@example.com", auth.KindChangeEmail)
	if !byPhone {
		first := "+4930999999"
		w.do("PATCH", "/me", map[string]any{"phone": first}, bearer(evil.AccessToken)).want(200)
		code := w.Mail(t, first, auth.KindPhoneCode).Code
		w.otp(first, code, bearer(evil.AccessToken)).want(200)
		w.do("POST", "/otp/send", map[string]any{"phone": first}).want(200)
		l.magic = w.magicLink(ada.Email, map[string]any{"code_challenge": challengeOf(verifier)})
		w.do("POST", "/forgot-password", map[string]any{"email": ada.Email}).want(200)
		l.reset = w.linkToken(ada.Email, auth.KindResetPassword)
	}
	w.do("PATCH", "/me", map[string]any{"phone": "+4930777777"}, bearer(evil.AccessToken)).want(200)
	return userID, l
}

// refused tries all that a squatter has kept.
func (l leftovers) refused(w *world) {
	w.t.Helper()
	w.do("POST", "/exchange", map[string]any{"code": l.code}).want(400, auth.CodeInvalidCode)
	l.v.back("google", l.back).want(400, auth.CodeBadOAuthState)
	w.do("POST", "/2fa/setup-totp", nil, bearer(l.enrol)).want(401, auth.CodeBadToken)
	w.do("GET", "/verify-email?token="+l.change, nil).want(400, auth.CodeInvalidToken)
	if l.magic != "" {
		w.do("POST", "/magic-link/verify", map[string]any{"token": l.magic, "code_verifier": verifier}).want(400, auth.CodeInvalidToken)
		w.do("POST", "/reset-password", map[string]any{"token": l.reset, "new_password": "another horse battery"}).want(400, auth.CodeInvalidToken)
	}
}

// Somebody has set an account up with what is another's, and has left behind what
// could bring them back. Whichever way its owner comes, nothing of it is good any
// more, and nothing of it is left in the store.
func TestTakeoverLeavesNothingPending(t *testing.T) {
	kept := []store.Purpose{store.PurposeEmailCode, store.PurposeEnroll, store.PurposeExchange, store.PurposeOAuth, store.PurposePhoneChange, store.PurposeVerifyEmail}
	more := []store.Purpose{store.PurposeMagicLink, store.PurposePhoneCode, store.PurposeReset}
	owned := map[bool][]any{false: {ada.Email, true, "", false}, true: {"", false, number, true}}
	for name, begin := range map[string]func(w *world, idp *authtest.Provider) (complete func()){
		"google": func(w *world, idp *authtest.Provider) func() {
			return func() { w.visitor(idp).signIn("google", ada, "").session() }
		},
		"magic link": func(w *world, _ *authtest.Provider) func() {
			token := w.newLink("/magic-link/send", auth.KindMagicLink)
			return func() { w.do("POST", "/magic-link/verify", map[string]any{"token": token}).session() }
		},
		"reset": func(w *world, _ *authtest.Provider) func() {
			body := map[string]any{"token": w.newLink("/forgot-password", auth.KindResetPassword), "new_password": "another horse battery"}
			return func() { w.do("POST", "/reset-password", body).want(200) }
		},
		"phone code": func(w *world, _ *authtest.Provider) func() {
			code := w.newCode("")
			return func() { w.otp(number, code).session() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp, st := authtest.StartProvider(t), &recorder{Store: memstore.New()}
			w := &world{t: t, log: &syncBuffer{}}
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
			if slices.ContainsFunc(u.Identities, func(i auth.Identity) bool { return i.Subject == evilGit.Subject }) {
				t.Errorf("the squatter's identity is left: %+v", u.Identities)
			}
			if got := w.ownerOf(w.visitor(idp).signIn("github", evilGit, "")); got == id || got == "" {
				t.Errorf("the squatter's identity signs in to %q", got)
			}
		})
	}
}

// newLink asks for a link to ada's address and waits for another one than those
// there are.
func (w *world) newLink(path string, k auth.Kind) string {
	w.t.Helper()
	seen := map[string]bool{}
	for _, m := range w.Inbox.Messages() {
		seen[m.ID] = true
	}
	w.do("POST", path, map[string]any{"email": ada.Email}).want(200)
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	m, err := w.Inbox.Wait(ctx, func(m auth.Message) bool { return m.Kind == k && !seen[m.ID] })
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := url.Parse(m.Link)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Query().Get("token")
}

// A sign-in that waits for the second factor stands for the password it was
// judged by, which is the squatter's.
func TestTakeoverEndsPendingFactor(t *testing.T) {
	for name, prove := range map[string]func(w *world, idp *authtest.Provider){
		"google": func(w *world, idp *authtest.Provider) {
			w.visitor(idp).signIn("google", ada, "").session() // not asked for the squatter's factor
		},
		"magic link": func(w *world, _ *authtest.Provider) {
			w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(ada.Email, nil)}).session()
		},
		"reset": func(w *world, _ *authtest.Provider) {
			w.do("POST", "/forgot-password", map[string]any{"email": ada.Email}).want(200)
			body := map[string]any{"token": w.linkToken(ada.Email, auth.KindResetPassword), "new_password": "another horse battery"}
			w.do("POST", "/reset-password", body).want(200)
		},
		"phone code": func(w *world, _ *authtest.Provider) {
			w.otp(number, w.newCode(w.Mail(t, number, auth.KindPhoneCode).Code)).session()
		},
	} {
		t.Run(name, func(t *testing.T) {
			idp, st := authtest.StartProvider(t), &recorder{Store: memstore.New()}
			w := &world{t: t, log: &syncBuffer{}}
			w.Env = authtest.NewOn(t, st, auth.WithProvider(idp.Google()))
			idp.Now = w.Clock.Now
			who := map[string]any{"email": ada.Email, "password": goodPassword}
			if name == "phone code" {
				who = map[string]any{"phone": number, "password": goodPassword}
			}
			evil := w.enrol(w.do("POST", "/signup", who).session().AccessToken)
			w.Clock.Advance(time.Minute)
			token := decodeAs[map[string]any](w.do("POST", "/login", who).want(403, auth.CodeMFARequired))["mfa_token"].(string)
			first := st.tokens[len(st.tokens)-1]
			prove(w, idp)
			if _, err := st.PeekToken(t.Context(), store.PurposeMFA, first.Hash, w.Clock.Now()); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("pending still: %v", err)
			}
			w.do("POST", "/2fa/verify", map[string]any{"mfa_token": token, "totp_code": w.code(evil.secret, 0)}).want(400, auth.CodeInvalidToken)
		})
	}
}

// The squatter linked an identity of the very provider that the owner comes by.
// That is no reason to turn the owner away.
func TestTakeoverFromSameProvider(t *testing.T) {
	w, idp := providerWorld(t)
	evil := w.squatter(ada.Email)
	v := w.visitor(idp)
	to := v.link("google", evil, nil)
	idp.SignsIn(evilGit)
	v.back("google", idp.Authorize(t, to)).session()
	owner := w.visitor(idp).signIn("google", ada, "").session()
	if owner.User.ID != evil.User.ID || len(owner.User.Identities) != 1 || owner.User.Identities[0].Subject != ada.Subject {
		t.Errorf("user %+v", owner.User)
	}
	if w.alive(evil.AccessToken) {
		t.Error("the squatter's session goes on")
	}
	if got := w.visitor(idp).signIn("google", evilGit, "").session(); got.User.ID == owner.User.ID {
		t.Error("the squatter's identity still opens the account")
	}
}
