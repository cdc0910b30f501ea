package takeover_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// The class: a stranger requests a link or code for another person's email address or phone
// number, from an account that the stranger set up, and that person opens the link or types
// the code. Whatever the person presses, and in whichever session, the stranger's
// credentials open no account with the person's address or number.

const (
	victim       = "ada@example.com"
	victimNumber = "+4930123456"
	stranger     = "evil@example.com"
)

// evidence is a link or code that the other person received.
type evidence struct {
	path string
	body map[string]any

	// The stranger's credentials.
	names    []string // to log in with, next to harness.EvilPassword
	sessions []string // access tokens
}

// evidenceRow is a way to bring a link or code of a kind to another person.
type evidenceRow struct {
	kind    auth.Kind
	name    string
	confirm bool
	ask     func(w *harness.World, idp *authtest.Provider) evidence

	// completes is set for links and codes that complete where they are opened. All others
	// have no effect there.
	completes bool
}

func evidenceRows() []evidenceRow {
	signUp := func(w *harness.World, name string) (access string) {
		field := "email"
		if strings.HasPrefix(name, "+") {
			field = "phone"
		}
		a := w.Do("POST", "/signup", map[string]any{field: name, "password": harness.EvilPassword}).Want(200)
		return harness.DecodeAs[harness.Session](a).AccessToken
	}
	ofLink := func(path, token string) evidence { return evidence{path: path, body: map[string]any{"token": token}} }
	squats := func(then func(w *harness.World) evidence) func(*harness.World, *authtest.Provider) evidence {
		return func(w *harness.World, _ *authtest.Provider) evidence {
			access := signUp(w, victim)
			e := then(w)
			e.names, e.sessions = []string{victim}, []string{access}
			return e
		}
	}
	owns := func(then func(w *harness.World, access string) evidence) func(*harness.World, *authtest.Provider) evidence {
		return func(w *harness.World, _ *authtest.Provider) evidence {
			access := signUp(w, stranger)
			w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(stranger, auth.KindVerifyEmail)}, harness.Bearer(access)).Want(200)
			e := then(w, access)
			e.names, e.sessions = []string{stranger, victim}, []string{access}
			return e
		}
	}
	verifyLink := func(w *harness.World) evidence {
		return ofLink("/verify-email", w.LinkToken(victim, auth.KindVerifyEmail))
	}
	byCode := func(code string) evidence {
		return evidence{path: "/verify-email", body: map[string]any{"email": victim, "code": code}}
	}
	moves := func(w *harness.World, access string) string {
		w.Do("PATCH", "/me", map[string]any{"email": victim}, harness.Bearer(access)).Want(200)
		return w.LinkToken(victim, auth.KindChangeEmail)
	}
	return []evidenceRow{
		{kind: auth.KindVerifyEmail, name: "link", ask: squats(verifyLink)},
		{kind: auth.KindVerifyEmail, name: "link, to confirm", confirm: true, ask: squats(verifyLink)},
		{kind: auth.KindVerifyEmail, name: "link, with a verified number", ask: func(w *harness.World, _ *authtest.Provider) evidence {
			s := w.Do("POST", "/signup", map[string]any{"email": victim, "password": harness.EvilPassword}).Session()
			phone, at := "+4930555555", w.Clock.Now()
			w.Patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
			e := verifyLink(w)
			e.names, e.sessions = []string{victim, phone}, []string{s.AccessToken}
			return e
		}},
		{kind: auth.KindVerifyEmail, name: "link, of an identity", ask: func(w *harness.World, idp *authtest.Provider) evidence {
			s := w.NewVisitor(idp).SignIn("facebook", authtest.Person{Subject: "666", Email: victim}, "").Session()
			e := verifyLink(w)
			e.sessions = []string{s.AccessToken}
			return e
		}},
		{kind: auth.KindVerifyEmail, name: "code in the mail", completes: true, ask: squats(func(w *harness.World) evidence {
			return byCode(w.Mail(w.T, victim, auth.KindVerifyEmail).Code)
		})},
		{kind: auth.KindVerifyEmail, name: "code on the page", completes: true, ask: squats(func(w *harness.World) evidence {
			return byCode(w.ShownCode(w.LinkToken(victim, auth.KindVerifyEmail)))
		})},
		{kind: auth.KindVerifyEmail, name: "code on the page, to confirm", confirm: true, completes: true, ask: squats(func(w *harness.World) evidence {
			return byCode(w.ShownCode(w.LinkToken(victim, auth.KindVerifyEmail)))
		})},
		{kind: auth.KindChangeEmail, name: "link", ask: owns(func(w *harness.World, access string) evidence {
			return ofLink("/verify-email", moves(w, access))
		})},
		{kind: auth.KindChangeEmail, name: "code", ask: owns(func(w *harness.World, access string) evidence {
			return byCode(w.ShownCode(moves(w, access)))
		})},
		{kind: auth.KindPhoneCode, name: "of a change", ask: owns(func(w *harness.World, access string) evidence {
			w.Do("PATCH", "/me", map[string]any{"phone": victimNumber}, harness.Bearer(access)).Want(200)
			return evidence{path: "/otp/verify", body: map[string]any{"phone": victimNumber, "otp": w.Mail(w.T, victimNumber, auth.KindPhoneCode).Code}}
		})},
		{kind: auth.KindPhoneCode, name: "of a sign-up", completes: true, ask: func(w *harness.World, _ *authtest.Provider) evidence {
			access := signUp(w, victimNumber)
			code := w.Mail(w.T, victimNumber, auth.KindPhoneCode).Code
			return evidence{path: "/otp/verify", body: map[string]any{"phone": victimNumber, "otp": code}, names: []string{victimNumber}, sessions: []string{access}}
		}},
		{kind: auth.KindMagicLink, name: "link", completes: true, ask: squats(func(w *harness.World) evidence {
			return ofLink("/magic-link/verify", w.MagicLink(victim, nil))
		})},
		{kind: auth.KindResetPassword, name: "link", completes: true, ask: squats(func(w *harness.World) evidence {
			w.Do("POST", "/forgot-password", map[string]any{"email": victim}).Want(200)
			return withPassword(ofLink("/reset-password", w.LinkToken(victim, auth.KindResetPassword)))
		})},
		{kind: auth.KindAccountExists, name: "link", confirm: true, completes: true, ask: squats(func(w *harness.World) evidence {
			w.Do("POST", "/signup", map[string]any{"email": victim, "password": harness.GoodPassword}).Want(200)
			return withPassword(ofLink("/reset-password", w.LinkToken(victim, auth.KindAccountExists)))
		})},
		{kind: auth.KindWelcome, name: "link", completes: true, ask: func(w *harness.World, _ *authtest.Provider) evidence {
			u := w.Imported(auth.ImportUserParams{Email: victim})
			if err := w.SendWelcome(w.T.Context(), auth.SendWelcomeParams{UserID: u.ID}); err != nil {
				w.T.Fatal(err)
			}
			return withPassword(ofLink("/reset-password", w.LinkToken(victim, auth.KindWelcome)))
		}},
		{kind: auth.KindInvitation, name: "link", completes: true, ask: func(w *harness.World, _ *authtest.Provider) evidence {
			token := w.Invited(victim)
			access := signUp(w, victim)
			return evidence{path: "/invitations/accept", body: map[string]any{"token": token, "password": harness.OwnPassword}, names: []string{victim}, sessions: []string{access}}
		}},
	}
}

func withPassword(e evidence) evidence {
	e.body["new_password"] = harness.OwnPassword
	return e
}

// elsewhere are the ways to open a link or use a code outside of the session that asked.
func elsewhere() map[string]func(w *harness.World, e evidence) *harness.Answer {
	form := func(e evidence, more ...string) string {
		v := url.Values{}
		for name, s := range e.body {
			v.Set(name, s.(string))
		}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v.Encode()
	}
	get := func(w *harness.World, e evidence, h ...harness.Header) *harness.Answer {
		token, _ := e.body["token"].(string)
		return w.Do("GET", e.path+"?token="+token, nil, h...)
	}
	return map[string]func(w *harness.World, e evidence) *harness.Answer{
		"none": func(w *harness.World, e evidence) *harness.Answer {
			return w.Do("POST", e.path, form(e), harness.Form, harness.Browser, harness.SameOrigin)
		},
		"none, by a program": func(w *harness.World, e evidence) *harness.Answer { return w.Do("POST", e.path, e.body) },
		"another session": func(w *harness.World, e evidence) *harness.Answer {
			return w.Do("POST", e.path, e.body, harness.Bearer(w.Member("other@example.com").AccessToken))
		},
		"another session, on the page": func(w *harness.World, e evidence) *harness.Answer {
			return w.Do("POST", e.path, form(e), harness.Form, harness.Browser, harness.SameOrigin, harness.Bearer(w.Member("other@example.com").AccessToken))
		},
		"none, shows a code": func(w *harness.World, e evidence) *harness.Answer {
			return w.Do("POST", e.path, form(e, "show_code", "1"), harness.Form, harness.Browser, harness.SameOrigin)
		},
		"opened by a program": func(w *harness.World, e evidence) *harness.Answer { return get(w, e) },
		"opened":              func(w *harness.World, e evidence) *harness.Answer { return get(w, e, harness.Browser) },
	}
}

// TestEvidenceElsewhere is the class. The rows have every kind of message with a link or code
// that a stranger can have sent to another person.
func TestEvidenceElsewhere(t *testing.T) {
	t.Parallel()
	for _, r := range evidenceRows() {
		for where, use := range elsewhere() {
			t.Run(string(r.kind)+" "+r.name+"/"+where, func(t *testing.T) {
				t.Parallel()
				settings := auth.Settings{RequireConfirmation: auth.Off}
				if r.confirm {
					settings.RequireConfirmation = auth.On
				}
				w, idp := harness.NewProviderWorld(t, auth.WithSettings(settings), auth.WithRateLimits(auth.RateLimits{Off: true}))
				if r.confirm && strings.HasPrefix(where, "another session") {
					return // the session's account would have to be confirmed first, by such a link
				}
				e := r.ask(w, idp)
				use(w, e)
				verified := false
				for _, key := range []store.UserKey{store.ByEmail(victim), store.ByPhone(victimNumber)} {
					u, err := w.Store.User(t.Context(), key)
					verified = verified || err == nil && (u.Email == victim && u.EmailVerified() || u.Phone == victimNumber && u.PhoneVerified())
				}
				switch {
				case verified && !r.completes:
					t.Error("it completes elsewhere")
				case !verified && r.completes && where == "none, by a program":
					t.Error("it completes nowhere")
				}
				if !verified {
					return
				}
				for _, name := range e.names {
					field := "email"
					if strings.HasPrefix(name, "+") {
						field = "phone"
					}
					if a := w.Do("POST", "/login", map[string]any{field: name, "password": harness.EvilPassword}); a.Status != 401 {
						t.Errorf("the stranger's password is answered %d", a.Status)
					}
				}
				for _, access := range e.sessions {
					if access != "" && w.Alive(access) {
						t.Error("the stranger's session opens the account")
					}
				}
			})
		}
	}
}

// ownKinds are the kinds of messages with a link that acts on the recipient's own account,
// and that no stranger has sent from an account of theirs: the tests of account recovery are
// about them.
var ownKinds = []auth.Kind{auth.KindEmailChangeRequested, auth.KindEmailChanged, auth.KindNewDevice}

// Each kind of message with a link or code has a row.
func TestEvidenceElsewhereIsComplete(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../../templates/languages/en/mails.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts map[string]string
	if err := json.Unmarshal(file, &texts); err != nil || len(texts) == 0 {
		t.Fatal(texts, err)
	}
	rows := map[auth.Kind]bool{}
	for _, k := range ownKinds {
		rows[k] = true
	}
	for _, r := range evidenceRows() {
		rows[r.kind] = true
	}
	carry := map[auth.Kind]bool{}
	for key, text := range texts {
		kind, part, _ := strings.Cut(key, ".")
		if part == "button" || strings.Contains(text, "{code}") {
			carry[auth.Kind(kind)] = true
		}
	}
	if !maps.Equal(rows, carry) {
		t.Errorf("rows %v, messages with a link or code %v", slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(carry)))
	}
}
