package harness

import (
	"maps"
	"net/url"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// moves requests a link that changes the account's email address, and returns its token.
func (s *Scene) moves() string {
	s.Evil.Send("PATCH", "/me", map[string]any{"email": s.EvilMail}, s.Authorization()).Want(200)
	return s.token(s.EvilMail, auth.KindChangeEmail)
}

func classVerifyGet() []Row {
	list := []Row{}
	for name, h := range map[string][]Header{"opens the link": nil, "shows the page": {Browser}} {
		list = append(list, Row{Name: name, Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			token := s.moves()
			return func() *Answer { return s.Evil.Send("GET", "/verify-email?token="+token, nil, h...) }
		}})
	}
	return list
}

func classVerify() []Row {
	posts := func(name string, send func(s *Scene, token string) *Answer) []Row {
		return ForKinds(Row{Name: name, Session: true, Prepare: func(s *Scene) func() *Answer {
			token := s.moves()
			return func() *Answer { return send(s, token) }
		}}, OnAddress, OnIdentity, OnStolen)
	}
	list := posts("moves the address", func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/verify-email", map[string]any{"token": token}, s.Authorization())
	})
	list = append(list, posts("moves the address on the page", func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/verify-email", url.Values{"token": {token}}.Encode(), Form, s.Authorization())
	})...)
	list = append(list, posts("disowns by another's link", func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/verify-email", url.Values{"token": {token}, "disown": {"1"}}.Encode(), Form)
	})...)
	list = append(list, posts("asks for the code", func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/verify-email", url.Values{"token": {token}, "show_code": {"1"}}.Encode(), Form)
	})...)
	list = append(list, ForKinds(Row{Name: "moves the address by code", Session: true, Prepare: func(s *Scene) func() *Answer {
		body := map[string]any{"email": s.EvilMail, "code": s.Evil.ShownCode(s.moves())}
		return func() *Answer { return s.Evil.Send("POST", "/verify-email", body, s.Authorization()) }
	}}, OnAddress, OnIdentity, OnStolen)...)
	return append(list, Row{Name: "asks for the link", Kind: OnAddress, Session: true, Prepare: Sends("POST", "/verify-email", nil)})
}

// found returns the token of a link that was mailed to the owner earlier.
func (s *Scene) found(path string, k auth.Kind, more map[string]any) string {
	body := map[string]any{"email": s.Email}
	for name, v := range more {
		body[name] = v
	}
	s.NewPerson(s.T.Context()).Send("POST", path, body).Want(200)
	return s.token(s.Email, k)
}

// opensFound opens a magic link that was mailed to the owner.
func (s *Scene) opensFound(more map[string]any) *Answer {
	token := s.found("/magic-link/send", auth.KindMagicLink, more)
	return s.Evil.Send("POST", "/magic-link/verify", url.Values{"token": {token}}.Encode(), Form)
}

func classReset() []Row {
	except := map[Act]string{Banned: "a ban lets nobody in, and keeps nobody from choosing a password"}
	return []Row{
		{Name: "by a link that was found", Kind: OnStolen, except: except, Prepare: func(s *Scene) func() *Answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *Answer {
				return s.Evil.Send("POST", "/reset-password", map[string]any{"token": token, "new_password": evilNew})
			}
		}},
		{Name: "on the page, by a link that was found", Kind: OnStolen, except: except, Prepare: func(s *Scene) func() *Answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *Answer {
				return s.Evil.Send("POST", "/reset-password", url.Values{"token": {token}, "new_password": {evilNew}}.Encode(), Form)
			}
		}},
	}
}

// classInvitation accepts a found invitation in the session of the account that it gives
// roles to.
func classInvitation() []Row {
	return []Row{{Name: "takes roles within", Kind: OnStolen, Session: true, Prepare: func(s *Scene) func() *Answer {
		return Sends("POST", "/invitations/accept", map[string]any{"token": s.Invited(s.Email)})(s)
	}}}
}

func classMagicGet() []Row {
	get := func(more map[string]any, h ...Header) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, more)
			return func() *Answer { return s.Evil.Send("GET", "/magic-link/verify?token="+token, nil, h...) }
		}
	}
	return []Row{
		{Name: "opens a link that was found", Kind: OnStolen, Prepare: get(nil)},
		{Name: "shows the page", Kind: OnStolen, Prepare: get(nil, Browser)},
	}
}

func classMagic() []Row {
	post := func(more map[string]any, send func(s *Scene, token string) *Answer) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, more)
			return func() *Answer { return send(s, token) }
		}
	}
	json := func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/magic-link/verify", map[string]any{"token": token})
	}
	page := func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/magic-link/verify", url.Values{"token": {token}}.Encode(), Form)
	}
	pkce := map[string]any{"redirect_to": AppURL, "code_challenge": ChallengeOf(Verifier)}
	return []Row{
		{Name: "by a link that was found", Kind: OnStolen, Prepare: post(nil, json)},
		{Name: "on the page", Kind: OnStolen, Prepare: post(nil, page)},
		{Name: "on the page, with a redirect", Kind: OnStolen, Prepare: post(pkce, page)},
		{Name: "by a code that was found", Kind: OnStolen, Prepare: codeFound(nil, "")},
		{Name: "by a code that was found, with a challenge", Kind: OnStolen, Prepare: codeFound(map[string]any{"code_challenge": ChallengeOf(Verifier)}, Verifier)},
		{Name: "asked for the second factor", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			return post(nil, json)(s)
		}},
		{Name: "with the second factor on the page", Kind: OnStolen, Cookies: true, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			page(s, s.found("/magic-link/send", auth.KindMagicLink, nil)).Want(303)
			body := url.Values{"code": {s.Code(s.Secret, 0)}}.Encode()
			return func() *Answer { return s.Evil.Send("POST", "/magic-link/verify", body, Form) }
		}},
	}
}

// codeFound signs in with a code that was mailed to the owner on the attacker's request.
func codeFound(more map[string]any, verifier string) func(*Scene) func() *Answer {
	return func(s *Scene) func() *Answer {
		body := map[string]any{"email": s.Email}
		for name, v := range more {
			body[name] = v
		}
		asked := DecodeAs[map[string]string](s.Evil.Send("POST", "/magic-link/send", body).Want(200))
		body = map[string]any{"email": s.Email, "code": s.mail(s.Email, auth.KindMagicLink).Code, "request_id": asked["request_id"]}
		if verifier != "" {
			body["code_verifier"] = verifier
		}
		return func() *Answer { return s.Evil.Send("POST", "/magic-link/verify", body) }
	}
}

func classCodes() []Row {
	list := ForKinds(Row{Name: "makes another number its own", Session: true, Prepare: func(s *Scene) func() *Answer {
		s.Evil.Send("PATCH", "/me", map[string]any{"phone": s.EvilNumber}, s.Authorization()).Want(200)
		body := map[string]any{"phone": s.EvilNumber, "otp": s.mail(s.EvilNumber, auth.KindPhoneCode).Code}
		return func() *Answer { return s.Evil.Send("POST", "/otp/verify", body, s.Authorization()) }
	}}, OnNumber, OnIdentity, OnStolen)
	found := func(name string, before func(s *Scene) (more map[string]any)) Row {
		return Row{
			Name: name, Kind: OnStolen,
			except: map[Act]string{byReset: "a number is a way in of its own, which a new password leaves"},
			Prepare: func(s *Scene) func() *Answer {
				now := s.Clock.Now()
				s.Patch(s.Id, store.UserPatch{Phone: &s.Number, PhoneVerifiedAt: &now})
				more := before(s)
				s.NewPerson(s.T.Context()).Send("POST", "/otp/send", map[string]any{"phone": s.Number}).Want(200)
				body := map[string]any{"phone": s.Number, "otp": s.mail(s.Number, auth.KindPhoneCode).Code}
				maps.Copy(body, more)
				return func() *Answer { return s.Evil.Send("POST", "/otp/verify", body) }
			},
		}
	}
	return append(list,
		found("by a code that was found", func(*Scene) map[string]any { return nil }),
		found("by a code that was found, with the second factor", func(s *Scene) map[string]any {
			s.Enrols()
			return byTOTP(s)
		}))
}

// withFactor is a request in a session with a second factor.
func withFactor(method, path string, body func(s *Scene) map[string]any) func(*Scene) func() *Answer {
	return func(s *Scene) func() *Answer {
		s.Enrols()
		if body == nil {
			return func() *Answer { return s.Evil.Send(method, path, nil, s.Authorization()) }
		}
		b := body(s)
		return func() *Answer { return s.Evil.Send(method, path, b, s.Authorization()) }
	}
}

func byTOTP(s *Scene) map[string]any { return map[string]any{"totp_code": s.Code(s.Secret, 0)} }

func byRecovery(s *Scene) map[string]any { return map[string]any{"recovery_code": s.recovery[0]} }

func classDisable() []Row {
	disable := func(name string, body func(*Scene) map[string]any) []Row {
		return ForKinds(Row{Name: name, Session: true, Prepare: withFactor("POST", "/2fa/disable", body)}, OnAddress, OnStolen)
	}
	list := disable("by code", byTOTP)
	list = append(list, disable("by recovery code", byRecovery)...)
	return append(list, disable("by a fresh session", nil)...)
}

func classConfirm() []Row {
	confirm := func(password string) func(*Scene) func() *Answer {
		return Sends("POST", "/me/confirm", map[string]any{"password": password})
	}
	list := ForKinds(Row{Name: "by password", Session: true, Prepare: confirm(EvilPassword)}, OnAddress, OnNumber)
	list = append(list, Row{Name: "by password", Kind: OnStolen, Session: true, Prepare: confirm(OwnPassword)})
	return append(list, ForKinds(Row{Name: "by code", Session: true, Prepare: withFactor("POST", "/me/confirm", byTOTP)}, OnAddress, OnStolen)...)
}

func classSetup() []Row {
	return append(ForKinds(Row{Name: "in a session", Session: true, Prepare: Sends("POST", "/2fa/setup-totp", nil)}, OnAddress, OnNumber, OnIdentity, OnStolen),
		Row{Name: "by the token", Kind: OnAddress, Prepare: func(s *Scene) func() *Answer {
			s.hasToEnrol()
			token := s.asked()
			return func() *Answer { return s.Evil.Send("POST", "/2fa/setup-totp", nil, Bearer(token)) }
		}},
	)
}

func classEnable() []Row {
	enable := func(s *Scene, h Header) func() *Answer {
		a := s.Evil.Send("POST", "/2fa/setup-totp", nil, h).Want(200)
		s.Secret = DecodeAs[struct{ Secret string }](a).Secret
		code := s.Code(s.Secret, 0)
		return func() *Answer {
			return s.Evil.Send("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": code}, h)
		}
	}
	return append(ForKinds(Row{Name: "in a session", Session: true, Prepare: func(s *Scene) func() *Answer { return enable(s, s.Authorization()) }}, OnAddress, OnNumber, OnIdentity, OnStolen),
		Row{Name: "by the token", Kind: OnAddress, Prepare: func(s *Scene) func() *Answer {
			s.hasToEnrol()
			return enable(s, Bearer(s.asked()))
		}},
	)
}

func classFactor() []Row {
	verify := func(of func(*Scene) map[string]any) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			s.Enrols()
			body := map[string]any{"mfa_token": s.asked()}
			for k, v := range of(s) {
				body[k] = v
			}
			return func() *Answer { return s.Evil.Send("POST", "/2fa/verify", body) }
		}
	}
	list := ForKinds(Row{Name: "by code", Prepare: verify(byTOTP)}, OnAddress, OnNumber, OnStolen)
	list = append(list, ForKinds(Row{Name: "by recovery code", Prepare: verify(byRecovery)}, OnAddress, OnStolen)...)
	list = append(list, Row{Name: "by passkey", Kind: OnStolen, Prepare: byPasskey(true)}, Row{Name: "steps up by passkey", Kind: OnStolen, Session: true, Prepare: byPasskey(false)})
	list = append(list, Row{Name: "after a link that was found", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
		s.Enrols()
		token := s.found("/magic-link/send", auth.KindMagicLink, nil)
		asked := s.Evil.Send("POST", "/magic-link/verify", map[string]any{"token": token}).Want(403)
		body := map[string]any{"mfa_token": DecodeAs[map[string]any](asked)["mfa_token"], "totp_code": s.Code(s.Secret, 0)}
		return func() *Answer { return s.Evil.Send("POST", "/2fa/verify", body) }
	}})
	list = append(list, ForKinds(Row{Name: "steps up", Session: true, Prepare: withFactor("POST", "/2fa/verify", byTOTP)}, OnAddress, OnStolen)...)
	return append(list, ForKinds(Row{Name: "steps up by recovery code", Session: true, Prepare: withFactor("POST", "/2fa/verify", byRecovery)}, OnAddress)...)
}

// linkElsewhere starts to link an identity from a script, and returns the request by which
// a browser without its cookies returns.
func (s *Scene) linkElsewhere() func() *Answer {
	to := s.Evil.link("github", map[string]any{"redirect_to": AppURL, "code_challenge": ChallengeOf(Verifier)})
	s.Evil.cookies = map[string]string{}
	return s.Evil.Back("github", to, s.Git)
}

// classOAuth returns the rows of the routes for identities.
func classOAuth() map[string][]Row {
	signsIn := func(query string) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			return s.Evil.Back("facebook", s.Evil.Begin("facebook", query), s.face)
		}
	}
	links := func(name string, body any) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer { return s.Evil.Back(name, s.Evil.link(name, body), s.evilAt(name)) }
	}
	linked := func(s *Scene) { links("apple", nil)(s)().Want(200) }
	redirect := map[string]any{"redirect_to": AppURL, "code_challenge": ChallengeOf(Verifier)}
	list := map[string][]Row{
		"POST /me/identities/{provider}": ForKinds(Row{Name: "begins", Session: true, Prepare: Sends("POST", "/me/identities/github", map[string]any{})}, OnIdentity, OnStolen),
		"POST /oauth/{provider}/id-token": {{Name: "signs in", Kind: OnIdentity, Prepare: func(s *Scene) func() *Answer {
			linked(s)
			body := map[string]any{"id_token": s.idp.IDToken("apple", s.apple, "")}
			return func() *Answer { return s.Evil.Send("POST", "/oauth/apple/id-token", body) }
		}}},
	}
	list["DELETE /me/identities/{provider}"] = []Row{
		{Name: "its own", Kind: OnIdentity, Session: true, Prepare: func(s *Scene) func() *Answer {
			linked(s)
			return Sends("DELETE", "/me/identities/apple", nil)(s)
		}},
		{Name: "the owner's", Kind: OnIdentity, Session: true, Prepare: Sends("DELETE", "/me/identities/google", nil)},
	}
	list["GET /oauth/{provider}/callback"] = append(append(ForKinds(Row{Name: "links", Session: true, Prepare: links("github", nil)}, OnIdentity, OnStolen),
		ForKinds(Row{Name: "links elsewhere", Session: true, Prepare: func(s *Scene) func() *Answer { return s.linkElsewhere() }}, OnIdentity, OnStolen)...),
		Row{Name: "links with a redirect", Kind: OnIdentity, Session: true, Prepare: links("github", redirect)},
		Row{Name: "signs in", Kind: OnIdentity, Prepare: signsIn("")},
		Row{Name: "signs in with a redirect", Kind: OnIdentity, Prepare: signsIn("redirect_to=" + url.QueryEscape(AppURL))},
		Row{Name: "signs up", Kind: OnNothing, Prepare: signsIn("")},
		Row{Name: "asked for the second factor", Kind: OnIdentity, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			return signsIn("")(s)
		}},
		Row{Name: "asked to confirm", Kind: OnNothing, Confirm: true, Prepare: signsIn("")},
	)
	list["POST /oauth/{provider}/callback"] = append(ForKinds(Row{Name: "links", Session: true, Prepare: links("apple", nil)}, OnIdentity, OnStolen),
		Row{Name: "signs in", Kind: OnIdentity, Prepare: func(s *Scene) func() *Answer {
			linked(s)
			return s.Evil.Back("apple", s.Evil.Begin("apple", ""), s.apple)
		}},
	)
	return list
}
