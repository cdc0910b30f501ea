package harness

import (
	"net/url"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/store"
)

// Sends is a request in the session that needs no preparation.
func Sends(method, path string, body map[string]any) func(*Scene) func() *Answer {
	return func(s *Scene) func() *Answer {
		return func() *Answer {
			if body == nil {
				return s.Evil.Send(method, path, nil, s.Authorization())
			}
			return s.Evil.Send(method, path, body, s.Authorization())
		}
	}
}

// ForKinds copies a row for several kinds.
func ForKinds(r Row, kinds ...Kind) (list []Row) {
	for _, k := range kinds {
		r.Kind = k
		list = append(list, r)
	}
	return list
}

// login is a request that signs in with the password.
func (s *Scene) login(more map[string]any) func() *Answer {
	body := map[string]any{"email": s.Email, "password": EvilPassword}
	switch s.row.Kind {
	case OnNumber:
		body = map[string]any{"phone": s.Number, "password": EvilPassword}
	case OnStolen:
		body["password"] = OwnPassword
	}
	for k, v := range more {
		body[k] = v
	}
	return func() *Answer { return s.Evil.Send("POST", "/login", body) }
}

// asked signs in with the password and returns the token for the second factor.
func (s *Scene) asked() string {
	a := s.login(nil)().Want(403)
	return DecodeAs[map[string]any](a)["mfa_token"].(string)
}

const AppURL = "https://app.test/"

// ClassTable returns the requests that test each of the other routes.
func ClassTable() map[string][]Row {
	table := map[string][]Row{
		"GET /me":                  ForKinds(Row{Name: "reads", Session: true, Prepare: Sends("GET", "/me", nil)}, OnAddress, OnStolen),
		"GET /sessions":            ForKinds(Row{Name: "reads", Session: true, Prepare: Sends("GET", "/sessions", nil)}, OnAddress, OnStolen),
		"DELETE /sessions":         ForKinds(Row{Name: "ends the others", Session: true, Prepare: Sends("DELETE", "/sessions", nil)}, OnAddress, OnStolen),
		"DELETE /me":               ForKinds(Row{Name: "deletes", Session: true, Prepare: Sends("DELETE", "/me", nil)}, OnAddress, OnNumber, OnIdentity, OnStolen),
		"DELETE /sessions/{id}":    {{Name: "ends its own", Kind: OnAddress, Session: true, Prepare: endsItsOwn}},
		"POST /refresh":            ForKinds(Row{Name: "refreshes", Session: true, Prepare: refreshes}, OnAddress, OnNumber, OnIdentity, OnStolen),
		"POST /exchange":           classExchange(),
		"POST /signup":             classSignup(),
		"POST /login":              classLogin(),
		"POST /logout":             classLogout(),
		"PATCH /me":                classUpdate(),
		"POST /me/password":        classPassword(),
		"POST /verify-email":       classVerify(),
		"GET /verify-email":        classVerifyGet(),
		"POST /reset-password":     classReset(),
		"POST /invitations/accept": classInvitation(),
		"GET /magic-link/verify":   classMagicGet(),
		"POST /magic-link/verify":  classMagic(),
		"POST /otp/verify":         classCodes(),
		"GET /me/export":           ForKinds(Row{Name: "reads", Session: true, Prepare: Sends("GET", "/me/export", nil)}, OnAddress, OnStolen),
		"POST /me/confirm":         classConfirm(),
		"POST /2fa/recovery-codes": {{Name: "replaces them", Kind: OnAddress, Session: true, Prepare: withFactor("POST", "/2fa/recovery-codes", nil)}, {Name: "replaces them", Kind: OnStolen, Session: true, Prepare: withFactor("POST", "/2fa/recovery-codes", nil)}},
		"POST /2fa/disable":        classDisable(),
		"POST /2fa/setup-totp":     classSetup(),
		"POST /2fa/verify":         classFactor(),
	}
	for pattern, rows := range classOAuth() {
		table[pattern] = rows
	}
	for pattern, rows := range classPasskeys() {
		table[pattern] = rows
	}
	table["POST /2fa/verify-and-enable"] = classEnable()
	return table
}

func endsItsOwn(s *Scene) func() *Answer {
	list := DecodeAs[struct{ Sessions []struct{ ID string } }](s.Evil.Send("GET", "/sessions", nil, s.Authorization()).Want(200))
	return func() *Answer { return s.Evil.Send("DELETE", "/sessions/"+list.Sessions[0].ID, nil, s.Authorization()) }
}

func refreshes(s *Scene) func() *Answer {
	return func() *Answer {
		return s.Evil.Send("POST", "/refresh", map[string]any{"refresh_token": s.Session.RefreshToken})
	}
}

func classSignup() []Row {
	signup := func(more map[string]any) func(*Scene) func() *Answer {
		return func(s *Scene) func() *Answer {
			body := map[string]any{"email": s.Email, "password": EvilPassword}
			for k, v := range more {
				body[k] = v
			}
			return func() *Answer { return s.Evil.Send("POST", "/signup", body) }
		}
	}
	return []Row{
		{Name: "signs up", Kind: OnNothing, Prepare: signup(nil)},
		{Name: "signs up to confirm", Kind: OnNothing, Confirm: true, Prepare: signup(nil)},
		{Name: "signs up to enrol", Kind: OnNothing, Prepare: signup(map[string]any{"full_name": MustEnrol})},
		{Name: "signs up once more", Kind: OnAddress, Confirm: true, Prepare: signup(nil)},
	}
}

func classLogin() []Row {
	return append(ForKinds(Row{Name: "by password", Prepare: func(s *Scene) func() *Answer { return s.login(nil) }}, OnAddress, OnNumber, OnStolen),
		Row{Name: "with the second factor", Kind: OnAddress, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			return s.login(map[string]any{"totp_code": s.Code(s.Secret, 0)})
		}},
		Row{Name: "asked for the second factor", Kind: OnAddress, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			return s.login(nil)
		}},
		Row{Name: "asked to enrol", Kind: OnAddress, Prepare: func(s *Scene) func() *Answer {
			s.hasToEnrol()
			return s.login(nil)
		}},
		Row{Name: "by number, asked to enrol", Kind: OnNumber, Prepare: func(s *Scene) func() *Answer {
			s.hasToEnrol()
			return s.login(nil)
		}},
		Row{Name: "asked to confirm", Kind: OnAddress, Confirm: true, Prepare: func(s *Scene) func() *Answer { return s.login(nil) }},
		Row{
			Name: "with an outdated hash", Kind: OnAddress,
			except: map[Act]string{Banned: "it is the same password, which a ban leaves"},
			Prepare: func(s *Scene) func() *Answer {
				old := passhash.Argon2id{Memory: 32, Time: 1, Threads: 1}.Make(EvilPassword)
				s.Patch(s.Id, store.UserPatch{Rehash: &old})
				return s.login(nil)
			},
		},
	)
}

func classLogout() []Row {
	leaving := map[Act]string{Banned: "who is banned may sign out of that session, and of no other: TestLogoutOfABannedUser"}
	list := []Row{{Name: "by refresh token", Kind: OnAddress, Session: true, except: leaving, Prepare: func(s *Scene) func() *Answer {
		return func() *Answer {
			return s.Evil.Send("POST", "/logout?scope=global", map[string]any{"refresh_token": s.Session.RefreshToken})
		}
	}}}
	for _, scope := range []auth.LogoutScope{auth.LogoutLocal, auth.LogoutOthers, auth.LogoutGlobal} {
		list = append(list, ForKinds(Row{Name: string(scope), Session: true, except: leaving, Prepare: Sends("POST", "/logout?scope="+string(scope), nil)}, OnAddress, OnStolen)...)
	}
	return list
}

func classExchange() []Row {
	exchange := func(s *Scene, more map[string]any) func() *Answer {
		body := map[string]any{"code": s.Evil.codes[len(s.Evil.codes)-1]}
		for k, v := range more {
			body[k] = v
		}
		return func() *Answer { return s.Evil.Send("POST", "/exchange", body) }
	}
	return append(ForKinds(Row{Name: "links", Session: true, Prepare: func(s *Scene) func() *Answer {
		s.linkElsewhere()().Want(303)
		return exchange(s, map[string]any{"code_verifier": Verifier})
	}}, OnIdentity, OnStolen),
		Row{Name: "signs in", Kind: OnIdentity, Prepare: func(s *Scene) func() *Answer {
			s.Evil.signIn("facebook", s.face, "redirect_to="+url.QueryEscape(AppURL)).Want(303)
			return exchange(s, map[string]any{"code_verifier": Verifier})
		}},
		Row{Name: "asked for the second factor", Kind: OnIdentity, Prepare: func(s *Scene) func() *Answer {
			s.Enrols()
			s.Evil.signIn("facebook", s.face, "redirect_to="+url.QueryEscape(AppURL)).Want(303)
			return exchange(s, map[string]any{"code_verifier": Verifier})
		}},
		Row{Name: "by a link that was found", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			s.opensFound(map[string]any{"redirect_to": AppURL}).Want(303)
			return exchange(s, map[string]any{"code_verifier": Verifier})
		}},
		Row{Name: "by a bound link that was found", Kind: OnStolen, Prepare: func(s *Scene) func() *Answer {
			s.opensFound(BoundToBrowser()).Want(303)
			return exchange(s, map[string]any{"code_verifier": Verifier})
		}},
	)
}

func classUpdate() []Row {
	update := func(name string, of func(s *Scene) map[string]any, kinds ...Kind) []Row {
		return ForKinds(Row{Name: name, Session: true, Prepare: func(s *Scene) func() *Answer {
			return func() *Answer { return s.Evil.Send("PATCH", "/me", of(s), s.Authorization()) }
		}}, kinds...)
	}
	list := update("name", func(*Scene) map[string]any { return map[string]any{"full_name": "Eve"} }, OnAddress, OnNumber, OnIdentity, OnStolen)
	list = append(list, update("metadata", func(*Scene) map[string]any {
		return map[string]any{"user_metadata": map[string]any{"a": 1}}
	}, OnAddress)...)
	list = append(list, update("address", func(s *Scene) map[string]any { return map[string]any{"email": s.EvilMail} }, OnAddress, OnIdentity, OnStolen)...)
	list = append(list, update("number", func(s *Scene) map[string]any { return map[string]any{"phone": s.EvilNumber} }, OnNumber, OnIdentity, OnStolen)...)
	list = append(list, update("all", func(s *Scene) map[string]any {
		return map[string]any{"phone": s.EvilNumber, "email": s.EvilMail, "full_name": "Eve"}
	}, OnIdentity, OnStolen)...)
	return append(list, Row{Name: "address of another", Kind: OnAddress, Session: true, Prepare: func(s *Scene) func() *Answer {
		other := s.NewPerson(s.T.Context())
		taken := "other." + s.Email
		other.Send("POST", "/signup", map[string]any{"email": taken, "password": OwnPassword}).Want(200)
		return func() *Answer { return s.Evil.Send("PATCH", "/me", map[string]any{"email": taken}, s.Authorization()) }
	}})
}

func classPassword() []Row {
	change := func(current string) func(*Scene) func() *Answer {
		body := map[string]any{"new_password": evilNew}
		if current != "" {
			body["current_password"] = current
		}
		return Sends("POST", "/me/password", body)
	}
	return []Row{
		{Name: "changes", Kind: OnAddress, Session: true, Prepare: change(EvilPassword)},
		{Name: "changes", Kind: OnNumber, Session: true, Prepare: change(EvilPassword)},
		{Name: "changes", Kind: OnStolen, Session: true, Prepare: change(OwnPassword)},
		{Name: "chooses the first", Kind: OnIdentity, Session: true, Prepare: change("")},
	}
}
