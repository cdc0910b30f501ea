package auth_test

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

// leftovers is what whoever lost the account still has of it.
func (s *scene) leftovers(a act) (list []string) {
	s.t.Helper()
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	ctx := s.t.Context()
	for _, c := range s.look(ctx).changed(s.before) {
		add("the request changed the account after the act: %s", c)
	}
	s.Clock.Advance(time.Minute) // for other time-based codes than those that were used
	before := s.look(ctx)
	s.triesTokens(add)
	if a != signedOut { // then it is no proof that is gone, but the sessions
		s.triesProofs(add)
	}
	s.triesMail(add)
	for _, c := range s.look(ctx).changed(before) {
		add("what was left changed the account: %s", c)
	}
	if a.takesOver() {
		s.owned(ctx, a, add)
	}
	return list
}

// opens tells whether a response is a way into the account, or asks for the
// second factor only.
func (s *scene) opens(a *answer) bool {
	if a.status == http.StatusForbidden {
		e := decodeAs[struct{ Code auth.Code }](a)
		return e.Code == auth.CodeMFARequired || e.Code == auth.CodeMFAEnrollmentRequired
	}
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		return false
	}
	v := decodeAs[struct {
		ID   string `json:"id"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}](a)
	return v.ID == s.id || v.User.ID == s.id
}

// triesTokens uses all that was handed out in responses.
func (s *scene) triesTokens(add func(string, ...any)) {
	try := func(what string, a *answer) {
		if s.opens(a) {
			add("%s opens the account: %d %s", what, a.status, a.body)
		}
	}
	for _, from := range slices.Clone(s.evil.urls) {
		name := path.Base(path.Dir(mustParse(s, from).Path))
		try("the way back from "+name, s.evil.back(name, from, s.evilAt(name))())
	}
	for _, code := range slices.Clone(s.evil.codes) {
		try("an exchange code", s.evil.send("POST", "/exchange", map[string]any{"code": code, "code_verifier": verifier}))
		try("an exchange code", s.evil.send("POST", "/exchange", map[string]any{"code": code}))
	}
	for _, token := range slices.Clone(s.evil.mfa) {
		if a := s.evil.send("POST", "/2fa/setup-totp", nil, bearer(token)); a.status == http.StatusOK {
			add("the token to set a factor up still does")
		}
		body := map[string]any{"mfa_token": token, "totp_code": "000000"}
		if s.secret != "" {
			body["totp_code"] = s.code(s.secret, 0)
		}
		try("the token that waits for a factor", s.evil.send("POST", "/2fa/verify", body))
		if len(s.recovery) > 0 {
			body = map[string]any{"mfa_token": token, "recovery_code": s.recovery[len(s.recovery)-1]}
			try("the token that waits for a factor", s.evil.send("POST", "/2fa/verify", body))
		}
	}
	// Last, since an old refresh token ends its session.
	for _, token := range slices.Clone(s.evil.access) {
		try("an access token", s.evil.send("GET", "/me", nil, bearer(token)))
	}
	for _, token := range slices.Backward(slices.Clone(s.evil.refresh)) {
		try("a refresh token", s.evil.send("POST", "/refresh", map[string]any{"refresh_token": token}))
	}
}

// evilAt is who the one on the account is at a provider.
func (s *scene) evilAt(name string) authtest.Person {
	switch name {
	case "facebook":
		return s.face
	case "github":
		return s.git
	}
	return s.apple
}

func mustParse(s *scene, raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// triesProofs signs in anew, by passwords and identities.
func (s *scene) triesProofs(add func(string, ...any)) {
	login := func(name, value, password string) {
		if s.opens(s.evil.send("POST", "/login", map[string]any{name: value, "password": password})) {
			add("the password %q still opens the account", password)
		}
	}
	for _, password := range []string{evilPassword, evilNew, ownPassword} {
		if s.row.kind == onNumber {
			login("phone", s.number, password)
		} else {
			login("email", s.email, password)
		}
	}
	login("email", s.evilMail, evilPassword)
	login("phone", s.evilNumber, evilPassword)
	for name := range maps.Clone(s.evil.was) {
		if s.opens(s.evil.signIn(name, s.evilAt(name), "")) {
			add("the identity at %s opens the account", name)
		}
	}
}

// triesMail uses what came to the mailbox and the phone that are not the owner's.
// What changes the account is noticed by the account.
func (s *scene) triesMail(add func(string, ...any)) {
	try := func(a *answer) {
		if s.opens(a) {
			add("a message opens the account: %s", a.body)
		}
	}
	for _, m := range s.Inbox.Messages() {
		switch {
		case m.To == s.evilMail && m.Link != "":
			body := map[string]any{"token": mustParse(s, m.Link).Query().Get("token"), "new_password": evilNew}
			for _, to := range []string{"/verify-email", "/magic-link/verify", "/reset-password"} {
				try(s.evil.send("POST", to, pick(body, to)))
			}
		case m.To == s.evilNumber && m.Code != "":
			body := map[string]any{"phone": m.To, "otp": m.Code}
			try(s.evil.send("POST", "/otp/verify", body, s.in()))
			try(s.evil.send("POST", "/otp/verify", body))
		}
	}
}

// pick leaves out what an endpoint does not know.
func pick(body map[string]any, to string) map[string]any {
	if to == "/reset-password" {
		return body
	}
	return map[string]any{"token": body["token"]}
}

// owned tells whether the account is its owner's, and nobody else's.
func (s *scene) owned(ctx context.Context, a act, add func(string, ...any)) {
	v := s.look(ctx)
	u := v.Credentials.User
	email, number := s.email, ""
	if a == byCode {
		email, number = "", s.number
	}
	if u.Email != email || u.Phone != number || u.EmailVerified() != (email != "") || u.PhoneVerified() != (number != "") {
		add("the account is not its owner's: %q (%v), %q (%v)", u.Email, u.EmailVerified(), u.Phone, u.PhoneVerified())
	}
	if slices.ContainsFunc(u.Identities, func(i auth.Identity) bool { return i.Subject != s.ada.Subject }) {
		add("another's identity is attached: %v", u.Identities)
	}
	// One that waits for its first code on an account that is proved is none, and
	// gives way to the owner's.
	factors := slices.DeleteFunc(v.Factors.List, func(f auth.Factor) bool { return !f.Enabled && s.row.kind == onStolen })
	if u.MFAEnabled != s.mfa || (len(factors) > 0) != s.mfa || (v.Factors.RecoveryLeft > 0) != s.mfa {
		add("another's second factor is attached")
	}
	back := s.comes(s.person(ctx), a)
	switch {
	case s.mfa && back.status == http.StatusForbidden:
		back.want(http.StatusForbidden, auth.CodeMFARequired)
	case back.status != http.StatusOK || decodeAs[session](back).User.ID != s.id:
		add("its owner cannot sign in: %d %s", back.status, back.body)
	}
}
