package auth_test

import (
	"maps"
	"net/url"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// moves asks for a link that moves the account to another address, and returns
// its token.
func (s *scene) moves() string {
	s.evil.send("PATCH", "/me", map[string]any{"email": s.evilMail}, s.in()).want(200)
	return s.token(s.evilMail, auth.KindChangeEmail)
}

func classVerifyGet() []row {
	return forKinds(row{name: "moves the address", session: true, prepare: func(s *scene) func() *answer {
		token := s.moves()
		return func() *answer { return s.evil.send("GET", "/verify-email?token="+token, nil) }
	}}, onAddress, onIdentity, onStolen)
}

func classVerify() []row {
	posts := func(name string, send func(s *scene, token string) *answer) []row {
		return forKinds(row{name: name, session: true, prepare: func(s *scene) func() *answer {
			token := s.moves()
			return func() *answer { return send(s, token) }
		}}, onAddress, onIdentity, onStolen)
	}
	list := posts("moves the address", func(s *scene, token string) *answer {
		return s.evil.send("POST", "/verify-email", map[string]any{"token": token})
	})
	list = append(list, posts("moves the address within", func(s *scene, token string) *answer {
		return s.evil.send("POST", "/verify-email", map[string]any{"token": token}, s.in())
	})...)
	list = append(list, posts("moves the address on the page", func(s *scene, token string) *answer {
		return s.evil.send("POST", "/verify-email", url.Values{"token": {token}}.Encode(), form)
	})...)
	list = append(list, posts("disowns by another's link", func(s *scene, token string) *answer {
		return s.evil.send("POST", "/verify-email", url.Values{"token": {token}, "disown": {"1"}}.Encode(), form)
	})...)
	for name, within := range map[string]bool{"moves the address by code": false, "moves the address by code, within": true} {
		list = append(list, forKinds(row{name: name, session: true, prepare: func(s *scene) func() *answer {
			s.moves()
			body := map[string]any{"email": s.evilMail, "code": s.mail(s.evilMail, auth.KindChangeEmail).Code}
			return func() *answer {
				if within {
					return s.evil.send("POST", "/verify-email", body, s.in())
				}
				return s.evil.send("POST", "/verify-email", body)
			}
		}}, onAddress, onIdentity, onStolen)...)
	}
	return append(list, row{name: "asks for the link", kind: onAddress, session: true, prepare: sends("POST", "/verify-email", nil)})
}

// found has a link that was mailed to the owner before.
func (s *scene) found(path string, k auth.Kind, more map[string]any) string {
	body := map[string]any{"email": s.email}
	for name, v := range more {
		body[name] = v
	}
	s.person(s.t.Context()).send("POST", path, body).want(200)
	return s.token(s.email, k)
}

// opensFound opens a magic link that was mailed to the owner.
func (s *scene) opensFound(more map[string]any) *answer {
	token := s.found("/magic-link/send", auth.KindMagicLink, more)
	return s.evil.send("POST", "/magic-link/verify", url.Values{"token": {token}}.Encode(), form)
}

func classReset() []row {
	except := map[act]string{banned: "a ban lets nobody in, and keeps nobody from choosing a password"}
	return []row{
		{name: "by a link that was found", kind: onStolen, except: except, prepare: func(s *scene) func() *answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *answer {
				return s.evil.send("POST", "/reset-password", map[string]any{"token": token, "new_password": evilNew})
			}
		}},
		{name: "on the page, by a link that was found", kind: onStolen, except: except, prepare: func(s *scene) func() *answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *answer {
				return s.evil.send("POST", "/reset-password", url.Values{"token": {token}, "new_password": {evilNew}}.Encode(), form)
			}
		}},
	}
}

// classInvitation is the use of an invitation that somebody found, in the session of
// the account that it gives roles to.
func classInvitation() []row {
	return []row{{name: "takes roles within", kind: onStolen, session: true, prepare: func(s *scene) func() *answer {
		return sends("POST", "/invitations/accept", map[string]any{"token": s.invited(s.email)})(s)
	}}}
}

func classMagicGet() []row {
	get := func(more map[string]any, h ...header) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, more)
			return func() *answer { return s.evil.send("GET", "/magic-link/verify?token="+token, nil, h...) }
		}
	}
	pkce := map[string]any{"redirect_to": appURL, "code_challenge": challengeOf(verifier)}
	return []row{
		{name: "by a link that was found", kind: onStolen, prepare: get(nil)},
		{name: "by a link that was found, with a challenge", kind: onStolen, prepare: get(pkce)},
		{name: "shows the page", kind: onStolen, prepare: get(nil, browser)},
	}
}

func classMagic() []row {
	post := func(more map[string]any, send func(s *scene, token string) *answer) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, more)
			return func() *answer { return send(s, token) }
		}
	}
	json := func(s *scene, token string) *answer {
		return s.evil.send("POST", "/magic-link/verify", map[string]any{"token": token})
	}
	page := func(s *scene, token string) *answer {
		return s.evil.send("POST", "/magic-link/verify", url.Values{"token": {token}}.Encode(), form)
	}
	pkce := map[string]any{"redirect_to": appURL, "code_challenge": challengeOf(verifier)}
	return []row{
		{name: "by a link that was found", kind: onStolen, prepare: post(nil, json)},
		{name: "on the page", kind: onStolen, prepare: post(nil, page)},
		{name: "on the page, with a redirect", kind: onStolen, prepare: post(pkce, page)},
		{name: "by a code that was found", kind: onStolen, prepare: codeFound(nil, "")},
		{name: "by a code that was found, with a challenge", kind: onStolen, prepare: codeFound(map[string]any{"code_challenge": challengeOf(verifier)}, verifier)},
		{name: "asked for the second factor", kind: onStolen, prepare: func(s *scene) func() *answer {
			s.enrols()
			return post(nil, json)(s)
		}},
	}
}

// codeFound signs in with a code that was mailed to the owner, by whoever asked.
func codeFound(more map[string]any, verifier string) func(*scene) func() *answer {
	return func(s *scene) func() *answer {
		body := map[string]any{"email": s.email}
		for name, v := range more {
			body[name] = v
		}
		asked := decodeAs[map[string]string](s.evil.send("POST", "/magic-link/send", body).want(200))
		body = map[string]any{"email": s.email, "code": s.mail(s.email, auth.KindMagicLink).Code, "request_id": asked["request_id"]}
		if verifier != "" {
			body["code_verifier"] = verifier
		}
		return func() *answer { return s.evil.send("POST", "/magic-link/verify", body) }
	}
}

func classCodes() []row {
	list := forKinds(row{name: "makes another number its own", session: true, prepare: func(s *scene) func() *answer {
		s.evil.send("PATCH", "/me", map[string]any{"phone": s.evilNumber}, s.in()).want(200)
		body := map[string]any{"phone": s.evilNumber, "otp": s.mail(s.evilNumber, auth.KindPhoneCode).Code}
		return func() *answer { return s.evil.send("POST", "/otp/verify", body, s.in()) }
	}}, onNumber, onIdentity, onStolen)
	found := func(name string, before func(s *scene) (more map[string]any)) row {
		return row{
			name: name, kind: onStolen,
			except: map[act]string{byReset: "a number is a way in of its own, which a new password leaves"},
			prepare: func(s *scene) func() *answer {
				now := s.Clock.Now()
				s.patch(s.id, store.UserPatch{Phone: &s.number, PhoneVerifiedAt: &now})
				more := before(s)
				s.person(s.t.Context()).send("POST", "/otp/send", map[string]any{"phone": s.number}).want(200)
				body := map[string]any{"phone": s.number, "otp": s.mail(s.number, auth.KindPhoneCode).Code}
				maps.Copy(body, more)
				return func() *answer { return s.evil.send("POST", "/otp/verify", body) }
			},
		}
	}
	return append(list,
		found("by a code that was found", func(*scene) map[string]any { return nil }),
		found("by a code that was found, with the second factor", func(s *scene) map[string]any {
			s.enrols()
			return byTOTP(s)
		}))
}

// withFactor is a request in a session with a second factor.
func withFactor(method, path string, body func(s *scene) map[string]any) func(*scene) func() *answer {
	return func(s *scene) func() *answer {
		s.enrols()
		if body == nil {
			return func() *answer { return s.evil.send(method, path, nil, s.in()) }
		}
		b := body(s)
		return func() *answer { return s.evil.send(method, path, b, s.in()) }
	}
}

func byTOTP(s *scene) map[string]any     { return map[string]any{"totp_code": s.code(s.secret, 0)} }
func byRecovery(s *scene) map[string]any { return map[string]any{"recovery_code": s.recovery[0]} }

func classDisable() []row {
	disable := func(name string, body func(*scene) map[string]any) []row {
		return forKinds(row{name: name, session: true, prepare: withFactor("POST", "/2fa/disable", body)}, onAddress, onStolen)
	}
	list := disable("by code", byTOTP)
	list = append(list, disable("by recovery code", byRecovery)...)
	return append(list, disable("by a fresh session", nil)...)
}

func classConfirm() []row {
	confirm := func(password string) func(*scene) func() *answer {
		return sends("POST", "/me/confirm", map[string]any{"password": password})
	}
	list := forKinds(row{name: "by password", session: true, prepare: confirm(evilPassword)}, onAddress, onNumber)
	list = append(list, row{name: "by password", kind: onStolen, session: true, prepare: confirm(ownPassword)})
	return append(list, forKinds(row{name: "by code", session: true, prepare: withFactor("POST", "/me/confirm", byTOTP)}, onAddress, onStolen)...)
}

func classSetup() []row {
	return append(forKinds(row{name: "in a session", session: true, prepare: sends("POST", "/2fa/setup-totp", nil)}, onAddress, onNumber, onIdentity, onStolen),
		row{name: "by the token", kind: onAddress, prepare: func(s *scene) func() *answer {
			s.hasToEnrol()
			token := s.asked()
			return func() *answer { return s.evil.send("POST", "/2fa/setup-totp", nil, bearer(token)) }
		}},
	)
}

func classEnable() []row {
	enable := func(s *scene, h header) func() *answer {
		a := s.evil.send("POST", "/2fa/setup-totp", nil, h).want(200)
		s.secret = decodeAs[struct{ Secret string }](a).Secret
		code := s.code(s.secret, 0)
		return func() *answer {
			return s.evil.send("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, h)
		}
	}
	return append(forKinds(row{name: "in a session", session: true, prepare: func(s *scene) func() *answer { return enable(s, s.in()) }}, onAddress, onNumber, onIdentity, onStolen),
		row{name: "by the token", kind: onAddress, prepare: func(s *scene) func() *answer {
			s.hasToEnrol()
			return enable(s, bearer(s.asked()))
		}},
	)
}

func classFactor() []row {
	verify := func(of func(*scene) map[string]any) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			s.enrols()
			body := map[string]any{"mfa_token": s.asked()}
			for k, v := range of(s) {
				body[k] = v
			}
			return func() *answer { return s.evil.send("POST", "/2fa/verify", body) }
		}
	}
	list := forKinds(row{name: "by code", prepare: verify(byTOTP)}, onAddress, onNumber, onStolen)
	list = append(list, forKinds(row{name: "by recovery code", prepare: verify(byRecovery)}, onAddress, onStolen)...)
	list = append(list, row{name: "after a link that was found", kind: onStolen, prepare: func(s *scene) func() *answer {
		s.enrols()
		token := s.found("/magic-link/send", auth.KindMagicLink, nil)
		asked := s.evil.send("POST", "/magic-link/verify", map[string]any{"token": token}).want(403)
		body := map[string]any{"mfa_token": decodeAs[map[string]any](asked)["mfa_token"], "totp_code": s.code(s.secret, 0)}
		return func() *answer { return s.evil.send("POST", "/2fa/verify", body) }
	}})
	list = append(list, forKinds(row{name: "steps up", session: true, prepare: withFactor("POST", "/2fa/verify", byTOTP)}, onAddress, onStolen)...)
	return append(list, forKinds(row{name: "steps up by recovery code", session: true, prepare: withFactor("POST", "/2fa/verify", byRecovery)}, onAddress)...)
}

// linkElsewhere begins to link an identity from a script, and returns the request
// by which a browser without its cookies comes back.
func (s *scene) linkElsewhere() func() *answer {
	to := s.evil.link("github", map[string]any{"redirect_to": appURL, "code_challenge": challengeOf(verifier)})
	s.evil.cookies = map[string]string{}
	return s.evil.back("github", to, s.git)
}

// classOAuth are the routes about identities.
func classOAuth() map[string][]row {
	signsIn := func(query string) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			return s.evil.back("facebook", s.evil.begin("facebook", query), s.face)
		}
	}
	links := func(name string, body any) func(*scene) func() *answer {
		return func(s *scene) func() *answer { return s.evil.back(name, s.evil.link(name, body), s.evilAt(name)) }
	}
	linked := func(s *scene) { links("apple", nil)(s)().want(200) }
	redirect := map[string]any{"redirect_to": appURL}
	list := map[string][]row{
		"POST /me/identities/{provider}": forKinds(row{name: "begins", session: true, prepare: sends("POST", "/me/identities/github", map[string]any{})}, onIdentity, onStolen),
		"POST /oauth/{provider}/id-token": {{name: "signs in", kind: onIdentity, prepare: func(s *scene) func() *answer {
			linked(s)
			body := map[string]any{"id_token": s.idp.IDToken("apple", s.apple, "")}
			return func() *answer { return s.evil.send("POST", "/oauth/apple/id-token", body) }
		}}},
	}
	list["DELETE /me/identities/{provider}"] = []row{
		{name: "its own", kind: onIdentity, session: true, prepare: func(s *scene) func() *answer {
			linked(s)
			return sends("DELETE", "/me/identities/apple", nil)(s)
		}},
		{name: "the owner's", kind: onIdentity, session: true, prepare: sends("DELETE", "/me/identities/google", nil)},
	}
	list["GET /oauth/{provider}/callback"] = append(append(forKinds(row{name: "links", session: true, prepare: links("github", nil)}, onIdentity, onStolen),
		forKinds(row{name: "links elsewhere", session: true, prepare: func(s *scene) func() *answer { return s.linkElsewhere() }}, onIdentity, onStolen)...),
		row{name: "links with a redirect", kind: onIdentity, session: true, prepare: links("github", redirect)},
		row{name: "signs in", kind: onIdentity, prepare: signsIn("")},
		row{name: "signs in with a redirect", kind: onIdentity, prepare: signsIn("redirect_to=" + url.QueryEscape(appURL))},
		row{name: "signs up", kind: onNothing, prepare: signsIn("")},
		row{name: "asked for the second factor", kind: onIdentity, prepare: func(s *scene) func() *answer {
			s.enrols()
			return signsIn("")(s)
		}},
		row{name: "asked to confirm", kind: onNothing, confirm: true, prepare: signsIn("")},
	)
	list["POST /oauth/{provider}/callback"] = append(forKinds(row{name: "links", session: true, prepare: links("apple", nil)}, onIdentity, onStolen),
		row{name: "signs in", kind: onIdentity, prepare: func(s *scene) func() *answer {
			linked(s)
			return s.evil.back("apple", s.evil.begin("apple", ""), s.apple)
		}},
	)
	return list
}

// classMasked are the conditions that others stand behind, so that a flow without
// them would come to no harm.
func classMasked() map[mutant]string {
	const itself = "EnableFactor asks of the session, of the ban and of Redeem itself, and the factor goes with the account's credentials"
	return map[mutant]string{
		{"EnableFactor", "session"}:       itself,
		{"EnableFactor", "users"}:         itself,
		{"EnableFactor", "session users"}: itself,
		{"RedeemToken", "users"}:          "the link, and the session that it moves an address for, end with the account's credentials",
		{"UseRecoveryCode", "users"}:      "the session and the token end with the account's credentials",
		{"UseRecoveryCode", "token"}:      "the account's credentials change whenever the token dies",
		{"RemoveFactor", "users"}:         "the session ends with the account's credentials",
		{"RaiseSession", "session"}:       "RaiseSession asks of the session itself",
		{"AddProof", "session"}:           "AddProof asks of the session itself",
		{"AddProof", "users"}:             "the session ends with the account's credentials",
		{"AddProof", "session users"}:     "AddProof asks of the session itself, which ends with the account's credentials",
		{"DeleteUser", "users"}:           "the session ends with the account's credentials",
		{"PutFactor", "users"}:            "the session and the token end with the account's credentials",
		{"PutFactor", "token"}:            "the account's credentials change whenever the token dies",
		{"TryCode", "users"}:              "the session ends with the account's credentials; a sign-in's code makes its own takeover",
	}
}
