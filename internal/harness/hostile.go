package harness

import (
	"maps"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// The tests of this class disturb every store call of every route: the call fails with or
// without its effect, it waits until the caller has sent the request again, or the caller
// disconnects. The invariants must hold in all cases.

// HostileRows returns requests of all routes: the rows of ClassTable, and requests during
// which no account can be lost.
func HostileRows() map[string][]Row {
	get := func(path string) []Row {
		return []Row{{Name: "reads", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			return func() *Answer { return s.Evil.Send("GET", path, nil) }
		}}}
	}
	ask := func(path string, body func(s *Scene) map[string]any) []Row {
		return ForKinds(Row{Name: "asks", Prepare: func(s *Scene) func() *Answer {
			b := body(s)
			return func() *Answer { return s.Evil.Send("POST", path, b) }
		}}, OnAddress, OnNumber, OnStolen)
	}
	byEmail := func(s *Scene) map[string]any { return map[string]any{"email": s.Email} }
	table := map[string][]Row{
		"GET /oauth/{provider}":                 get("/oauth/google"),
		"GET /settings":                         get("/settings"),
		"GET /.well-known/jwks.json":            get("/.well-known/jwks.json"),
		"GET /.well-known/openid-configuration": get("/.well-known/openid-configuration"),
		"GET /openapi.json":                     get("/openapi.json"),
		"GET /healthz":                          get("/healthz"),
		"GET /pages/passkey.js":                 get("/pages/passkey.js"),
		"POST /magic-link/send":                 ask("/magic-link/send", byEmail),
		"POST /forgot-password":                 ask("/forgot-password", byEmail),
		"POST /otp/send":                        ask("/otp/send", func(s *Scene) map[string]any { return map[string]any{"phone": s.Number} }),
		"POST /passkeys/sign-in/begin": {{Name: "begins", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			return func() *Answer { return s.Evil.Send("POST", "/passkeys/sign-in/begin", nil) }
		}}},
		"GET /invitations/accept": {{Name: "shows the form", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			token := s.Invited(s.Email)
			return func() *Answer { return s.Evil.Send("GET", "/invitations/accept?token="+token, nil) }
		}}},
		"GET /reset-password": {{Name: "shows the form", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *Answer { return s.Evil.Send("GET", "/reset-password?token="+token, nil) }
		}}},
	}
	for pattern, rows := range ClassTable() {
		table[pattern] = slices.Concat(rows, ownersRows()[pattern], newcomersRows()[pattern])
	}
	maps.Copy(table, stoppingRows())
	return table
}

// ownersRows are requests by which the rightful owner signs in to an account.
func ownersRows() map[string][]Row {
	comes := func(k Kind, prepare func(s *Scene) func() *Answer) []Row {
		r := Row{Name: "takes it over", Kind: k, except: map[Act]string{}, Prepare: prepare}
		for _, a := range k.acts() {
			r.except[a] = "it is its owner's by then"
		}
		return []Row{r}
	}
	byCode := comes(OnAddress, func(s *Scene) func() *Answer {
		body := map[string]any{"email": s.Email, "code": s.mail(s.Email, auth.KindVerifyEmail).Code}
		return func() *Answer { return s.Evil.Send("POST", "/verify-email", body) }
	})
	byCode[0].Name = "takes it over by code"
	confirms := func(prepare func(s *Scene, code string) func() *Answer) Row {
		r := comes(OnAddress, func(s *Scene) func() *Answer { return prepare(s, s.mail(s.Email, auth.KindVerifyEmail).Code) })[0]
		r.Name, r.Confirm = "confirms by code", true
		return r
	}
	byPassword := comes(OnAddress, func(s *Scene) func() *Answer {
		body := map[string]any{"token": s.token(s.Email, auth.KindVerifyEmail), "password": EvilPassword}
		return func() *Answer { return s.Evil.Send("POST", "/verify-email", body) }
	})
	byPassword[0].Name = "confirms by password"
	return map[string][]Row{
		"POST /magic-link/verify": comes(OnAddress, func(s *Scene) func() *Answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, nil)
			return func() *Answer { return s.Evil.Send("POST", "/magic-link/verify", map[string]any{"token": token}) }
		}),
		"POST /reset-password": comes(OnAddress, func(s *Scene) func() *Answer {
			s.Enrols()
			body := map[string]any{"token": s.found("/forgot-password", auth.KindResetPassword, nil), "new_password": OwnPassword}
			return func() *Answer { return s.Evil.Send("POST", "/reset-password", body) }
		}),
		"POST /login": {confirms(func(s *Scene, code string) func() *Answer { return s.login(map[string]any{"confirmation_code": code}) })},
		"POST /verify-email": append(comes(OnAddress, func(s *Scene) func() *Answer {
			body := url.Values{"token": {s.token(s.Email, auth.KindVerifyEmail)}, "disown": {"1"}}.Encode()
			return func() *Answer { return s.Evil.Send("POST", "/verify-email", body, Form) }
		}), byCode[0], byPassword[0]),
		"POST /otp/verify": comes(OnNumber, func(s *Scene) func() *Answer {
			s.Evil.Send("POST", "/otp/send", map[string]any{"phone": s.Number}).Want(200)
			body := map[string]any{"phone": s.Number, "otp": s.mail(s.Number, auth.KindPhoneCode).Code}
			return func() *Answer { return s.Evil.Send("POST", "/otp/verify", body) }
		}),
		"GET /oauth/{provider}/callback": append(comes(OnIdentity, func(s *Scene) func() *Answer {
			owner := s.NewPerson(s.T.Context())
			back := owner.Back("google", owner.Begin("google", ""), s.Ada)
			return func() *Answer { owner.ctx = s.Evil.ctx; return back() }
		}), confirms(func(s *Scene, code string) func() *Answer {
			s.Patch(s.Id, store.UserPatch{Link: &store.Identity{ID: uuid.NewString(), Provider: "facebook", Subject: s.face.Subject}})
			return s.Evil.Back("facebook", s.Evil.Begin("facebook", "confirmation_code="+code), s.face)
		})),
		"POST /oauth/{provider}/callback": {confirms(func(s *Scene, code string) func() *Answer {
			s.Patch(s.Id, store.UserPatch{Link: &store.Identity{ID: uuid.NewString(), Provider: "apple", Subject: s.apple.Subject}})
			return s.Evil.Back("apple", s.Evil.Begin("apple", "confirmation_code="+code), s.apple)
		})},
		"POST /oauth/{provider}/id-token": {confirms(func(s *Scene, code string) func() *Answer {
			s.Patch(s.Id, store.UserPatch{Link: &store.Identity{ID: uuid.NewString(), Provider: "apple", Subject: s.apple.Subject}})
			body := map[string]any{"id_token": s.idp.IDToken("apple", s.apple, ""), "confirmation_code": code}
			return func() *Answer { return s.Evil.Send("POST", "/oauth/apple/id-token", body) }
		})},
	}
}

// stoppingRows are account recoveries by the owner, with the link of a notice.
func stoppingRows() map[string][]Row {
	stops := func(name string, request func(s *Scene, token string) *Answer, moved bool) Row {
		r := Row{Name: name, Kind: OnStolen, except: map[Act]string{}, Prepare: func(s *Scene) func() *Answer {
			s.Evil.Send("PATCH", "/me", map[string]any{"email": s.EvilMail}, s.Authorization()).Want(200)
			token := s.token(s.Email, auth.KindEmailChangeRequested)
			if moved {
				s.Evil.Send("POST", "/verify-email", map[string]any{"token": s.token(s.EvilMail, auth.KindChangeEmail)}, s.Authorization()).Want(200)
			}
			return func() *Answer { return request(s, token) }
		}}
		for _, a := range r.Kind.acts() {
			r.except[a] = "it rests on the mailbox, on purpose"
		}
		return r
	}
	shows := func(s *Scene, token string) *Answer { return s.Evil.Send("GET", "/secure-account?token="+token, nil) }
	secures := func(s *Scene, token string) *Answer {
		return s.Evil.Send("POST", "/secure-account", map[string]any{"token": token})
	}
	return map[string][]Row{
		"GET /secure-account":  {stops("shows it", shows, false)},
		"POST /secure-account": {stops("stops a change", secures, false), stops("takes the address back", secures, true)},
	}
}

// newcomersRows are requests by which a person without an account gets one.
func newcomersRows() map[string][]Row {
	comes := func(name string, prepare func(s *Scene) func() *Answer) Row {
		r := Row{Name: name, Kind: OnNothing, except: map[Act]string{}, Prepare: prepare}
		for _, a := range r.Kind.acts() {
			r.except[a] = "the account is made in the middle of it"
		}
		return r
	}
	link := func(s *Scene) string { return s.found("/magic-link/send", auth.KindMagicLink, nil) }
	return map[string][]Row{
		"POST /signup": {comes("by number", func(s *Scene) func() *Answer {
			body := map[string]any{"phone": s.Number, "password": EvilPassword}
			return func() *Answer { return s.Evil.Send("POST", "/signup", body) }
		})},
		"GET /magic-link/verify": {comes("opens it", func(s *Scene) func() *Answer {
			token := link(s)
			return func() *Answer { return s.Evil.Send("GET", "/magic-link/verify?token="+token, nil) }
		})},
		"POST /magic-link/verify": {comes("comes first", func(s *Scene) func() *Answer {
			token := link(s)
			return func() *Answer { return s.Evil.Send("POST", "/magic-link/verify", map[string]any{"token": token}) }
		})},
		"POST /exchange": {comes("comes first, by a bound link", func(s *Scene) func() *Answer {
			s.opensFound(BoundToBrowser()).Want(303)
			body := map[string]any{"code": s.Evil.codes[len(s.Evil.codes)-1], "code_verifier": Verifier}
			return func() *Answer { return s.Evil.Send("POST", "/exchange", body) }
		})},
		"POST /invitations/accept": {comes("comes first", func(s *Scene) func() *Answer {
			body := map[string]any{"token": s.Invited(s.EvilMail), "password": EvilPassword}
			return func() *Answer { return s.Evil.Send("POST", "/invitations/accept", body) }
		})},
		"POST /otp/verify": {comes("comes first", func(s *Scene) func() *Answer {
			s.Evil.Send("POST", "/otp/send", map[string]any{"phone": s.Number}).Want(200)
			body := map[string]any{"phone": s.Number, "otp": s.mail(s.Number, auth.KindPhoneCode).Code}
			return func() *Answer { return s.Evil.Send("POST", "/otp/verify", body) }
		})},
		"POST /oauth/{provider}/callback": {comes("comes first", func(s *Scene) func() *Answer {
			s.apple.EmailVerified = false
			return s.Evil.Back("apple", s.Evil.Begin("apple", ""), s.apple)
		})},
		"POST /oauth/{provider}/id-token": {comes("comes first", func(s *Scene) func() *Answer {
			s.apple.EmailVerified = false
			body := map[string]any{"id_token": s.idp.IDToken("apple", s.apple, "")}
			return func() *Answer { return s.Evil.Send("POST", "/oauth/apple/id-token", body) }
		})},
	}
}
