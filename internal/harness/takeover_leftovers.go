package harness

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
)

// Leftovers returns all access that the person who lost the account still has.
func (s *Scene) Leftovers(a Act) (list []string) {
	s.T.Helper()
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	ctx := s.T.Context()
	for _, c := range s.Look(ctx).Changed(s.Before) {
		add("the request changed the account after the act: %s", c)
	}
	s.Clock.Advance(time.Minute) // so that new time-based codes are valid
	before := s.Look(ctx)
	s.triesTokens(add)
	if a != SignedOut { // signing out revokes sessions, not credentials
		s.triesProofs(add)
	}
	s.triesMail(add)
	for _, c := range s.Look(ctx).Changed(before) {
		add("what was left changed the account: %s", c)
	}
	if a.takesOver() {
		s.owned(ctx, a, add)
	}
	return list
}

// opens reports whether a response signs in to the account, or only requires its second
// factor.
func (s *Scene) opens(a *Answer) bool {
	if a.Status == http.StatusForbidden {
		e := DecodeAs[struct{ Code auth.Code }](a)
		return e.Code == auth.CodeMFARequired || e.Code == auth.CodeMFAEnrollmentRequired
	}
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		return false
	}
	v := DecodeAs[struct {
		ID   string `json:"id"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}](a)
	return v.ID == s.Id || v.User.ID == s.Id
}

// triesTokens uses all tokens of responses.
func (s *Scene) triesTokens(add func(string, ...any)) {
	try := func(what string, a *Answer) {
		if s.opens(a) {
			add("%s opens the account: %d %s", what, a.Status, a.Body)
		}
	}
	for _, from := range slices.Clone(s.Evil.urls) {
		name := path.Base(path.Dir(mustParse(s, from).Path))
		try("the way back from "+name, s.Evil.Back(name, from, s.evilAt(name))())
	}
	for _, code := range slices.Clone(s.Evil.codes) {
		try("an exchange code", s.Evil.Send("POST", "/exchange", map[string]any{"code": code, "code_verifier": Verifier}))
		try("an exchange code", s.Evil.Send("POST", "/exchange", map[string]any{"code": code}))
	}
	for _, token := range slices.Clone(s.Evil.mfa) {
		if a := s.Evil.Send("POST", "/2fa/setup-totp", nil, Bearer(token)); a.Status == http.StatusOK {
			add("the token to set a factor up still does")
		}
		body := map[string]any{"mfa_token": token, "totp_code": "000000"}
		if s.Secret != "" {
			body["totp_code"] = s.Code(s.Secret, 0)
		}
		try("the token that waits for a factor", s.Evil.Send("POST", "/2fa/verify", body))
		if len(s.recovery) > 0 {
			body = map[string]any{"mfa_token": token, "recovery_code": s.recovery[len(s.recovery)-1]}
			try("the token that waits for a factor", s.Evil.Send("POST", "/2fa/verify", body))
		}
	}
	// last, because an old refresh token revokes its session
	for _, token := range slices.Clone(s.Evil.access) {
		try("an access token", s.Evil.Send("GET", "/me", nil, Bearer(token)))
	}
	for _, token := range slices.Backward(slices.Clone(s.Evil.Refresh)) {
		try("a refresh token", s.Evil.Send("POST", "/refresh", map[string]any{"refresh_token": token}))
	}
}

// evilAt returns the attacker's person at a provider.
func (s *Scene) evilAt(name string) authtest.Person {
	switch name {
	case "facebook":
		return s.face
	case "github":
		return s.Git
	}
	return s.apple
}

func mustParse(s *Scene, raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		s.T.Fatal(err)
	}
	return u
}

// triesProofs signs in with passwords and identities.
func (s *Scene) triesProofs(add func(string, ...any)) {
	login := func(name, value, password string) {
		if s.opens(s.Evil.Send("POST", "/login", map[string]any{name: value, "password": password})) {
			add("the password %q still opens the account", password)
		}
	}
	for _, password := range []string{EvilPassword, evilNew, OwnPassword} {
		if s.row.Kind == OnNumber {
			login("phone", s.Number, password)
		} else {
			login("email", s.Email, password)
		}
	}
	login("email", s.EvilMail, EvilPassword)
	login("phone", s.EvilNumber, EvilPassword)
	for name := range maps.Clone(s.Evil.was) {
		if s.opens(s.Evil.signIn(name, s.evilAt(name), "")) {
			add("the identity at %s opens the account", name)
		}
	}
}

// triesMail uses the messages to the attacker's mailbox and phone. The caller detects
// changes to the account.
func (s *Scene) triesMail(add func(string, ...any)) {
	try := func(a *Answer) {
		if s.opens(a) {
			add("a message opens the account: %s", a.Body)
		}
	}
	for _, m := range s.Inbox.Messages() {
		switch {
		case m.To == s.EvilMail && m.Link != "":
			body := map[string]any{"token": mustParse(s, m.Link).Query().Get("token"), "new_password": evilNew}
			for _, to := range []string{"/verify-email", "/magic-link/verify", "/reset-password"} {
				try(s.Evil.Send("POST", to, pick(body, to)))
			}
		case m.To == s.EvilNumber && m.Code != "":
			body := map[string]any{"phone": m.To, "otp": m.Code}
			try(s.Evil.Send("POST", "/otp/verify", body, s.Authorization()))
			try(s.Evil.Send("POST", "/otp/verify", body))
		}
	}
}

// pick keeps the fields that an endpoint accepts.
func pick(body map[string]any, to string) map[string]any {
	if to == "/reset-password" {
		return body
	}
	return map[string]any{"token": body["token"]}
}

// owned checks that the account belongs to its owner alone.
func (s *Scene) owned(ctx context.Context, a Act, add func(string, ...any)) {
	v := s.Look(ctx)
	u := v.Credentials.User
	email, number := s.Email, ""
	if a == byCode {
		email, number = "", s.Number
	}
	if u.Email != email || u.Phone != number || u.EmailVerified() != (email != "") || u.PhoneVerified() != (number != "") {
		add("the account is not its owner's: %q (%v), %q (%v)", u.Email, u.EmailVerified(), u.Phone, u.PhoneVerified())
	}
	if slices.ContainsFunc(u.Identities, func(i auth.Identity) bool { return i.Subject != s.Ada.Subject }) {
		add("another's identity is attached: %v", u.Identities)
	}
	// A factor that was never enabled does not count on a verified account: the owner can
	// replace it. A passkey that is no second factor stays, as an identity does.
	factors := slices.DeleteFunc(v.Factors.List, func(f auth.Factor) bool { return s.row.Kind == OnStolen && (!f.Enabled || !f.Required) })
	if u.MFAEnabled != s.Mfa || (len(factors) > 0) != s.Mfa || (v.Factors.RecoveryLeft > 0) != s.Mfa {
		add("another's second factor is attached")
	}
	back := s.comes(s.NewPerson(ctx), a)
	switch {
	case s.Mfa && back.Status == http.StatusForbidden:
		back.Want(http.StatusForbidden, auth.CodeMFARequired)
	case back.Status != http.StatusOK || DecodeAs[Session](back).User.ID != s.Id:
		add("its owner cannot sign in: %d %s", back.Status, back.Body)
	}
}
