package auth_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
)

// The class: the store does not keep still. At each store call of each route it
// fails, with or without the effect, it waits until whoever asked has asked again,
// or whoever asked leaves. What holds whatever becomes of a request is
// invariants.

// hostileRows are requests of all routes: those of the class's table, and those
// that nobody can lose an account in the middle of.
func hostileRows() map[string][]row {
	get := func(path string) []row {
		return []row{{name: "reads", kind: onStolen, prepare: func(s *scene) func() *answer {
			return func() *answer { return s.evil.send("GET", path, nil) }
		}}}
	}
	ask := func(path string, body func(s *scene) map[string]any) []row {
		return forKinds(row{name: "asks", prepare: func(s *scene) func() *answer {
			b := body(s)
			return func() *answer { return s.evil.send("POST", path, b) }
		}}, onAddress, onNumber, onStolen)
	}
	byEmail := func(s *scene) map[string]any { return map[string]any{"email": s.email} }
	table := map[string][]row{
		"GET /oauth/{provider}":                 get("/oauth/google"),
		"GET /settings":                         get("/settings"),
		"GET /.well-known/jwks.json":            get("/.well-known/jwks.json"),
		"GET /.well-known/openid-configuration": get("/.well-known/openid-configuration"),
		"GET /openapi.json":                     get("/openapi.json"),
		"GET /healthz":                          get("/healthz"),
		"POST /magic-link/send":                 ask("/magic-link/send", byEmail),
		"POST /forgot-password":                 ask("/forgot-password", byEmail),
		"POST /otp/send":                        ask("/otp/send", func(s *scene) map[string]any { return map[string]any{"phone": s.number} }),
		"GET /invitations/accept": {{name: "shows the form", kind: onStolen, prepare: func(s *scene) func() *answer {
			token := s.invited(s.email)
			return func() *answer { return s.evil.send("GET", "/invitations/accept?token="+token, nil) }
		}}},
		"GET /reset-password": {{name: "shows the form", kind: onStolen, prepare: func(s *scene) func() *answer {
			token := s.found("/forgot-password", auth.KindResetPassword, nil)
			return func() *answer { return s.evil.send("GET", "/reset-password?token="+token, nil) }
		}}},
	}
	for pattern, rows := range classTable() {
		table[pattern] = slices.Concat(rows, ownersRows()[pattern], newcomersRows()[pattern])
	}
	maps.Copy(table, stoppingRows())
	return table
}

// ownersRows are requests by which a rightful owner comes to an account.
func ownersRows() map[string][]row {
	comes := func(k kind, prepare func(s *scene) func() *answer) []row {
		r := row{name: "takes it over", kind: k, except: map[act]string{}, prepare: prepare}
		for _, a := range k.acts() {
			r.except[a] = "it is its owner's by then"
		}
		return []row{r}
	}
	byCode := comes(onAddress, func(s *scene) func() *answer {
		body := map[string]any{"email": s.email, "code": s.mail(s.email, auth.KindVerifyEmail).Code}
		return func() *answer { return s.evil.send("POST", "/verify-email", body) }
	})
	byCode[0].name = "takes it over by code"
	return map[string][]row{
		"POST /magic-link/verify": comes(onAddress, func(s *scene) func() *answer {
			token := s.found("/magic-link/send", auth.KindMagicLink, nil)
			return func() *answer { return s.evil.send("POST", "/magic-link/verify", map[string]any{"token": token}) }
		}),
		"POST /reset-password": comes(onAddress, func(s *scene) func() *answer {
			s.enrols()
			body := map[string]any{"token": s.found("/forgot-password", auth.KindResetPassword, nil), "new_password": ownPassword}
			return func() *answer { return s.evil.send("POST", "/reset-password", body) }
		}),
		"POST /verify-email": append(comes(onAddress, func(s *scene) func() *answer {
			body := url.Values{"token": {s.token(s.email, auth.KindVerifyEmail)}, "disown": {"1"}}.Encode()
			return func() *answer { return s.evil.send("POST", "/verify-email", body, form) }
		}), byCode...),
		"POST /otp/verify": comes(onNumber, func(s *scene) func() *answer {
			s.evil.send("POST", "/otp/send", map[string]any{"phone": s.number}).want(200)
			body := map[string]any{"phone": s.number, "otp": s.mail(s.number, auth.KindPhoneCode).Code}
			return func() *answer { return s.evil.send("POST", "/otp/verify", body) }
		}),
		"GET /oauth/{provider}/callback": comes(onIdentity, func(s *scene) func() *answer {
			owner := s.person(s.t.Context())
			back := owner.back("google", owner.begin("google", ""), s.ada)
			return func() *answer { owner.ctx = s.evil.ctx; return back() }
		}),
	}
}

// stoppingRows are requests by which the owner stops a thief, with the link of a
// notice.
func stoppingRows() map[string][]row {
	stops := func(name string, request func(s *scene, token string) *answer, moved bool) row {
		r := row{name: name, kind: onStolen, except: map[act]string{}, prepare: func(s *scene) func() *answer {
			s.evil.send("PATCH", "/me", map[string]any{"email": s.evilMail}, s.in()).want(200)
			token := s.token(s.email, auth.KindEmailChangeRequested)
			if moved {
				s.evil.send("GET", "/verify-email?token="+s.token(s.evilMail, auth.KindChangeEmail), nil).want(200)
			}
			return func() *answer { return request(s, token) }
		}}
		for _, a := range r.kind.acts() {
			r.except[a] = "it rests on the mailbox, on purpose"
		}
		return r
	}
	shows := func(s *scene, token string) *answer { return s.evil.send("GET", "/secure-account?token="+token, nil) }
	secures := func(s *scene, token string) *answer {
		return s.evil.send("POST", "/secure-account", map[string]any{"token": token})
	}
	return map[string][]row{
		"GET /secure-account":  {stops("shows it", shows, false)},
		"POST /secure-account": {stops("stops a change", secures, false), stops("takes the address back", secures, true)},
	}
}

// newcomersRows are requests by which somebody who has no account gets one.
func newcomersRows() map[string][]row {
	comes := func(name string, prepare func(s *scene) func() *answer) row {
		r := row{name: name, kind: onNothing, except: map[act]string{}, prepare: prepare}
		for _, a := range r.kind.acts() {
			r.except[a] = "the account is made in the middle of it"
		}
		return r
	}
	link := func(s *scene) string { return s.found("/magic-link/send", auth.KindMagicLink, nil) }
	return map[string][]row{
		"POST /signup": {comes("by number", func(s *scene) func() *answer {
			body := map[string]any{"phone": s.number, "password": evilPassword}
			return func() *answer { return s.evil.send("POST", "/signup", body) }
		})},
		"GET /magic-link/verify": {comes("comes first", func(s *scene) func() *answer {
			token := link(s)
			return func() *answer { return s.evil.send("GET", "/magic-link/verify?token="+token, nil) }
		})},
		"POST /magic-link/verify": {comes("comes first", func(s *scene) func() *answer {
			token := link(s)
			return func() *answer { return s.evil.send("POST", "/magic-link/verify", map[string]any{"token": token}) }
		})},
		"POST /exchange": {comes("comes first, by a bound link", func(s *scene) func() *answer {
			s.opensFound(bound()).want(303)
			body := map[string]any{"code": s.evil.codes[len(s.evil.codes)-1], "code_verifier": verifier}
			return func() *answer { return s.evil.send("POST", "/exchange", body) }
		})},
		"POST /invitations/accept": {comes("comes first", func(s *scene) func() *answer {
			body := map[string]any{"token": s.invited(s.evilMail), "password": evilPassword}
			return func() *answer { return s.evil.send("POST", "/invitations/accept", body) }
		})},
		"POST /otp/verify": {comes("comes first", func(s *scene) func() *answer {
			s.evil.send("POST", "/otp/send", map[string]any{"phone": s.number}).want(200)
			body := map[string]any{"phone": s.number, "otp": s.mail(s.number, auth.KindPhoneCode).Code}
			return func() *answer { return s.evil.send("POST", "/otp/verify", body) }
		})},
		"POST /oauth/{provider}/callback": {comes("comes first", func(s *scene) func() *answer {
			s.apple.EmailVerified = false
			return s.evil.back("apple", s.evil.begin("apple", ""), s.apple)
		})},
		"POST /oauth/{provider}/id-token": {comes("comes first", func(s *scene) func() *answer {
			s.apple.EmailVerified = false
			body := map[string]any{"id_token": s.idp.IDToken("apple", s.apple, "")}
			return func() *answer { return s.evil.send("POST", "/oauth/apple/id-token", body) }
		})},
	}
}

// A new route has no row until somebody gives it one.
func TestHostileStoreIsWhole(t *testing.T) {
	t.Parallel()
	routes, rows := auth.Routes(newWorld(t).Auth), hostileRows()
	for _, pattern := range routes {
		if len(rows[pattern]) == 0 {
			t.Errorf("%s: what if its store fails?", pattern)
		}
	}
	for pattern := range rows {
		if !slices.Contains(routes, pattern) {
			t.Errorf("%s is no route", pattern)
		}
	}
}

// chances are the trials of a row of n store calls that a run takes.
func chances(t *testing.T) func(t *testing.T, n int) []trial {
	t.Helper()
	all := func(_ *testing.T, n int) (list []trial) {
		for k := 1; k <= n; k++ {
			for _, f := range storetap.Faults() {
				list = append(list, trial{fault: f, k: k})
			}
		}
		return list
	}
	if wholly() {
		return all
	}
	some := 6
	if os.Getenv(onPostgres) != "" {
		some = 1
	}
	seed := drawSeed(t)
	return func(t *testing.T, n int) []trial {
		t.Helper()
		list, rnd := all(t, n), sampler(t, seed)
		rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:min(some, len(list))]
	}
}

// refer plays a row undisturbed.
func (w *hostileWorld) refer(r row, wrong string, spoil sabotage) *reference {
	ref := &reference{played: w.play(trial{row: r, wrong: wrong, spoil: spoil})}
	ref.then = ref.again()
	return ref
}

// violations are what is wrong after a trial.
func violations(p *played, ref *reference) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(invariants())) {
		for _, v := range invariants()[name](p, ref) {
			list = append(list, fmt.Sprintf("%s, answered %s: %s: %s", p.trial, codeOf(p.answer()), name, v))
		}
	}
	return list
}

func TestHostileStore(t *testing.T) { // not parallel: it counts goroutines
	before := runtime.NumGoroutine()
	draw := chances(t)
	t.Run("rows", func(t *testing.T) { playAll(t, draw) })
	settled(t, before)
}

func playAll(t *testing.T, draw func(t *testing.T, n int) []trial) {
	t.Helper()
	for _, pattern := range slices.Sorted(maps.Keys(hostileRows())) {
		for _, r := range hostileRows()[pattern] {
			t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
				t.Parallel()
				w := newHostileWorld(t, r)
				ref := w.refer(r, "", sabotage{})
				acts := r.acts()
				for i, tr := range draw(t, ref.n) {
					tr.row = r
					p := w.play(tr)
					for _, v := range violations(p, ref) {
						t.Error(v)
					}
					if len(acts) == 0 {
						continue
					}
					a := acts[i%len(acts)]
					for _, v := range p.outlives(a) {
						t.Errorf("%s, answered %s, then %s: something outlives what it rested on: %s", tr, codeOf(p.answer()), a, v)
					}
				}
			})
		}
	}
}
