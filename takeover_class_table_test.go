package auth_test

import (
	"net/url"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/store"
)

// classExempt are the routes that nobody can lose an account in the middle of.
func classExempt() map[string]string {
	return map[string]string{
		"GET /oauth/{provider}":                 "begins a sign-in that is nobody's yet",
		"POST /magic-link/send":                 "anybody may ask, and the link goes to the address",
		"POST /otp/send":                        "anybody may ask, and the code goes to the number",
		"POST /forgot-password":                 "anybody may ask, and the link goes to the address",
		"GET /reset-password":                   "shows a form; the link is used by the post",
		"GET /secure-account":                   "shows a page; the link is used by the post",
		"GET /invitations/accept":               "shows a page; the link is used by the post",
		"POST /secure-account":                  "takes ways in away and makes none; it rests on the mailbox that a notice went to, and on purpose outlives whatever happens to the account",
		"GET /settings":                         "is about no account",
		"GET /.well-known/jwks.json":            "is about no account",
		"GET /.well-known/openid-configuration": "is about no account",
		"GET /openapi.json":                     "is about no account",
		"GET /healthz":                          "is about no account",
	}
}

// sends is a request in the session, with nothing to prepare.
func sends(method, path string, body map[string]any) func(*scene) func() *answer {
	return func(s *scene) func() *answer {
		return func() *answer {
			if body == nil {
				return s.evil.send(method, path, nil, s.in())
			}
			return s.evil.send(method, path, body, s.in())
		}
	}
}

// forKinds is a row for several kinds.
func forKinds(r row, kinds ...kind) (list []row) {
	for _, k := range kinds {
		r.kind = k
		list = append(list, r)
	}
	return list
}

// login is a request that signs in with the password.
func (s *scene) login(more map[string]any) func() *answer {
	body := map[string]any{"email": s.email, "password": evilPassword}
	switch s.row.kind {
	case onNumber:
		body = map[string]any{"phone": s.number, "password": evilPassword}
	case onStolen:
		body["password"] = ownPassword
	}
	for k, v := range more {
		body[k] = v
	}
	return func() *answer { return s.evil.send("POST", "/login", body) }
}

// asked signs in with the password and returns the token that the answer asks
// with.
func (s *scene) asked() string {
	a := s.login(nil)().want(403)
	return decodeAs[map[string]any](a)["mfa_token"].(string)
}

const appURL = "https://app.test/"

// classTable is every other route, with the requests that it is tried by.
func classTable() map[string][]row {
	table := map[string][]row{
		"GET /me":                  forKinds(row{name: "reads", session: true, prepare: sends("GET", "/me", nil)}, onAddress, onStolen),
		"GET /sessions":            forKinds(row{name: "reads", session: true, prepare: sends("GET", "/sessions", nil)}, onAddress, onStolen),
		"DELETE /sessions":         forKinds(row{name: "ends the others", session: true, prepare: sends("DELETE", "/sessions", nil)}, onAddress, onStolen),
		"DELETE /me":               forKinds(row{name: "deletes", session: true, prepare: sends("DELETE", "/me", nil)}, onAddress, onNumber, onIdentity, onStolen),
		"DELETE /sessions/{id}":    {{name: "ends its own", kind: onAddress, session: true, prepare: endsItsOwn}},
		"POST /refresh":            forKinds(row{name: "refreshes", session: true, prepare: refreshes}, onAddress, onNumber, onIdentity, onStolen),
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
		"GET /me/export":           forKinds(row{name: "reads", session: true, prepare: sends("GET", "/me/export", nil)}, onAddress, onStolen),
		"POST /me/confirm":         classConfirm(),
		"POST /2fa/recovery-codes": {{name: "replaces them", kind: onAddress, session: true, prepare: withFactor("POST", "/2fa/recovery-codes", nil)}, {name: "replaces them", kind: onStolen, session: true, prepare: withFactor("POST", "/2fa/recovery-codes", nil)}},
		"POST /2fa/disable":        classDisable(),
		"POST /2fa/setup-totp":     classSetup(),
		"POST /2fa/verify":         classFactor(),
	}
	for pattern, rows := range classOAuth() {
		table[pattern] = rows
	}
	table["POST /2fa/verify-and-enable"] = classEnable()
	return table
}

func endsItsOwn(s *scene) func() *answer {
	list := decodeAs[struct{ Sessions []struct{ ID string } }](s.evil.send("GET", "/sessions", nil, s.in()).want(200))
	return func() *answer { return s.evil.send("DELETE", "/sessions/"+list.Sessions[0].ID, nil, s.in()) }
}

func refreshes(s *scene) func() *answer {
	return func() *answer {
		return s.evil.send("POST", "/refresh", map[string]any{"refresh_token": s.session.RefreshToken})
	}
}

func classSignup() []row {
	signup := func(more map[string]any) func(*scene) func() *answer {
		return func(s *scene) func() *answer {
			body := map[string]any{"email": s.email, "password": evilPassword}
			for k, v := range more {
				body[k] = v
			}
			return func() *answer { return s.evil.send("POST", "/signup", body) }
		}
	}
	return []row{
		{name: "signs up", kind: onNothing, prepare: signup(nil)},
		{name: "signs up to confirm", kind: onNothing, confirm: true, prepare: signup(nil)},
		{name: "signs up to enrol", kind: onNothing, prepare: signup(map[string]any{"full_name": mustEnrol})},
		{name: "signs up once more", kind: onAddress, confirm: true, prepare: signup(nil)},
	}
}

func classLogin() []row {
	return append(forKinds(row{name: "by password", prepare: func(s *scene) func() *answer { return s.login(nil) }}, onAddress, onNumber, onStolen),
		row{name: "with the second factor", kind: onAddress, prepare: func(s *scene) func() *answer {
			s.enrols()
			return s.login(map[string]any{"totp_code": s.code(s.secret, 0)})
		}},
		row{name: "asked for the second factor", kind: onAddress, prepare: func(s *scene) func() *answer {
			s.enrols()
			return s.login(nil)
		}},
		row{name: "asked to enrol", kind: onAddress, prepare: func(s *scene) func() *answer {
			s.hasToEnrol()
			return s.login(nil)
		}},
		row{name: "by number, asked to enrol", kind: onNumber, prepare: func(s *scene) func() *answer {
			s.hasToEnrol()
			return s.login(nil)
		}},
		row{name: "asked to confirm", kind: onAddress, confirm: true, prepare: func(s *scene) func() *answer { return s.login(nil) }},
		row{
			name: "with an outdated hash", kind: onAddress,
			except: map[act]string{banned: "it is the same password, which a ban leaves"},
			prepare: func(s *scene) func() *answer {
				old := passhash.Argon2id{Memory: 32, Time: 1, Threads: 1}.Make(evilPassword)
				s.patch(s.id, store.UserPatch{Rehash: &old})
				return s.login(nil)
			},
		},
	)
}

func classLogout() []row {
	leaving := map[act]string{banned: "who is banned may sign out of that session, and of no other: TestLogoutOfABannedUser"}
	list := []row{{name: "by refresh token", kind: onAddress, session: true, except: leaving, prepare: func(s *scene) func() *answer {
		return func() *answer {
			return s.evil.send("POST", "/logout?scope=global", map[string]any{"refresh_token": s.session.RefreshToken})
		}
	}}}
	for _, scope := range []auth.LogoutScope{auth.LogoutLocal, auth.LogoutOthers, auth.LogoutGlobal} {
		list = append(list, forKinds(row{name: string(scope), session: true, except: leaving, prepare: sends("POST", "/logout?scope="+string(scope), nil)}, onAddress, onStolen)...)
	}
	return list
}

func classExchange() []row {
	exchange := func(s *scene, more map[string]any) func() *answer {
		body := map[string]any{"code": s.evil.codes[len(s.evil.codes)-1]}
		for k, v := range more {
			body[k] = v
		}
		return func() *answer { return s.evil.send("POST", "/exchange", body) }
	}
	return append(forKinds(row{name: "links", session: true, prepare: func(s *scene) func() *answer {
		s.linkElsewhere()().want(303)
		return exchange(s, map[string]any{"code_verifier": verifier})
	}}, onIdentity, onStolen),
		row{name: "signs in", kind: onIdentity, prepare: func(s *scene) func() *answer {
			s.evil.signIn("facebook", s.face, "redirect_to="+url.QueryEscape(appURL)).want(303)
			return exchange(s, nil)
		}},
		row{name: "asked for the second factor", kind: onIdentity, prepare: func(s *scene) func() *answer {
			s.enrols()
			s.evil.signIn("facebook", s.face, "redirect_to="+url.QueryEscape(appURL)).want(303)
			return exchange(s, nil)
		}},
		row{name: "by a link that was found", kind: onStolen, prepare: func(s *scene) func() *answer {
			s.opensFound(map[string]any{"redirect_to": appURL}).want(303)
			return exchange(s, nil)
		}},
		row{name: "by a bound link that was found", kind: onStolen, prepare: func(s *scene) func() *answer {
			s.opensFound(bound()).want(303)
			return exchange(s, map[string]any{"code_verifier": verifier})
		}},
	)
}

func classUpdate() []row {
	update := func(name string, of func(s *scene) map[string]any, kinds ...kind) []row {
		return forKinds(row{name: name, session: true, prepare: func(s *scene) func() *answer {
			return func() *answer { return s.evil.send("PATCH", "/me", of(s), s.in()) }
		}}, kinds...)
	}
	list := update("name", func(*scene) map[string]any { return map[string]any{"full_name": "Eve"} }, onAddress, onNumber, onIdentity, onStolen)
	list = append(list, update("metadata", func(*scene) map[string]any {
		return map[string]any{"user_metadata": map[string]any{"a": 1}}
	}, onAddress)...)
	list = append(list, update("address", func(s *scene) map[string]any { return map[string]any{"email": s.evilMail} }, onAddress, onIdentity, onStolen)...)
	list = append(list, update("number", func(s *scene) map[string]any { return map[string]any{"phone": s.evilNumber} }, onNumber, onIdentity, onStolen)...)
	list = append(list, update("all", func(s *scene) map[string]any {
		return map[string]any{"phone": s.evilNumber, "email": s.evilMail, "full_name": "Eve"}
	}, onIdentity, onStolen)...)
	return append(list, row{name: "address of another", kind: onAddress, session: true, prepare: func(s *scene) func() *answer {
		other := s.person(s.t.Context())
		taken := "other." + s.email
		other.send("POST", "/signup", map[string]any{"email": taken, "password": ownPassword}).want(200)
		return func() *answer { return s.evil.send("PATCH", "/me", map[string]any{"email": taken}, s.in()) }
	}})
}

func classPassword() []row {
	change := func(current string) func(*scene) func() *answer {
		body := map[string]any{"new_password": evilNew}
		if current != "" {
			body["current_password"] = current
		}
		return sends("POST", "/me/password", body)
	}
	return []row{
		{name: "changes", kind: onAddress, session: true, prepare: change(evilPassword)},
		{name: "changes", kind: onNumber, session: true, prepare: change(evilPassword)},
		{name: "changes", kind: onStolen, session: true, prepare: change(ownPassword)},
		{name: "chooses the first", kind: onIdentity, session: true, prepare: change("")},
	}
}
